#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What bench/gpu_speed.py does without a GPU: which rows are wanted, what is made of what was measured, README's table, and locks
# that processes share. Plain Python, without packages.
set -u
. "$(dirname "$0")/lib.sh"

export PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    skip "the bench's rows" "no Python"
else
    for name in rows table turns; do
        check "bench/test_speed.py: $name" python3 "$srcdir/bench/test_speed.py" -k "$name"
    done
fi
finish
