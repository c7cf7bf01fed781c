#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The version stands in configure.ac; what repeats it is written by this script.
# usage: scripts/version.sh            print it
#        scripts/version.sh --check    name the files that say something else
#        scripts/version.sh X.Y.Z      set it everywhere; debian/changelog gets an entry
set -u
cd "$(dirname "$0")/.." || exit 1

version=$(sed -nE 's/^AC_INIT\(\[libgraphrt\], \[([0-9]+\.[0-9]+\.[0-9]+)\].*/\1/p' configure.ac)
[ -n "$version" ] || { echo "version.sh: configure.ac has no version" >&2 && exit 1; }

# apply VERSION: the rows "FILE EXPRESSION" of sed that write it.
rows()
{
    local major minor patch
    IFS=. read -r major minor patch <<<"$1"
    cat <<END
configure.ac s/^(AC_INIT\(\[libgraphrt\], \[)[0-9.]+/\1$1/
include/graphrt/graphrt.h s/^(#define GRT_VERSION_MAJOR ).*/\1$major/
include/graphrt/graphrt.h s/^(#define GRT_VERSION_MINOR ).*/\1$minor/
include/graphrt/graphrt.h s/^(#define GRT_VERSION_PATCH ).*/\1$patch/
python/pyproject.toml s/^(version = ").*"/\1$1"/
python/pyproject.toml s/(graphrt-cuda13\[libraries\]==)[0-9.]+/\1$1/
python/cuda/pyproject.toml s/^(version = ").*"/\1$1"/
python/cuda/pyproject.toml s/("graphrt==)[0-9.]+/\1$1/
src/graphrt.map s/GRAPHRT_PRIVATE_[0-9_]+/GRAPHRT_PRIVATE_${major}_${minor}_$patch/
debian/libgraphrt1.symbols s/GRAPHRT_PRIVATE_[0-9_]+ [0-9.]+/GRAPHRT_PRIVATE_${major}_${minor}_$patch $1/
END
}

check()
{
    local file expression status=0
    while read -r file expression; do
        if ! sed -E "$expression" "$file" | cmp -s - "$file"; then
            echo "$file: does not say $version (scripts/version.sh $version)"
            status=1
        fi
    done < <(rows "$version")
    head -n 1 debian/changelog | grep -qF "libgraphrt ($version)" || { echo "debian/changelog: its newest entry is not $version" && status=1; }
    return $status
}

set_version()
{
    local file expression
    while read -r file expression; do
        sed -E -i "$expression" "$file"
    done < <(rows "$1")
    { printf 'libgraphrt (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The libgraphrt developers <libgraphrt@example.org>  %s\n\n' "$1" "$(date -R)" && cat debian/changelog; } >debian/changelog.new &&
        mv debian/changelog.new debian/changelog
}

case ${1:-} in
'') echo "$version" ;;
--check) check ;;
[0-9]*.[0-9]*.[0-9]*) set_version "$1" ;;
*) sed -n '4,6s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
