#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The fuzz targets over their seeds and 200 changed copies of each, and over what they once found: a smoke test that needs no libFuzzer.
# Then forged plans: changed in what they say, every checksum right.
set -u
. "$(dirname "$0")/lib.sh"

make_seeds() { "$srcdir/tests/fuzz/seeds.sh" . fuzz-seeds; }
replay() { timeout 240 "tests/fuzz/replay_$1" "$2" "fuzz-$1.crash" "${@:3}"; }

check "seeds" make_seeds
check "import" replay import 200 fuzz-seeds/import/*
check "plan" replay plan 200 fuzz-seeds/plan/*
check "run" replay run 100 fuzz-seeds/import/*
for target in import plan run; do
    check "regressions of $target" replay $target 20 "$srcdir/tests/fuzz/regressions/$target"/*
done
check "3000 forged plans" timeout 240 tests/forge/forge --count 3000 fuzz-seeds/plan/*.grt
finish
