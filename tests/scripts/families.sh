#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small models of many families, as both of PyTorch's exporters write them (tests/data/families.py): results are PyTorch's, and
# plans have the steps that tests/conformance/families.txt asks for: for the CPU, and for GPUs where the module of their kernels
# is built, as no GPU is needed to compile for one. Each model counts once for its results and once for its steps.
set -u
. "$(dirname "$0")/lib.sh"
data=${GRAPHRT_TEST_DATA:-data}
every=1
[ -z "${SANITIZE:-}" ] || every=8 # such programs are many times slower
jobs=$(nproc)
targets=cpu
[ ! -e libgraphrt-cuda.so ] || targets="cpu cuda"

# steps_of CASE EXPECTATION...: "OP=N" or "OP<=N" for all targets, "TARGET:OP..." for one. A line for what is wrong.
steps_of()
{
    local case=$1 plan target want said
    plan=$scratch/$case.grt
    shift
    for target in $targets; do
        local expect=()
        for want; do
            case $want in
            "$target":*) expect+=("--expect=${want#*:}") ;;
            *:*) ;;
            *) expect+=("--expect=$want") ;;
            esac
        done
        said=$({ ./graphc optimize "$data/families/$case/model.onnx" --target "$target" -o "$plan" >/dev/null &&
            ./graphc inspect "$plan" "${expect[@]}" >/dev/null; } 2>&1) || echo "FAILED: $case, $target: ${said//$'\n'/; }"
        rm -f "$plan"
    done
}

# What there is to do for the Nth of $jobs: every such line of the list.
steps_of_share()
{
    local case wants
    while IFS=: read -r case wants; do
        read -ra wants <<<"$wants"
        steps_of "$case" "${wants[@]}"
    done < <(awk -v n="$1" -v jobs="$jobs" 'NR % jobs == n' "$scratch/list")
}

unpack() { "$srcdir/tests/conformance/unpack.sh" "$data"; }
check "cases" unpack
grep -vE '^(#|$)' "$srcdir/tests/conformance/families.txt" | awk -v every="$every" 'NR % every == 0' >"$scratch/list"

# Every case has its line, and every line its case.
listed() { diff <(grep -vE '^(#|$)' "$srcdir/tests/conformance/families.txt" | cut -d : -f 1 | sort) <(cd "$data/families" && printf '%s\n' * | sort); }
check "families.txt lists the models of the archive" listed

cut -d : -f 1 "$scratch/list" | sed "s,^,$data/families/," >"$scratch/cases"
xargs -a "$scratch/cases" -x -s 1000000 ./graphrun check --jobs "$jobs" --timeout 120 --atol 1e-5 >"$scratch/results" 2>&1
grep '^FAIL' "$scratch/results" | cut -c 1-400
if read -r p f s < <(tail -n 1 "$scratch/results" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p'); then
    echo "results: $p passed, $f failed, $s skipped"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
else
    tail -n 5 "$scratch/results"
    failed=$((failed + 1))
fi

for ((n = 0; n < jobs; n++)); do steps_of_share "$n" >"$scratch/wrong.$n" & done
wait
cat "$scratch"/wrong.*
f=$(cat "$scratch"/wrong.* | cut -d , -f 1 | sort -u | grep -c .)
p=$(($(wc -l <"$scratch/list") - f))
echo "steps, for $targets: $p passed, $f failed"
passed=$((passed + p)) failed=$((failed + f))
finish
