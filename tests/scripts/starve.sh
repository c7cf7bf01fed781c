#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Memory, address space and threads run out: an error that says so, and no crash. Every allocation of a
# process fails once, in whatever library it is made; tests/starve/refuse.c names the exceptions.
#   STARVE_MODELS='a.onnx b.onnx'   further models whose every allocation is to fail; inputs are tensors, no strings
set -u
. "$(dirname "$0")/lib.sh"
model=$srcdir/models/digits/digits.onnx
if [ -n "${SANITIZE:-}" ]; then
    skip "memory that runs out" "sanitizers bring allocators of their own"
    finish
fi
export GRAPHRT_ALGO_CACHE=off
${CC:-cc} -shared -fPIC -O1 "$(dirname "$0")/starve.c" -o "$scratch/starve.so" -ldl || exit 99

# starve LEAST COMMAND...: from the first allocation of our library on, from the second on... with growing steps, until the
# command succeeds, after LEAST allocations or more.
starve()
{
    local least=$1 at=0 status=2
    shift
    while [ "$status" = 2 ]; do
        at=$((at + 1 + at / 16))
        status=0
        STARVE_AT=$at LD_PRELOAD=$scratch/starve.so OMP_NUM_THREADS=1 timeout 60 "$@" >"$scratch/starved" 2>&1 || status=$?
        if [ "$status" = 2 ] && ! told; then
            echo "allocation $at: the message does not speak of memory:" && head -n 3 "$scratch/starved"
            return 1
        fi
    done
    echo "$at allocations, exit status $status" && tail -n 3 "$scratch/starved"
    [ "$status" = 0 ] && [ "$at" -gt "$least" ]
}
told() { grep -q "memory" "$scratch/starved" && ! grep -q " 0 bytes" "$scratch/starved"; }

# limit FIRST STEP LAST COMMAND...: with so many KiB of address space, the command succeeds, or says that it lacks memory,
# or cannot be loaded; both of the former happen.
limit()
{
    local first=$1 step=$2 last=$3 kib status good=0 bad=0
    shift 3
    for kib in $(seq "$first" "$step" "$last"); do
        status=0
        (ulimit -v "$kib" && exec timeout 60 "$@") >"$scratch/starved" 2>&1 || status=$?
        case $status in
        0) good=$((good + 1)) ;;
        2) if told; then bad=$((bad + 1)); else status=message; fi ;;
        127) ;;
        esac
        case $status in 0 | 2 | 127) ;; *)
            echo "$kib KiB: $status" && tail -n 3 "$scratch/starved"
            return 1
            ;;
        esac
    done
    echo "$good succeeded, $bad lacked memory"
    [ "$good" -gt 0 ] && [ "$bad" -gt 0 ]
}

# One allocation fails, each in its turn, in whatever library, from opening the model to the end of the second run.
# Threads that spin while they wait for each other, on a busy machine, make a run of seconds one of minutes.
every()
{
    GOMP_SPINCOUNT=1000 timeout 300 tests/starve/starve "$@"
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

check "every allocation of a convolutional network" every "$model"
check "the same with two threads" every --threads 2 "$model"
models/generate/grt-models bert --layers 1 --hidden 32 --heads 2 --vocab 50 --seq sym -o "$scratch/bert.onnx" >/dev/null
check "every allocation of a transformer" every "$scratch/bert.onnx"
tar -xJf "$srcdir/tests/data/onnx-node-opset28.tar.xz" -C "$scratch" node/test_loop11/model.onnx
check "every allocation of a loop" every "$scratch/node/test_loop11/model.onnx"
for further in ${STARVE_MODELS:-}; do
    check "every allocation of $further" every "$further"
done

for threads in 1 4; do
    check "little address space, $threads threads" limit 30000 15000 210000 ./graphrun "$model" --threads "$threads"
done
# What the header promises, with the stack of the first thread and of OpenMP's.
little_stack() { (ulimit -s 128 && OMP_STACKSIZE=128k exec "$@") >"$scratch/starved" 2>&1 || { tail -n 3 "$scratch/starved" && false; }; }
check "little stack, compiling" little_stack ./graphc optimize "$model" -o "$scratch/digits.grt"
check "little stack, a plan" little_stack ./graphrun "$scratch/digits.grt" --threads 2
check "little stack, a convolutional network" little_stack ./graphrun "$model" --threads 2
check "little stack, a transformer" little_stack ./graphrun "$scratch/bert.onnx" --threads 2
check "little stack, a loop" little_stack ./graphrun "$scratch/node/test_loop11/model.onnx" --threads 2
check "few threads" tests/starve/few_threads "$model"
finish
