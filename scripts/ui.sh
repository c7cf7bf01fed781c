# SPDX-License-Identifier: Apache-2.0
# Progress for the scripts: sourced, not run. Every step is one line, "[2/5] building ... done (12 s)"; its output goes to a log
# that is shown only if the step fails. On a terminal the line also shows what the log last said.
# shellcheck shell=bash

ui_step=0
ui_steps=${ui_steps:-0}
ui_logs=${ui_logs:-build/logs}

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Show the end of a log while process $1 writes it; only on a terminal.
ui_follow()
{
    local pid=$1 log=$2 title=$3 start=$SECONDS last width
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.5
        width=$(($(tput cols 2>/dev/null || echo 80) - ${#title} - 12))
        last=$(tail -n 1 "$log" 2>/dev/null | tr -cd '[:print:]')
        ((width > 0)) && printf '\r\033[K%s (%d s) %s' "$title" $((SECONDS - start)) "${last:0:width}"
    done
    printf '\r\033[K'
}

# step TITLE COMMAND...: run it with a line of progress; on failure show the end of its log and return its status.
step()
{
    local title=$1 log start=$SECONDS status=0
    shift
    ui_step=$((ui_step + 1))
    ((ui_steps > 0)) && title="[$ui_step/$ui_steps] $title"
    mkdir -p "$ui_logs"
    log=$ui_logs/step-$ui_step.log
    : >"$log"
    if [ -t 1 ]; then
        "$@" >"$log" 2>&1 &
        ui_follow $! "$log" "$title"
        wait $! || status=$?
    else
        ("$@") >"$log" 2>&1 || status=$?
    fi
    if ((status == 0)); then
        say "$title ... done ($((SECONDS - start)) s)"
    else
        say "$title ... FAILED"
        tail -n 40 "$log" | sed 's/^/    /'
        say "    (all of it: $log)"
    fi
    return "$status"
}
