#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the three fuzz targets on many cores, from a directory that tests/fuzz/bundle.sh has made (make fuzz-bundle).
#
#   campaign.sh SECONDS [JOBS]     JOBS: processes at a time (as many as there are processors)
#
# Everything happens in ${CAMPAIGN_DIR:-campaign.work} and is continued there. At the end it has
#   artifacts/  inputs that crashed, leaked, hung (20 s) or took too much memory, TARGET-KIND-HASH
#   corpus.tar.gz  what is worth keeping, merged: unpacked in build-fuzz/ it is where tests/fuzz/run.sh and bundle.sh look
#   logs/       of every process
# The last line is "N executions, N artifacts in N s"; the exit status is 0 if there are no artifacts.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:?usage: campaign.sh SECONDS [JOBS]}
jobs=${2:-$(nproc)}
work=${CAMPAIGN_DIR:-campaign.work}
mkdir -p "$work/artifacts" "$work/logs" && cd "$work" || exit 2
[ -d fuzz ] || tar -xzf "$here/fuzz.tar.gz" || exit 2
targets="import plan run"
export LD_LIBRARY_PATH=$PWD/fuzz/lib GRAPHRT_FUZZ_POOL=$PWD/fuzz/pool GRAPHRT_ALGO_CACHE=off
export OMP_NUM_THREADS=1 UBSAN_OPTIONS=print_stacktrace=1
# Quarantine of freed memory is limited to what one input needs.
export ASAN_OPTIONS="quarantine_size_mb=32:malloc_context_size=8:${ASAN_OPTIONS:-}"
for target in $targets; do
    if [ ! -d "corpus/$target" ]; then
        mkdir -p "corpus/$target" && cp -R "fuzz/seeds/$target/." "corpus/$target/" || exit 2
    fi
done

fuzz() # TARGET ARGUMENT...
{
    local target=$1
    shift
    "fuzz/bin/fuzz_$target" -entropic=0 -timeout=20 -rss_limit_mb=3000 -malloc_limit_mb=1000000 -max_len=32768 \
        -artifact_prefix="artifacts/$target-" "$@"
}

# Processes are restarted until the time is over: a finding ends a process, not the campaign.
work_on() # TARGET JOB
{
    local round=0 left
    while left=$((end - SECONDS)) && [ "$left" -gt 0 ]; do
        fuzz "$1" -max_total_time="$left" -print_final_stats=1 -reload=30 -seed=$((RANDOM + 1)) "corpus/$1" \
            >"logs/$1-$2-$round.log" 2>&1
        round=$((round + 1))
        sleep 1
    done
}

# Numbers from the logs of target $1.
executions() { cat logs/"$1"-*.log | awk '/^stat::number_of_executed_units:/ { n += $2 } END { printf "%d", n }'; }
coverage() # TARGET first|most
{
    cat logs/"$1"-*.log | awk -v which="$2" '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") c = $(i + 1)
        if ($2 == "INITED" && (!first || c < first)) first = c; if (c > most) most = c }
        END { printf "%d", which == "first" ? first : most }'
}
merge()
{
    rm -rf "merged/$1"
    mkdir -p "merged/$1"
    fuzz "$1" -merge=1 "merged/$1" "corpus/$1" >"logs/merge-$1" 2>&1
}

rm -f logs/*
end=$((SECONDS + seconds))
for ((job = 0; job < jobs; job++)); do
    # shellcheck disable=SC2086 # a list
    set -- $targets
    shift $((job % 3))
    work_on "$1" "$job" &
done
wait
for target in $targets; do
    merge "$target" &
done
wait
total=0
for target in $targets; do
    n=$(executions "$target")
    total=$((total + n))
    echo "$target: $n executions, coverage $(coverage "$target" first) -> $(coverage "$target" most) edges," \
        "corpus $(find "corpus/$target" -type f | wc -l) files, merged $(find "merged/$target" -type f | wc -l)"
done
mkdir -p packed && rm -rf packed/corpus && mv merged packed/corpus && tar -C packed -czf corpus.tar.gz corpus
found=$(find artifacts -type f | wc -l)
for artifact in artifacts/*; do
    [ -e "$artifact" ] || continue
    echo "$artifact: $(fuzz "$(basename "${artifact%%-*}")" "$artifact" 2>&1 | grep -E '^SUMMARY|runtime error' | head -n 1)"
done | sort -t: -k2 | head -n 40
echo "$total executions, $found artifacts in $seconds s"
[ "$found" = 0 ]
