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

# The page of a benchmark shows what --json says: each figure of each row, as many columns, points and bars as there are entries.
page=$scratch/page.html
report=$scratch/report.json
pictured() { ./graphrun bench "$model" --device "$1" --threads 1 --seconds 0.1 --concurrency 1,3 --report "$page" --json >"$report" && tests/scripts/json_valid "$srcdir/docs/reports.schema.json" bench <"$report"; }
# numbers KEY: those of the report by that name, in their order, as the page has them.
numbers() { grep -oE "\"$1\": [-0-9.e+]+" "$report" | awk -v format="$2" '{ printf format "\n", $2 }'; }
cells() { grep -E '^<tr><td class=l>(one context|[0-9]+ client)' "$page" | sed -E 's/<\/?tr>//g; s/<td[^>]*>//g; s/<\/td>/ /g; s/^(one context|[0-9]+ clients?) //' | cut -d' ' -f "$1"; }
# alike A B: equal figures, line by line, but for one unit of the last digit: the report has rounded them once already.
alike()
{
    paste -d' ' "$1" "$2" | awk '{ digits = index($2, ".") ? length($2) - index($2, ".") : 0; unit = 10 ^ -digits; off = $1 - $2 }
        NF != 2 || off > 1.01 * unit || off < -1.01 * unit { print $0, "differ"; bad = 1 } END { exit bad || NR == 0 }'
}
same_figures()
{
    local column=1 key
    alike <(numbers throughput_per_s %.2f) <(cells 1) || return 1
    for key in min p50 p90 p95 p99 p99_9 max mean; do
        column=$((column + 1))
        alike <(numbers "$key" %.4g | head -3) <(cells "$column") || { echo "$key differs" && return 1; }
    done
    [ "$(grep -c '"up_to_ms"' "$report")" = $(($(grep -o '<rect class=a' "$page" | wc -l) + 1)) ] &&
        [ "$(grep -c '"clients"' "$report")" = "$(grep -o '<circle' "$page" | wc -l)" ] &&
        [ "$(grep -c '"thread":' "$report")" = "$(grep -o '<rect class="k k-[a-z-]*" x=' "$page" | wc -l)" ] &&
        [ "$(grep -c '"rss_bytes"' "$report")" = "$(sed -n '/<h3>Memory/,$p' "$page" | grep -o '<polyline.*' | grep -oE '[0-9.]+,[0-9.]+' | wc -l)" ]
}
for device in cpu mirror:0; do
    check "a page of a benchmark on $device" pictured "$device"
    check "its figures are those of --json ($device)" same_figures
done
# The mix has a row for all requests and one for each model, whose figures are those of --json, and pictures of its own.
mixed_page()
{
    ./graphrun bench "$model" "$model" --device mirror:0 --threads 1 --seconds 0.1 --concurrency 1,3 --together --report "$page" --json >"$report" &&
        tests/scripts/json_valid "$srcdir/docs/reports.schema.json" bench_together <"$report" && tests/scripts/json_has together.timeline.0.thread:integer together.memory.1.ms:number <"$report" || return 1
    sed -n '/<h2>2 models together/,$p' "$page" >"$scratch/mix.html"
    sed -i '1,/"together": {/d' "$report"
    cells() { grep -E '^<tr><td class=l>' "$scratch/mix.html" | sed -E 's/<td class=l>[^<]*<\/td>//; s/<\/?tr>//g; s/<td[^>]*>//g; s/<\/td>/ /g' | cut -d' ' -f "$1"; }
    [ "$(cells 1 | wc -l)" = 6 ] && alike <(numbers throughput_per_s %.2f | sort -n) <(cells 1 | sort -n) &&
        [ "$(grep -c '<h3>Throughput\|<h3>Timeline\|<h3>Memory' "$scratch/mix.html")" = 3 ] &&
        [ "$(grep -c '"clients"' "$report")" = "$(grep -o '<circle' "$scratch/mix.html" | wc -l)" ] && grep -q 'of each, [0-9.]* of their time-slices' "$scratch/mix.html"
}
check "a page of models together" mixed_page
check "the page needs nothing else" sh -c "! grep -qE '<script|<link|src=|href=|url\(|@import' '$page'"

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
