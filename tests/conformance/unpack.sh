#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks the test archives that exist into DIR, once. usage: unpack.sh DIR
#   DIR/node/NAME  DIR/data/{simple,pytorch-converted,pytorch-operator,light}/NAME  DIR/given/NAME  DIR/peers/given/NAME
#   DIR/contrib/NAME  DIR/families/NAME
# Says on stderr which archives are absent. Fails only if one is broken.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
shared=${GRAPHRT_SHARED:-$top/../shared}
mkdir -p "$1" || exit 1
cd "$1" || exit 1
exec 9>.unpacking && flock 9 # tests run side by side

unpack()
{
    local archive=$1 into=$2 stamp
    stamp=.$(basename "$archive").unpacked
    [ -e "$stamp" ] && [ ! "$archive" -nt "$stamp" ] && return
    if [ ! -e "$archive" ]; then
        echo "no $archive: its cases are left out" >&2
    elif mkdir -p "$into" && tar -xJf "$archive" -C "$into"; then
        : >"$stamp"
    else
        echo "$archive cannot be unpacked (xz-utils installed?)" >&2
        exit 1
    fi
}

unpack "$top/tests/data/onnx-node-opset28.tar.xz" .
unpack "$top/tests/data/contrib.tar.xz" .
unpack "$top/tests/data/families.tar.xz" .
unpack "$shared/data/onnx-old-suites.tar.xz" .
unpack "$shared/data/exported-models.tar.xz" .
unpack "$shared/data/peer-models.tar.xz" peers
