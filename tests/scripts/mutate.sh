#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Models of the conformance archive with attributes, inputs, types and data changed: they are refused with a message, or they run.
set -u
. "$(dirname "$0")/lib.sh"
data=${GRAPHRT_TEST_DATA:-data}

unpack() { "$srcdir/tests/conformance/unpack.sh" "$data"; }
check "cases" unpack
check "1500 mutants" timeout 240 tests/mutate/mutate --count 1500 "$data/node"
# With the passes of devices that are like a GPU, which make ops of their own.
check "500 mutants for a device" timeout 240 tests/mutate/mutate --target mirror --count 500 "$data/node"
# Of several nodes that passes make one step of.
patterns=$srcdir/tests/data/patterns
check "1500 mutants of patterns" timeout 240 tests/mutate/mutate --count 1500 "$patterns"
check "500 mutants of patterns for a device" timeout 240 tests/mutate/mutate --target mirror --count 500 "$patterns"
# What ends a process says why: a mutant that cannot be saved is one.
says_why()
{
    tests/mutate/mutate --count 1 --save "$scratch/none/mutant" "$data/node" >"$scratch/said" && return 1
    grep -q '^FAIL seed' "$scratch/said" && grep -q 'none/mutant: No such file' "$scratch/said"
}
check "what a process that ended had written to stderr" says_why
finish
