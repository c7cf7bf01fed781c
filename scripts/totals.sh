# SPDX-License-Identifier: Apache-2.0
# Sums of test counts: sourced, not run. A suite's last line is "N passed, N failed, N skipped"; so is that of what runs suites.
# shellcheck shell=bash

passed=0
failed=0
skipped=0

# totals_of LOG STATUS: "passed failed skipped" of a suite whose output is LOG. Without a last line of totals the suite counts as
# one test; exit status 77 means that it was skipped. A suite that counted no failure but failed has failed once.
totals_of()
{
    local p f s
    if read -r p f s < <(tail -n 1 "$1" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p'); then
        (($2 != 0 && f == 0)) && f=1
    else
        p=0 f=0 s=0
        case $2 in
        0) p=1 ;;
        77) s=1 ;;
        *) f=1 ;;
        esac
    fi
    echo "$p $f $s"
}

# totals_run LOG COMMAND...: run a suite, show its output, add its totals.
totals_run()
{
    local log=$1 p f s
    shift
    mkdir -p "$(dirname "$log")"
    "$@" 2>&1 | tee "$log"
    read -r p f s < <(totals_of "$log" "${PIPESTATUS[0]}")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# The line that is the interface; fails if anything failed.
totals_print()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
