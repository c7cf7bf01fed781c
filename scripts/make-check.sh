#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `make check` in a build directory and counts what the test programs counted themselves.
# usage: scripts/make-check.sh BUILD-DIR; the last line is "N passed, N failed, N skipped".
set -u
. "$(dirname "$0")/totals.sh"
build=${1:?usage: make-check.sh BUILD-DIR}
cd "$build" || exit 1

find . -name '*.trs' -not -path './data/*' -delete
make -j"$(nproc)" check >make-check.log 2>&1
status=$?

while read -r trs; do
    log=${trs%.trs}.log
    result=$(sed -n 's/^:test-result: *//p' "$trs" | head -n 1)
    # The totals line of the test, if it has one and agrees with its exit status; otherwise the test counts as one.
    totals=$(tail -n 3 "$log" 2>/dev/null | grep -E '^[0-9]+ passed, [0-9]+ failed' | tail -n 1)
    p=0 f=0 s=0
    if [ -n "$totals" ]; then
        read -r p f s < <(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?.*/\1 \2 0\4/' <<<"$totals")
        s=$((10#$s)) # a nought stands in front of it
    fi
    case $result in
    PASS*) ((p + s > 0)) || p=1 ;;
    SKIP*) ((s > 0)) || s=1 ;;
    *) ((f > 0)) || f=1 ;;
    esac
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    echo "$(basename "${trs%.trs}"): $result, $p passed, $f failed, $s skipped"
    if ((f > 0)); then
        tail -n 60 "$log" | sed 's/^/    /'
    elif ((s > 0)); then
        grep -i 'skip' "$log" | head -n 5 | sed 's/^/    /'
    fi
done < <(find . -name '*.trs' -not -path './data/*' | sort)

if ((passed + failed + skipped == 0)) || { ((status != 0)) && ((failed == 0)); }; then
    echo "make check failed:"
    tail -n 40 make-check.log | sed 's/^/    /'
    failed=$((failed + 1))
fi
totals_print
