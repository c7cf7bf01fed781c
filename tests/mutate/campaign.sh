#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mutates models on many cores, from a directory that tests/mutate/bundle.sh has made.
#
#   campaign.sh SECONDS [JOBS]     JOBS: processes at a time (as many as there are processors)
#
# Everything happens in ${CAMPAIGN_DIR:-campaign.work}: logs/ holds what each process has said, findings.txt the failures with their seeds
# and the sanitizers' summaries. SEED=N starts elsewhere (default: 1). The last line is "N mutants, N failed in N s"; the exit status is 0 if
# none failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:?usage: campaign.sh SECONDS [JOBS]}
jobs=${2:-$(nproc)}
work=${CAMPAIGN_DIR:-campaign.work}
mkdir -p "$work/logs" && cd "$work" || exit 2
[ -d mutate ] || tar -xzf "$here/mutate.tar.gz" || exit 2
export LD_LIBRARY_PATH=$PWD/mutate/lib GRAPHRT_ALGO_CACHE=off OMP_NUM_THREADS=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Quarantine of freed memory is limited to what one mutant needs.
export ASAN_OPTIONS="detect_leaks=1:quarantine_size_mb=32:malloc_context_size=12:${ASAN_OPTIONS:-}"
# Each process takes seeds of its own, this many at a time.
share=250
apart=10000000

mutate_on() # JOB
{
    local first=$((${SEED:-1} + $1 * apart)) round=0
    while [ "$SECONDS" -lt "$end" ]; do
        mutate/mutate --limit 30 --seed $((first + round * share)) --count "$share" mutate/pool >>"logs/$1.log" 2>&1
        round=$((round + 1))
    done
}
sum() { cat logs/*.log | awk -v word="$1" '/ passed, [0-9]+ failed, / { n += word == "passed" ? $1 : $3 } END { printf "%d", n }'; }

rm -f logs/*
end=$((SECONDS + seconds))
for ((job = 0; job < jobs; job++)); do
    mutate_on "$job" &
done
wait
grep -hE '^FAIL|^SUMMARY|runtime error' logs/*.log >findings.txt
head -n 40 findings.txt
cat logs/*.log | awk '/ refused, .* failed in a run/ { r += $1; f += $3; ok += $8 } END { print r " refused, " f " failed in a run, " ok " ran" }'
failed=$(sum failed)
echo "$(($(sum passed) + failed)) mutants, $failed failed in $seconds s"
[ "$failed" = 0 ] && [ ! -s findings.txt ]
