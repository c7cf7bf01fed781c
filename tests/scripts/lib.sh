# SPDX-License-Identifier: Apache-2.0
# Shared by the test scripts of make check: sourced, not run. They run in the build directory; automake sets srcdir.
# shellcheck shell=bash

srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
passed=0
failed=0
skipped=0
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# What a command said: the lines of Check that name a failure or an error, else the last ones.
show_output()
{
    { grep -aE ':[FE]:' "$scratch/out" || tail -n 30 "$scratch/out"; } | sed 's/^/    /'
}

# check NAME COMMAND...: passes if the command succeeds; otherwise its output is shown.
check()
{
    local name=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        show_output
    fi
}

# refuse STATUS NAME COMMAND...: passes if the command ends with this exit status.
refuse()
{
    local want=$1 name=$2 status=0
    shift 2
    "$@" >"$scratch/out" 2>&1 || status=$?
    if [ "$status" = "$want" ]; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name: exit status $status instead of $want"
        show_output
    fi
}

skip()
{
    skipped=$((skipped + 1))
    echo "skipped: $1: $2"
}

# wait_until COMMAND...: asks until it succeeds; fails if it has not after two minutes, which only a mistake takes.
wait_until()
{
    local end=$((SECONDS + 120))
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

# catches_interrupts PID: true once the process has its own handler of SIGINT, which ends it before that, or is no more.
catches_interrupts()
{
    local caught
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ -z "$caught" ] || (((0x$caught & 2) != 0))
}

# ends_when_interrupted STATUS COMMAND...: passes if the command, interrupted half a second after it can be, ends with this exit status.
ends_when_interrupted()
{
    local want=$1 status=0 pid
    shift
    env --default-signal=INT "$@" & # a shell has its background commands ignore it
    pid=$!
    wait_until catches_interrupts $pid && sleep 0.5
    kill -s INT $pid
    wait $pid || status=$?
    echo "exit status $status"
    [ "$status" = "$want" ]
}

finish()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
