#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a directory that mutates models on another machine of the same architecture, which needs no compiler and no development packages:
# OUT_DIR/campaign.sh, and OUT_DIR/mutate.tar.gz with the program, its libraries and the models to start from.
# usage: bundle.sh BUILD_DIR OUT_DIR CASES...    BUILD_DIR: configured with --enable-sanitizers=address,undefined and LDFLAGS=-no-pie
#                                                CASES: directories that hold <case>/model.onnx, of which those of at most 256 KiB are taken
set -eu
build=$1 out=$2
shift 2
top=$(cd "$(dirname "$0")/../.." && pwd)
stage=$out/mutate
rm -rf "$stage"
mkdir -p "$stage/lib" "$stage/pool"
make -C "$build" tests/mutate/mutate
strip -g "$build/tests/mutate/mutate" -o "$stage/mutate"
# Copies all libraries but those that every Linux has.
ldd "$stage/mutate" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
    while read -r library; do cp -L "$library" "$stage/lib/"; done
strip --strip-unneeded "$stage"/lib/*
find -L "$@" -name model.onnx -size -256k | while read -r model; do
    name=$(basename "$(dirname "$model")")
    mkdir -p "$stage/pool/$name"
    cp -L "$model" "$stage/pool/$name/"
done
tar -C "$out" -cf - mutate | gzip -9 >"$out/mutate.tar.gz"
rm -rf "$stage"
cp "$top/tests/mutate/campaign.sh" "$out/"
du -sh "$out"
