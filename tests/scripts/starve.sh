#!/bin/bash
# Memory that runs out, at every allocation of the library's: an error that says so, no crash, and nothing else.
set -u
. "$(dirname "$0")/lib.sh"
model=$srcdir/models/digits/digits.onnx
if [ -n "${SANITIZE:-}" ]; then
    skip "memory that runs out" "sanitizers bring allocators of their own"
    finish
fi
${CC:-cc} -shared -fPIC -O1 "$(dirname "$0")/starve.c" -o "$scratch/starve.so" -ldl || exit 99

# starve LEAST COMMAND...: from the first allocation on, from the second on... until the command succeeds, after LEAST failures or more.
starve()
{
    local least=$1 at=0 status=2
    shift
    while [ "$status" = 2 ]; do
        at=$((at + 1))
        status=0
        STARVE_AT=$at LD_PRELOAD=$scratch/starve.so OMP_NUM_THREADS=1 timeout 60 "$@" >"$scratch/starved" 2>&1 || status=$?
        if [ "$status" = 2 ] && ! grep -q "memory" "$scratch/starved"; then
            echo "allocation $at: the message does not speak of memory:" && head -n 3 "$scratch/starved"
            return 1
        fi
    done
    echo "$at allocations, exit status $status" && tail -n 3 "$scratch/starved"
    [ "$status" = 0 ] && [ "$at" -gt "$least" ]
}

check "while compiling" starve 50 ./graphc optimize "$model" -o "$scratch/digits.grt"
# Rewrites of operators of other domains make many nodes, attributes and constants.
if tar -xJf "$srcdir/tests/data/contrib.tar.xz" -C "$scratch" contrib/decoder_beams contrib/mha_bias; then
    check "while rewriting" starve 50 ./graphc optimize "$scratch/contrib/decoder_beams/model.onnx" -o "$scratch/beams.grt"
    check "while rewriting, dims first" starve 50 ./graphc optimize "$scratch/contrib/mha_bias/model.onnx" -o "$scratch/bias.grt"
fi
check "while running" starve 50 ./graphrun "$model" --threads 1
check "while running a plan" starve 20 ./graphrun "$scratch/digits.grt" --threads 1
check "while running on a device" starve 50 ./graphrun "$model" --device mirror --threads 1
finish
