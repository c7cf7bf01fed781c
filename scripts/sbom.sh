#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The software bill of materials of a build or a bundle: CycloneDX 1.5 as JSON, on standard output.
# usage: scripts/sbom.sh FILE...   shared libraries and programs of one build, as in build/.libs or a bundle's lib/ and bin/
# Components are the libraries that these files want, with the Debian packages they come from, and the headers that are compiled in. A library that is in no
# package of this system, other than those given, is an error. The same files on the same system give the same text.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
command -v dpkg-query >/dev/null || { echo "sbom.sh: needs dpkg-query, which knows the packages" >&2 && exit 1; }

# "NAME PATH" of every library that a file wants, and that those want; not what is given itself.
wanted()
{
    local given
    given=$(for f; do basename "$f"; done)
    for f; do
        ldd "$f" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
    done | sort -u | grep -vE '^libgraphrt' | while read -r name path; do
        grep -qxF "$name" <<<"$given" || echo "$name $path"
    done
}
# The package of a file, which may be known by a path with or without /usr.
package_of()
{
    local path
    path=$(realpath "$1")
    { dpkg-query -S "$path" || dpkg-query -S "${path#/usr}"; } 2>/dev/null | head -n 1 | cut -d: -f1
}
distribution=$(. /etc/os-release && echo "$ID-$VERSION_ID")
version=$("$here/version.sh") || exit 1

# component TYPE PACKAGE
component()
{
    local source_version architecture
    read -r source_version architecture < <(dpkg-query -W -f='${Version} ${Architecture}\n' "$2" | head -n 1)
    printf '    {\n      "type": "%s",\n      "name": "%s",\n      "version": "%s",\n      "purl": "pkg:deb/%s/%s@%s?arch=%s&distro=%s"\n    }' \
        "$1" "$2" "$source_version" "${distribution%%-*}" "$2" "${source_version//+/%2B}" "$architecture" "$distribution"
}

packages=$(wanted "$@" | while read -r name path; do
    package=$(package_of "$path")
    if [ -n "$package" ]; then echo "$package"; else echo "sbom.sh: $name ($path) is in no package" >&2 && exit 1; fi
done) || exit 1
components=$({
    while read -r package; do echo "library $package"; done <<<"$packages"
    # compiled in from headers
    for package in uthash-dev libxxhash-dev; do dpkg-query -W "$package" >/dev/null 2>&1 && echo "library $package"; done
} | sort -u)

printf '{\n  "bomFormat": "CycloneDX",\n  "specVersion": "1.5",\n  "version": 1,\n  "metadata": {\n    "component": {\n      "type": "library",\n      "name": "libgraphrt",\n      "version": "%s",\n' "$version"
printf '      "licenses": [ { "license": { "id": "Apache-2.0" } } ],\n      "purl": "pkg:generic/libgraphrt@%s"\n    }\n  },\n  "components": [\n' "$version"
comma=
while read -r type package; do
    printf '%s' "$comma"
    component "$type" "$package"
    comma=$',\n'
done <<<"$components"
printf '\n  ]\n}\n'
