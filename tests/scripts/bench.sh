#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What bench/ does without a GPU. bench/gpu_speed.py: which rows are wanted, what is made of what was measured, README's table, locks
# that processes share, the order of tasks, a run with processes that only say that they measure, and whether its prediction still
# reaches all rows. Builds in turns, the clock, models side by side, errors of products. Plain Python; what needs packages is skipped without them.
set -u
. "$(dirname "$0")/lib.sh"

export PYTHONDONTWRITEBYTECODE=1
tests()
{
    local file=$1 name
    shift
    for name in "$@"; do
        check "bench/$file: $name" python3 "$srcdir/bench/$file" -k "$name"
    done
}

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    skip "the bench's tests" "no Python"
else
    tests test_speed.py rows table turns
    tests test_run.py schedule run prediction
    tests test_tables.py builds clock side_by_side moved
    if python3 -c 'import numpy, onnx' 2>/dev/null; then
        tests test_tables.py accuracy in_process
    else
        skip "bench/test_tables.py: accuracy in_process" "no numpy, or no onnx"
    fi
fi
finish
