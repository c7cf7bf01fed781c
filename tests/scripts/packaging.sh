#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One version everywhere, and a bill of materials that names what the binaries want.
set -u
. "$(dirname "$0")/lib.sh"

check "every file says the same version" "$srcdir/scripts/version.sh" --check
tree=$scratch/tree
mkdir -p "$tree/scripts" "$tree/include/graphrt" "$tree/python/cuda" "$tree/src" "$tree/debian"
for file in scripts/version.sh configure.ac include/graphrt/graphrt.h python/pyproject.toml python/cuda/pyproject.toml src/graphrt.map debian/changelog debian/libgraphrt1.symbols; do
    cp "$srcdir/$file" "$tree/$file"
done
next_version()
{
    "$tree/scripts/version.sh" 12.3.45 && [ "$("$tree/scripts/version.sh")" = 12.3.45 ] && "$tree/scripts/version.sh" --check &&
        grep -q 'GRAPHRT_PRIVATE_12_3_45' "$tree/src/graphrt.map" && grep -q 'VERSION_PATCH 45' "$tree/include/graphrt/graphrt.h" &&
        head -n 1 "$tree/debian/changelog" | grep -q '(12.3.45)'
}
check "another version is set everywhere" next_version
forget() { sed -i 's/12.3.45/12.3.44/' "$tree/python/pyproject.toml" && "$tree/scripts/version.sh" --check; }
refuse 1 "a file that was forgotten" forget

if command -v dpkg-query >/dev/null; then
    library=$(realpath .libs/libgraphrt.so)
    bill() { "$srcdir/scripts/sbom.sh" "$library" libgraphrt-onednn.so .libs/graphrun; }
    bill >"$scratch/sbom.json" 2>"$scratch/sbom.err"
    names_all()
    {
        tests/scripts/json_has bomFormat:string specVersion:string metadata.component.version:string components.0.name:string components.0.purl:string <"$scratch/sbom.json" &&
            for part in libdnnl protobuf-c libsodium sqlite3 jansson uthash; do grep -q "\"name\": \".*$part" "$scratch/sbom.json" || { echo "no $part" && cat "$scratch/sbom.err" && return 1; }; done
    }
    if [ -z "${SANITIZE:-}" ]; then
        check "the bill of materials names the libraries" names_all
        same() { bill | cmp - "$scratch/sbom.json"; }
        check "the same files give the same bill" same
    else
        skip "the bill of materials" "a build with sanitizers is not delivered"
    fi
else
    skip "the bill of materials" "there is no dpkg-query"
fi
finish
