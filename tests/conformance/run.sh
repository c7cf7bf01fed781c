#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every conformance case there is with `graphrun check`: official node tests, old suites, light models, exported models,
# models of other runtimes.
# usage: run.sh BUILD-DIR [--every N] [--jobs N] [--timeout SECONDS]    (--every N: each N-th case only, --timeout of a case: for slow builds)
#
# expected_failures.txt names the cases that are known to fail, each with the reason. They are run: one that passes is a failure, so
# that the list cannot go stale; so is one that crashes or hangs. not_run.txt names those whose result is a matter of chance. Both
# count as skipped. The last line is the totals.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD-DIR [--every N] [--jobs N] [--timeout SECONDS]}" && pwd) || exit 1
shift
every=1
jobs=$(nproc)
limit=120
while (($# > 1)); do
    case $1 in
    --every) every=$2 ;;
    --jobs) jobs=$2 ;;
    --timeout) limit=$2 ;;
    *) break ;;
    esac
    shift 2
done
(($# == 0)) || { echo "run.sh: unknown argument $1" >&2 && exit 2; }
. "$here/../../scripts/totals.sh"

data=${GRAPHRT_TEST_DATA:-$build/data}
work=$build/conformance
mkdir -p "$work"
expected=$work/expected
cp "$here/expected_failures.txt" "$expected"
"$here/unpack.sh" "$data" || exit 1

# Decoders of images are optional.
if [ ! -e "$build/libgraphrt-image.so" ]; then
    for case in "$data"/node/test_image_decoder_*; do
        echo "${case##*/}: configure found no libraries to decode images with"
    done >>"$expected"
fi

# Directories of the cases of a suite.
list_suite() { (cd "$data" && find "$1" -mindepth 2 -maxdepth 2 \( -name model.onnx -o -name data.json \) -printf '%h\n' | sort -u); }

run_suite()
{
    local suite=$1 title=$2 totals
    shift 2
    if [ ! -d "$data/$suite" ]; then
        echo "skipped: $title: its archive is not in ../shared/data"
        skipped=$((skipped + 1))
        return
    fi
    list_suite "$suite" | awk -v every="$every" 'NR % every == 0' >"$work/cases"
    cat "$work/cases" >>"$work/all"
    skipped=$((skipped + $(sed 's,.*/,,' "$work/cases" | grep -cxFf "$work/not_run")))
    awk -F / 'FILENAME == ARGV[1] { out[$0]; next } !($NF in out)' "$work/not_run" "$work/cases" >"$work/cases.run"
    mv "$work/cases.run" "$work/cases"
    [ -s "$work/cases" ] || return
    # One call for all: the list is far below the length that a command line may have.
    (cd "$data" && xargs -a "$work/cases" -x -s 1000000 "$build/graphrun" check --verbose --jobs "$jobs" --timeout "$limit" --expect "$expected" "$@") \
        >"$work/out" 2>&1
    totals=$(tail -n 1 "$work/out" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    if [ -z "$totals" ]; then
        echo "$title: graphrun check stopped without its last line; it ended with:"
        tail -n 5 "$work/out"
        failed=$((failed + 1))
        return
    fi
    echo "$title: $totals"
    grep '^FAIL' "$work/out" | cut -c 1-400
    read -r p f s < <(sed -E 's/[^0-9]+/ /g' <<<"$totals")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    # An expected failure is a message, not a crash and not a time limit.
    while read -r line; do
        echo "expected to fail with a message: ${line:0:300}"
        failed=$((failed + 1)) skipped=$((skipped - 1))
    done < <(grep -E '^SKIP .*(crashed: signal|took more than)' "$work/out")
}

# Steps of exported models, as recognised.txt counts them: a model that is computed right may still be slow.
run_recognised()
{
    local title="exported models, steps that are found" model ops p=0 f=0
    if [ ! -d "$data/given" ] || [ ! -x "$build/graphc" ]; then
        echo "skipped: $title: its archive is not in ../shared/data, or graphc is not built"
        skipped=$((skipped + 1))
        return
    fi
    while IFS=: read -r model ops; do
        read -ra ops <<<"$ops"
        if timeout "$limit" "$build/graphc" inspect "$data/given/$model/model.onnx" "${ops[@]/#/--expect=}" >"$work/out" 2>&1; then
            p=$((p + 1))
        else
            echo "FAIL $model: $(tail -n 1 "$work/out" | cut -c 1-400)"
            grep '^  near miss' "$work/out" | cut -c 1-400
            f=$((f + 1))
        fi
    done < <(grep -v '^#' "$here/recognised.txt" | awk -v every="$every" 'NR % every == 0')
    echo "$title: $p passed, $f failed, 0 skipped"
    passed=$((passed + p)) failed=$((failed + f))
}

names_in() { sed -nE 's/^[[:space:]]*([^#:[:space:]][^:]*):.*/\1/p' "$@" | sort -u; }

: >"$work/all"
names_in "$here/not_run.txt" >"$work/not_run"
run_suite node "node tests"
run_suite data/simple "old suites: simple"
run_suite data/pytorch-converted "old suites: pytorch-converted"
run_suite data/pytorch-operator "old suites: pytorch-operator"
run_suite data/real "light models"
# Their references are float32 sums of PyTorch's: the exact (float64) result itself is up to 4e-7 away from them, so that the official
# atol of 1e-7 would test luck. At 1e-7, one element of one model (timm_test_resnet) is outside, here and in ONNX Runtime.
run_suite given "exported models" --atol 1e-6
# The same through a plan file, whose constants are packed; and on another kind of device, which unpacks them.
run_suite given "exported models, as plans" --atol 1e-6 --plan cpu
run_suite given "exported models, as plans of another device" --atol 1e-6 --plan cpu --device mirror --fallback cpu
run_recognised

# Operators of com.microsoft and ai.onnx.ml, one a case: tests/data/contrib.py.
run_suite contrib "com.microsoft and ai.onnx.ml operators"
# Models of other runtimes' test suites, with what ONNX Runtime's CPU kernels make of them, unoptimised.
run_suite peers/given "peers' models"

# A name on the list that is no case is a mistake, if all suites are here to tell.
if ((every == 1)) && [ -d "$data/data" ] && [ -d "$data/given" ] && [ -d "$data/peers" ]; then
    while read -r name; do
        echo "$name in expected_failures.txt or not_run.txt is not a case"
        failed=$((failed + 1))
    done < <(comm -13 <(sed 's,.*/,,' "$work/all" | sort -u) \
        <(names_in "$expected" "$here/not_run.txt"))
fi
if ((passed == 0)); then
    echo "nothing passed"
    failed=$((failed + 1))
fi
totals_print
