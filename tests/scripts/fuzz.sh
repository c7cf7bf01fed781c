#!/bin/bash
# The fuzz targets over their seeds and 200 changed copies of each: a smoke test that needs no libFuzzer.
set -u
. "$(dirname "$0")/lib.sh"

make_seeds() { "$srcdir/tests/fuzz/seeds.sh" . fuzz-seeds; }
replay() { timeout 240 "tests/fuzz/replay_$1" 200 "fuzz-$1.crash" fuzz-seeds/"$1"/*; }

check "seeds" make_seeds
for target in import plan; do
    check "$target" replay $target
done
finish
