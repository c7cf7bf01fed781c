#!/bin/bash
# Unpacks the test archives that exist into DIR, once. usage: unpack.sh DIR
#   DIR/node/NAME  DIR/data/{simple,pytorch-converted,pytorch-operator,light}/NAME  DIR/given/NAME
# Says on stderr which archives are absent. Fails only if one is broken.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
shared=${GRAPHRT_SHARED:-$top/../shared}
mkdir -p "$1" || exit 1
cd "$1" || exit 1

for archive in "$top/tests/data/onnx-node-opset28.tar.xz" "$shared/data/onnx-old-suites.tar.xz" \
    "$shared/data/exported-models.tar.xz"; do
    stamp=.$(basename "$archive").unpacked
    [ -e "$stamp" ] && continue
    if [ ! -e "$archive" ]; then
        echo "no $archive: its cases are left out" >&2
    elif tar -xJf "$archive"; then
        : >"$stamp"
    else
        echo "$archive cannot be unpacked (xz-utils installed?)" >&2
        exit 1
    fi
done
