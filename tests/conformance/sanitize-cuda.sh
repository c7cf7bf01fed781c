#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compute-sanitizer over every third node case of the ops whose kernels index by hand and over drawn nodes, or over all cases whose
# names match a pattern.
# usage: sanitize-cuda.sh BUNDLE-DIR DATA-DIR [PATTERN]
# Needs a GPU and CUDA's compute-sanitizer. The last line is the totals.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(cd "${1:?usage: sanitize-cuda.sh BUNDLE-DIR DATA-DIR}" && pwd) data=${2:?usage: sanitize-cuda.sh BUNDLE-DIR DATA-DIR}
. "$here/../../scripts/totals.sh"
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed: skipped" && exit 77; }
export LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} GRAPHRT_BACKEND_PATH=$bundle/lib/graphrt
every=3
pattern='rotary|resize|grid|lstm|gru|rnn|qlinear|integer|linear_attention|causal_conv|hardmax|norm|einsum|dft|nonzero|compress|col2im|roialign|unpool|lppool|deform|int4|float4|e5m2|quantize|cum|slice|pad|split|gather|scatter|reduce|topk|concat|transpose|stft|det|unique|nonmaxsuppression|window|mel|adam|adagrad|momentum'
(($# > 2)) && every=1 pattern=$3
mapfile -t cases < <(find "$data/node" -maxdepth 1 -name 'test_*' | sort | grep -E "$pattern" | awk -v n="$every" 'NR % n == 0')
echo "${#cases[@]} cases"

# errors TOOL LOG: how many, but for reads of the padding in cuDNN's workspace by kernels of cuDNN that change layouts.
errors()
{
    local all vendor=0
    all=$(sed -nE 's/^=+ (ERROR|RACECHECK) SUMMARY: ([0-9]+) .*/\2/p' "$2" | awk '{ n += $1 } END { print n + 0 }')
    [ "$1" = initcheck ] && vendor=$(grep -c '^=*     at .*cudnn::' "$2")
    echo $((all - vendor))
}

# run_tool TOOL WHAT COMMAND...: one test. Each process that used the device has a summary.
run_tool()
{
    local tool=$1 what=$2 log
    shift 2
    log=$(mktemp)
    timeout 280 compute-sanitizer --tool "$tool" --target-processes all --print-limit 0 --show-backtrace no "$@" >"$log" 2>&1
    if grep -qE 'SUMMARY: [0-9]' "$log" && [ "$(errors "$tool" "$log")" = 0 ]; then
        echo "$tool, $what: clean ($(tail -n 40 "$log" | grep -E 'passed, ' | tail -n 1))"
        passed=$((passed + 1))
    else
        echo "$tool, $what: not clean"
        grep -E -A3 -B3 '=========.*(Invalid|Uninitialized|hazard|SUMMARY)' "$log" | head -n 40
        tail -n 5 "$log"
        failed=$((failed + 1))
    fi
    rm -f "$log"
}

# The kernels that only large or 16-bit nodes get are not reached by node cases; drawn ones reach them.
for tool in memcheck initcheck racecheck; do
    run_tool "$tool" "node cases" "$bundle/libexec/graphrun" check --device cuda --fallback cpu --jobs 1 --verbose --timeout 250 \
        --expect "$here/expected_failures.txt" "${cases[@]}"
    (($# > 2)) || run_tool "$tool" "drawn nodes" "$bundle/libexec/differential" --device cuda --op Attention,Transpose,Conv,Concat,LayerNormalization --count 250
done
totals_print
