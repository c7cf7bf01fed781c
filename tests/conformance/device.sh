#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every conformance case there is on a device: `make check-cuda`, or from a bundle.
# usage: device.sh BUILD-OR-BUNDLE-DIR DEVICE [--jobs N] [--json FILE]
#
# Each case runs without help from the CPU first. Where the device has no kernel for a node, that must be for an op that
# DEVICE_cpu_only.txt names with the reason; then the case runs again with --fallback cpu, and counts as skipped if it passes so.
# Everything else is as in run.sh: expected_failures.txt and not_run.txt hold here too, a name on a list that no case needs is a
# failure, and the last line is the totals. --json writes the figures per suite.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: device.sh BUILD-DIR DEVICE}" && pwd) || exit 1
device=${2:?usage: device.sh BUILD-DIR DEVICE}
shift 2
jobs=$(nproc) json=
while (($# > 1)); do
    case $1 in
    --jobs) jobs=$2 ;;
    --json) json=$2 ;;
    *) break ;;
    esac
    shift 2
done
(($# == 0)) || { echo "device.sh: unknown argument $1" >&2 && exit 2; }
. "$here/../../scripts/totals.sh"

graphrun=$build/graphrun
[ -x "$build/bin/graphrun" ] && graphrun=$build/bin/graphrun
data=${GRAPHRT_TEST_DATA:-$build/data}
work=$build/conformance-${device%%:*}
cpu_only=$here/${device%%:*}_cpu_only.txt
digits=$here/../../models/digits/digits.onnx
[ -e "$digits" ] || digits=$here/../data/digits.onnx
mkdir -p "$work"
"$here/unpack.sh" "$data" || exit 1

names_in() { sed -nE 's/^[[:space:]]*([^#:[:space:]][^:]*):.*/\1/p' "$@" | sort -u; }
names_in "$here/not_run.txt" >"$work/not_run"
[ -e "$cpu_only" ] || : >"$work/none"
sed -nE 's/^([^#[:space:]]+)[[:space:]].*/\1/p' "$([ -e "$cpu_only" ] && echo "$cpu_only" || echo "$work/none")" | sort -u >"$work/cpu_only"
: >"$work/needed"
rows=
# Decoders of images are a module that is optional; where a bundle runs, the libraries that it needs may be missing.
images=$(compgen -G "$build/libgraphrt-image.so" || compgen -G "$build/lib*/graphrt/libgraphrt-image.so")
if [ -z "$images" ] || ldd "$images" | grep -q 'not found'; then
    (cd "$data/node" && printf '%s\n' test_image_decoder_*) >>"$work/not_run"
    sed -i '/^ImageDecoder$/d' "$work/cpu_only"
fi

# check LOG ARGUMENT...: the cases listed in $work/cases
check()
{
    local log=$1
    shift
    : >"$log"
    [ -s "$work/cases" ] || return
    (cd "$data" && xargs -a "$work/cases" -x -s 1000000 "$graphrun" check --device "$device" --verbose --jobs "$jobs" \
        --expect "$here/expected_failures.txt" "$@") >"$log" 2>&1
}
count() { grep -c "^$1 " "$2"; }

run_suite()
{
    local suite=$1 title=$2 strict fallback f s n
    shift 2
    if [ ! -d "$data/$suite" ]; then
        echo "skipped: $title: its archive is not here"
        skipped=$((skipped + 1))
        return
    fi
    (cd "$data" && find "$suite/" -mindepth 2 -maxdepth 2 \( -name model.onnx -o -name data.json \) -printf '%h\n' | sort -u) >"$work/all"
    n=$(wc -l <"$work/all")
    awk -F / 'FILENAME == ARGV[1] { out[$0]; next } !($NF in out)' "$work/not_run" "$work/all" >"$work/cases"
    s=$((n - $(wc -l <"$work/cases")))
    check "$work/${suite//\//-}-strict.log" "$@"
    if ! tail -n 1 "$work/${suite//\//-}-strict.log" | grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'; then
        echo "$title: graphrun check stopped without its last line; it ended with:"
        tail -n 5 "$work/${suite//\//-}-strict.log"
        failed=$((failed + 1))
        return
    fi
    strict=$(count PASS "$work/${suite//\//-}-strict.log")
    s=$((s + $(count SKIP "$work/${suite//\//-}-strict.log")))
    # Refused for want of kernels: the ops named must all be on the list.
    grep -E '^FAIL .*(has no kernel for it|control flow runs on the CPU only)' "$work/${suite//\//-}-strict.log" >"$work/refused"
    grep -E '^FAIL' "$work/${suite//\//-}-strict.log" | grep -vxFf "$work/refused" | cut -c 1-400
    f=$(($(count FAIL "$work/${suite//\//-}-strict.log") - $(wc -l <"$work/refused")))
    while read -r line; do
        sed -E 's/^FAIL [^:]*: ([a-z]+(:[0-9]+)?: )?//; s/;/\n/g' <<<"$line" |
            sed -nE "s/^ *([A-Za-z0-9_.:]+) node '.*(has no kernel for it|control flow runs on the CPU only).*/\1/p" | sort -u >"$work/ops"
        cat "$work/ops" >>"$work/needed"
        if comm -23 "$work/ops" "$work/cpu_only" | grep -q .; then
            echo "${line:0:300}"
        else
            sed -E 's/^FAIL ([^:]*):.*/\1/' <<<"$line"
        fi
    done <"$work/refused" >"$work/kept"
    grep '^FAIL' "$work/kept"
    f=$((f + $(count FAIL "$work/kept")))
    grep -v '^FAIL' "$work/kept" | sort >"$work/names"
    awk -F / 'FILENAME == ARGV[1] { keep[$0]; next } $NF in keep' "$work/names" "$work/all" >"$work/cases"
    check "$work/${suite//\//-}-fallback.log" --fallback cpu "$@"
    fallback=$(count PASS "$work/${suite//\//-}-fallback.log")
    grep '^FAIL' "$work/${suite//\//-}-fallback.log" | cut -c 1-400
    f=$((f + $(count FAIL "$work/${suite//\//-}-fallback.log")))
    s=$((s + $(count SKIP "$work/${suite//\//-}-fallback.log")))
    echo "$title: $strict of $n pass on $device alone, $fallback more with the CPU's help, $f failed, $s not expected to pass"
    rows="$rows${rows:+,
}    {\"suite\": \"$title\", \"cases\": $n, \"alone\": $strict, \"with_cpu\": $fallback, \"failed\": $f, \"not_expected\": $s}"
    passed=$((passed + strict)) failed=$((failed + f)) skipped=$((skipped + fallback + s))
}

run_suite node "node tests"
run_suite data/simple "old suites: simple"
run_suite data/pytorch-converted "old suites: pytorch-converted"
run_suite data/pytorch-operator "old suites: pytorch-operator"
run_suite data/real "light models"
run_suite given "exported models" --atol 1e-6 # see run.sh
run_suite families "small exports of families" --atol 1e-5
given() { [ ! -d "$data/given" ] || (cd "$data" && "$graphrun" check --device "$device" --atol 1e-6 --jobs "$jobs" "$@" given); }
[ -d "$data/given" ] && totals_run "$work/given-cpu.log" given --plan cpu # no layouts or weights made for this kind of device
# Plans made for this very GPU bring chosen algorithms and generated kernels. A precision's tolerance is its own.
graphc=${graphrun%run}c
gpu=$("$graphc" devices 2>/dev/null | sed -nE "s/^${device%%:*}:0 .*, (sm_[0-9]+)$/\1/p")
functions=$here/../data/cases/pointwise # every pointwise function
totals_run "$work/weights.log" "$graphrun" check --device "$device" --rtol 0 --atol 0 ${gpu:+--plan "$gpu"} "$here/../data/cases/weights"
totals_run "$work/rolls.log" "$graphrun" check --device "$device" --rtol 0 --atol 0 ${gpu:+--plan "$gpu"} "$here/../data/cases/rolls"
totals_run "$work/decoder.log" "$graphrun" check --device "$device" --rtol 0.02 --atol 0.03 ${gpu:+--plan "$gpu"} "$here/../data/cases/decoder"
if [ -n "$gpu" ]; then
    [ -d "$data/given" ] && totals_run "$work/given-chosen.log" given --plan "$gpu"
    for precision in "" tf32 fp16 bf16; do
        totals_run "$work/functions.log" "$graphrun" check --device "$device" --plan "$gpu" ${precision:+--precision "$precision"} "$functions"
        [ -n "$precision" ] && [ -d "$data/given" ] &&
            totals_run "$work/given-$precision.log" "$graphrun" check --device "$device" --plan "$gpu" --precision "$precision" --jobs "$jobs" "$data/given"
    done
fi
# All of them: a session that may compile nothing has nothing left to interpret.
plan_has_its_kernels()
{
    "$generate" "$@" -o "$work/kernels.onnx" && "$graphc" optimize --target "$gpu" "$work/kernels.onnx" -o "$work/kernels.grt" &&
        GRAPHRT_ALGO_CACHE=off GRAPHRT_COMPILE=never "$graphrun" --device "$device" --explain-load "$work/kernels.grt" | grep -E 'generated kernels:' |
        tee /dev/stderr | grep -qE 'generated kernels: [0-9]+ from the plan$'
}
generate=$build/models/generate/grt-models
[ -x "$build/bin/grt-models" ] && generate=$build/bin/grt-models
if [ -n "$gpu" ] && [ -x "$generate" ]; then
    for model in "parallel_fcn --batch 1" "parallel_fcn --batch 256" "parallel_fcn --n 700 --inputs 12 --hidden 24 --batch 256" "chain --nodes 200"; do
        # shellcheck disable=SC2086 # the model and its options
        if plan_has_its_kernels $model >"$work/kernels.log" 2>&1; then
            passed=$((passed + 1))
        else
            echo "FAIL kernels of the plan of $model: $(tail -n 1 "$work/kernels.log")"
            failed=$((failed + 1))
        fi
    done
fi
for tool in "$build/bin/interface" "$build/tests/interface/interface"; do # what every device promises, below the API
    [ -x "$tool" ] || continue
    totals_run "$work/interface.log" "$tool" --device "$device"
done
for tool in "$build/bin/device" "$build/tests/device/device"; do # the API beside the caller's own use of CUDA
    case $device in cuda*) ;; *) continue ;; esac
    [ -x "$tool" ] || continue
    totals_run "$work/device.log" "$tool" --model "$digits"
done

if [ -d "$data/data" ]; then
    while read -r op; do
        echo "$op in $(basename "$cpu_only") is needed by no case"
        failed=$((failed + 1))
    done < <(comm -23 "$work/cpu_only" <(sort -u "$work/needed"))
fi
if ((passed == 0)); then
    echo "nothing passed"
    failed=$((failed + 1))
fi
if [ -n "$json" ]; then
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    printf '{\n  "date": "%s",\n  "what": "conformance of the %s backend",\n  "machine": "%s",\n  "suites": [\n%s\n  ]\n}\n' \
        "$(date +%F)" "${device%%:*}" "$gpu" "$rows" >"$json"
fi
totals_print
