#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# graphc optimize --precision: nodes by name, and what `auto` chooses within an error.
set -u
. "$(dirname "$0")/lib.sh"

digits=$srcdir/models/digits
model=$digits/digits.onnx
data=$scratch/data
mkdir "$data"
for ((i = 0; i < 8; i++)); do
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
        tail -c +$((129 + i * 256)) "$digits/test_images.npy" | head -c 256
    } >"$data/$i.npy"
done

# auto E PLAN: what was said is in $scratch/said; the plan is for the CPU, with what was chosen for GPUs. Without the CUDA module
# the search runs all the same, and the plan for a GPU cannot be made.
auto()
{
    ./graphc optimize "$model" --target cuda --precision auto --data "$data" --max-error "$1" -o "$2.cuda" >"$scratch/said" 2>"$scratch/errors" ||
        grep -q "the module 'cuda' cannot be opened" "$scratch/errors" || return 1
    chosen=$(sed -n 's/^precision: //p' "$scratch/said")
    [ -n "$chosen" ] && ./graphc optimize "$model" --precision "$chosen" -o "$2"
}
chose() { grep -q "^chosen: $1" "$scratch/said"; }
options() { ./graphc inspect "$1" >"$scratch/out"; grep -qE "$2" "$scratch/out" || { head -n 3 "$scratch/out"; return 1; }; }
reads_digits() { examples/digits "$1" "$digits/test_images.npy" "$digits/test_labels.npy" | awk '/^accuracy/ { sub("%", "", $2); found = $2 >= 98 && $4 == 450 } END { exit !found }'; }
refuses() { ! "$@" >"$scratch/out" 2>&1 && grep -q "$words" "$scratch/out"; }

check "a loose limit" auto 0.1 "$scratch/loose.grt"
check "a loose limit: all layers" chose "fp16 for all layers"
check "a loose limit: what the plan says" options "$scratch/loose.grt" "precision fp16$"
check "a loose limit: accuracy" reads_digits "$scratch/loose.grt"
# named GPU WORDS: what is chosen for a GPU that is named.
named() { ./graphc optimize "$model" --target "$1" --precision auto --data "$data" --max-error 0.1 -o "$scratch/named.grt" >"$scratch/said" 2>"$scratch/errors" || grep -q "the module 'cuda' cannot be opened" "$scratch/errors" && chose "$2"; }
check "a GPU with products of float8" named h100 "float8 for 1 of 4 layers"
check "a GPU without" named a100 "fp16 for all layers"
# Large convolutions: a picture made of the digits.
large=$srcdir/tests/data/large_convolutions.onnx
mkdir "$scratch/pictures"
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 640, 720), }"
    for ((i = 0; i < 16; i++)); do tail -c +129 "$digits/test_images.npy" | head -c 115200; done
} >"$scratch/pictures/0.npy"
# pictures GPU ERROR WORDS...: what is chosen for that GPU within the error.
pictures()
{
    ./graphc optimize "$large" --target "$1" --precision auto --data "$scratch/pictures" --max-error "$2" -o "$scratch/named.grt" >"$scratch/said" 2>"$scratch/errors" ||
        grep -q "the module 'cuda' cannot be opened" "$scratch/errors" && grep -q "$3" "$scratch/said"
}
check "large convolutions" pictures h100 0.1 "^chosen: int8 for 2 of 2 layers"
# leaves_none COMMAND...: as the command, and no model in the directory of temporary files.
leaves_none() { mkdir "$scratch/left" && TMPDIR=$scratch/left "$@" && rmdir "$scratch/left"; }
check "large convolutions, few of which may have 8 bits: no model is left behind" leaves_none pictures h100 0.0006 "int8 for .* of 2 layers: too few\|int8 for no layer"
check "a GPU with products of float8, a limit that nothing reaches: no model is left behind" leaves_none sh -c "./graphc optimize '$model' --target h100 --precision auto --data '$data' --max-error 1e-9 -o '$scratch/named.grt' >'$scratch/said' 2>&1; grep -q 'float8 for' '$scratch/said'"
check "large convolutions, an older GPU" pictures a100 0.1 "^chosen: fp16 for all layers"
check "a limit between" auto 0.0006 "$scratch/mixed.grt"
check "a limit between: some layers" chose "fp16 for .* error 0.000[0-5]"
check "a limit between: what the plan says" options "$scratch/mixed.grt" "precision fp16,.*=fp32"
check "a limit between: accuracy" reads_digits "$scratch/mixed.grt"
mv "$scratch/said" "$scratch/before"
check "the same again" auto 0.0006 "$scratch/again.grt"
choice() { sed '/ steps, /d' "$1"; } # without the line about the plan, which has its name and the time that it took
check "the same again: the same choice" diff <(choice "$scratch/said") <(choice "$scratch/before")
check "a limit that nothing reaches" auto 1e-9 "$scratch/wide.grt"
check "a limit that nothing reaches: float32" chose float32
# As ONNX's reference evaluator: the same bits, and within two units in the last place where terms are added up in another order.
case_of() { ./graphrun check --precision "$1" --rtol "$2" --atol "$3" "$srcdir/tests/data/cases/exact_$4"; }
for type in float16 bfloat16; do
    check "$type, every node rounded" case_of exact 0 0 "steps_$type"
    check "$type, every node rounded: sums" case_of exact 2e-3 8e-3 "sums_$type"
    refuse 1 "$type, steps of several nodes" case_of fp32 0 0 "steps_$type"
done
check "every node rounded: what the plan says" sh -c "./graphc optimize '$srcdir/tests/data/cases/exact_steps_float16/model.onnx' --precision exact -o '$scratch/exact.grt' >/dev/null && ./graphc inspect '$scratch/exact.grt' | grep -q 'precision exact'"
# For the CPU: 8 bits within the error; what was chosen is in the plan.
cpu() { ./graphc optimize "$model" --precision auto --data "$data" --max-error "$1" -o "$2" >"$scratch/said"; }
within() { awk -v most="$1" '/^chosen: int8/ { found = $NF > 0 && $NF <= most } END { exit !found }' "$scratch/said"; }
check "the CPU, a loose limit" cpu 0.05 "$scratch/bytes.grt"
check "the CPU, a loose limit: 8 bits, and the error is kept" within 0.05
check "the CPU, a loose limit: what the plan says" options "$scratch/bytes.grt" "graphrt.quantize.*static: [0-9] of [0-9] layers in int8; error .* at most 0.05"
check "the CPU, a loose limit: accuracy" reads_digits "$scratch/bytes.grt"
check "the CPU, a limit between" cpu 0.008 "$scratch/few.grt"
check "the CPU, a limit between: 8 bits, and the error is kept" within 0.008
check "the CPU, a limit between: why layers are float32" sh -c "./graphc inspect --json '$scratch/few.grt' | grep -q 'graphrt.quantize.*float32: .*put back to float32, for the model'"
check "the CPU, a limit between: the same plan twice" sh -c "./graphc optimize '$model' --precision auto --data '$data' --max-error 0.008 -o '$scratch/few2.grt' >/dev/null && cmp '$scratch/few.grt' '$scratch/few2.grt'"
check "the CPU, a limit that nothing reaches" cpu 1e-9 "$scratch/wide.grt"
check "the CPU, a limit that nothing reaches: float32" chose "float32.*above max_error"
check "the CPU, bfloat16" ./graphc optimize "$model" --precision bf16 -o "$scratch/products.grt"
check "the CPU, bfloat16: accuracy" reads_digits "$scratch/products.grt"
for level in base avx2 avx512 amx; do
    check "the CPU, bfloat16, at most $level: near float32" env "GRAPHRT_CPU_ISA=$level" ./graphrun compare "$scratch/wide.grt" "$scratch/products.grt" --tolerance 0.01
    check "the CPU, bfloat16, at most $level: not float32" sh -c "! GRAPHRT_CPU_ISA=$level ./graphrun compare '$scratch/wide.grt' '$scratch/products.grt' --tolerance 1e-5"
done
check "the CPU, bfloat16, but for a node" sh -c "./graphc optimize '$model' --precision bf16,fc=fp32 -o '$scratch/one.grt' && ./graphrun compare '$scratch/wide.grt' '$scratch/one.grt' --tolerance 1e-5"
check "no model is left behind" sh -c "mkdir '$scratch/tmp' && TMPDIR='$scratch/tmp' ./graphc optimize '$model' --precision auto --data '$data' --max-error 0.05 -o '$scratch/t.grt' >/dev/null && rmdir '$scratch/tmp'"
check "nodes by name" ./graphc optimize "$model" --precision 'fp16,conv*=fp32' -o "$scratch/named.grt"
words="no node for 'head=fp32'"
check "a name of no node" refuses ./graphc optimize "$model" --precision fp16,head=fp32 -o "$scratch/none.grt"
words="one of them can be in a plan"
check "two narrow types" refuses ./graphc optimize "$model" --precision fp16,fc=bf16 -o "$scratch/none.grt"
words="exact, which stands alone"
check "exact, with exceptions" refuses ./graphc optimize "$model" --precision exact,fc=fp32 -o "$scratch/none.grt"
words="there is no precision"
check "no precision" refuses ./graphc optimize "$model" --precision fp16,fc=fp8 -o "$scratch/none.grt"
words="wants samples"
check "auto without samples" refuses ./graphc optimize "$model" --precision auto -o "$scratch/none.grt"
words="are for --precision auto"
check "samples without auto" refuses ./graphc optimize "$model" --data "$data" -o "$scratch/none.grt"
finish
