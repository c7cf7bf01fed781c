#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a directory that fuzzes on another machine of the same architecture, which needs no compiler and no development packages:
# OUT_DIR/campaign.sh, and OUT_DIR/fuzz.tar.gz with the targets, their libraries, models and seeds.
# usage: bundle.sh BUILD_DIR FUZZ_BUILD_DIR OUT_DIR    after tests/fuzz/run.sh 0 and tests/fuzz/seeds.sh --all BUILD_DIR BUILD_DIR/fuzz-all
set -eu
build=$1 fuzz=$2 out=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
stage=$out/fuzz
rm -rf "$out"
mkdir -p "$stage/bin" "$stage/lib" "$stage/pool" "$stage/seeds/plan"
for program in tests/fuzz/fuzz_import tests/fuzz/fuzz_plan tests/fuzz/fuzz_run; do
    strip -g "$fuzz/$program" -o "$stage/bin/$(basename "$program")"
done
# Copies all libraries but those that every Linux has.
ldd "$stage/bin/fuzz_run" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
    while read -r library; do cp -L "$library" "$stage/lib/"; done
strip --strip-unneeded "$stage"/lib/*
for model in "${GRAPHRT_TEST_DATA:-$build/data}"/node/*/model.onnx; do
    name=$(basename "$(dirname "$model")")
    mkdir "$stage/pool/$name"
    cp -L "$model" "$stage/pool/$name/"
done
cp -R "$build/fuzz-all/import" "$stage/seeds/"
# Plans that other ones say nothing beyond: the large ones are weights for the most part.
find "$build/fuzz-all/plan" -name '*.grt' -size -64k -exec cp {} "$stage/seeds/plan/" \;
cp -R "$stage/seeds/import" "$stage/seeds/run"
for target in import plan run; do
    cp "$top/tests/fuzz/regressions/$target"/* "$stage/seeds/$target/"
    # What an earlier campaign or tests/fuzz/run.sh has found.
    [ ! -d "$fuzz/corpus/$target" ] || cp -R "$fuzz/corpus/$target/." "$stage/seeds/$target/"
done
tar -C "$out" -cf - fuzz | gzip -9 >"$out/fuzz.tar.gz"
rm -rf "$stage"
cp "$top/tests/fuzz/campaign.sh" "$out/"
du -sh "$out"
