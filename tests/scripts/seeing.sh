#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What runs did: traces of graphrun, and ranges for profilers, seen by a listener of ours.
set -u
. "$(dirname "$0")/lib.sh"
model=$srcdir/models/digits/digits.onnx
trace=$scratch/trace.json

# Of five runs, five requests that begin and end, wait and are done, on the CPU and on a device; steps with their nodes.
traced()
{
    ./graphrun "$model" --device "$1" --repeat 5 --trace "$trace" >/dev/null && tests/scripts/json_has traceEvents.0.pid:integer <"$trace" || return 1
    for event in '"ph":"b","name":"request"' '"ph":"e","name":"request"' '"ph":"b","name":"queue"' '"name":"copy in"' '"name":"copy out"'; do
        [ "$(grep -oF "$event" "$trace" | wc -l)" = 5 ] || { echo "not five of $event" && return 1; }
    done
    [ "$(grep -oE '"name":"prepare","cat":"prepare"' "$trace" | wc -l)" = 1 ] && grep -qE '"name":"Conv [^"]+","cat":"step"' "$trace"
}
check "a trace of runs on the CPU" traced cpu
check "a trace of runs on a device" traced mirror:0
check "a replayed segment, copies and waiting are in it" sh -c "grep -qF '\"cat\":\"replay\"' '$trace' && grep -qF '\"cat\":\"capture\"' '$trace' && grep -qF '\"cat\":\"upload\"' '$trace' && grep -qF '\"cat\":\"download\"' '$trace' && grep -qF '\"cat\":\"wait\"' '$trace'"

if ! grep -q '^#define HAVE_NVTX3' config.h; then
    skip "ranges for profilers" "built without NVTX's headers (--with-nvtx)"
    finish
fi
flags=$(sed -n 's/^NVTX_CPPFLAGS = //p' Makefile)
# shellcheck disable=SC2086 # several flags
${CC:-cc} -shared -fPIC -O1 $flags "$(dirname "$0")/nvtx_listener.c" -o "$scratch/listener.so" || exit 99
ranges=$scratch/ranges
listened()
{
    NVTX_INJECTION64_PATH=$scratch/listener.so NVTX_LISTENER_LOG=$ranges ./graphrun "$model" --device "$1" --repeat 5 >/dev/null || return 1
    grep -qx 'domain graphrt' "$ranges" && [ "$(grep -c '^begin .* request .* in lane 0$' "$ranges")" = 5 ] && [ "$(grep -c '^end ' "$ranges")" = 5 ]
}
check "ranges of runs on the CPU" listened cpu
check "steps are in their run, with nodes" grep -qE '^1 7 Conv .+' "$ranges"
check "ranges of runs on a device" listened mirror:0
check "replayed segments" grep -qE '^1 8 replay' "$ranges"
check "without a listener there are none" sh -c "NVTX_INJECTION64_PATH= NVTX_LISTENER_LOG='$scratch/none' ./graphrun '$model' >/dev/null && [ ! -e '$scratch/none' ]"
finish
