#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The instruction set levels below this machine's highest, at which everything else in make check runs: the unit tests and the
# differential tests once for each, so that kernels for older processors are tested on newer ones.
set -u
. "$(dirname "$0")/lib.sh"

model=$srcdir/models/digits/digits.onnx
levels=$(tests/unit/unit --isa) || exit 99
highest=${levels##* }
echo "levels of this machine: $levels; ${GRAPHRT_CPU_ISA:-$highest} for the other tests of make check"

says() { local want=$1; shift; "$@" 2>&1 | grep -q -- "$want"; }
at() { local level=$1; shift; GRAPHRT_CPU_ISA=$level DNNL_VERBOSE=1 ONEDNN_VERBOSE=1 "$@"; }

refuse 2 "a word that is no level" env GRAPHRT_CPU_ISA=sse9 ./graphrun "$model"
check "the message names it and the levels" says "GRAPHRT_CPU_ISA is 'sse9'; expected base, avx2, avx512 or amx" \
    env GRAPHRT_CPU_ISA=sse9 ./graphrun "$model"
check "an empty word is none" env GRAPHRT_CPU_ISA= ./graphrun "$model"
check "a level above the machine's is the machine's" env GRAPHRT_CPU_ISA=amx ./graphrun "$model"
if [ "$highest" = base ]; then
    skip "the cap" "this machine has one level only"
else
    check "oneDNN is capped, too: base" says "isa:.*SSE4.1" at base ./graphrun "$model"
    check "oneDNN is capped, too: avx2" says "isa:.*AVX2" at avx2 ./graphrun "$model"
fi

check "weights of few bits at $highest" tests/differential/differential --op MatMul,Gemm,Gather --count 600
for level in $levels; do
    [ "$level" != "$highest" ] || continue
    if [ -n "${SANITIZE:-}" ]; then
        skip "tests at $level" "too slow under sanitizers, where the highest level runs"
        continue
    fi
    check "unit tests at $level" env GRAPHRT_CPU_ISA="$level" tests/unit/unit
    check "differential tests at $level" env GRAPHRT_CPU_ISA="$level" tests/differential/differential
    check "weights of few bits at $level" env GRAPHRT_CPU_ISA="$level" tests/differential/differential --op MatMul,Gemm,Gather --count 600
done
finish
