#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small models that ask for much, with the tools under limits: a result or one message, no signal; and an optimize that is
# interrupted leaves nothing behind.
set -u
. "$(dirname "$0")/lib.sh"

cpu=20
memory=4194304
if [ -n "${SANITIZE:-}" ]; then # they need address space of their own, and refuse single allocations instead
    cpu=120
    memory=unlimited
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allocator_may_return_null=1:max_allocation_size_mb=2048"
fi

# limited COMMAND...: ends by itself within the limits, and with status 0 to 2; of 2, with one line of message
limited()
{
    local status=0
    (
        ulimit -c 0 -t "$cpu" -v "$memory"
        exec "$@"
    ) >"$scratch/stdout" 2>"$scratch/stderr" || status=$?
    cat "$scratch/stderr"
    [ "$status" -le 2 ] && { [ "$status" != 2 ] || [ -s "$scratch/stderr" ] || [ "$1" = ./graphc ]; }
}

for model in "$srcdir"/tests/data/bounds/*.onnx; do
    name=$(basename "$model" .onnx)
    check "$name, check" limited ./graphc check "$model"
    check "$name, optimize" limited ./graphc optimize "$model" -o "$scratch/$name.grt"
    check "$name, run" limited ./graphrun --threads 1 "$model"
    rm -f "$scratch/$name.grt"
done

names_its_node()
{
    ! ./graphrun --threads 1 "$srcdir/tests/data/bounds/tile_2e62.onnx" >/dev/null 2>"$scratch/stderr"
    grep -q "Tile node 'y'.*too large" "$scratch/stderr" || { cat "$scratch/stderr"; return 1; }
}
check "a result that is too large: its node" names_its_node

# Whenever the signal comes: the process dies of it, or had finished; there is a whole plan or none.
mkdir "$scratch/plans"
models/generate/grt-models resnet50 --width 40 -o "$scratch/resnet50.onnx" >/dev/null
interrupted()
{
    local signal=$1 after=$2 status=0
    rm -f "$scratch/plans"/* "$scratch/plans"/.g*
    ./graphc optimize "$scratch/resnet50.onnx" -o "$scratch/plans/x.grt" >"$scratch/stdout" 2>"$scratch/stderr" &
    sleep "$after"
    kill -s "$signal" $! 2>/dev/null
    wait $! || status=$?
    ls -A "$scratch/plans"
    echo "status $status"
    case $status in
    0) [ "$(ls -A "$scratch/plans")" = x.grt ] ;;
    130 | 143) [ -z "$(ls -A "$scratch/plans")" ] || { [ "$(ls -A "$scratch/plans")" = x.grt ] && ./graphc inspect "$scratch/plans/x.grt"; } ;;
    *) false ;;
    esac
}
for after in 0.02 0.1 0.2 0.4; do
    check "SIGTERM after $after s" interrupted TERM "$after"
done
# When it is at work depends on the machine.
cancelled()
{
    local after
    for after in 0.05 0.1 0.2 0.05 0.1 0.2 0.4 0.8 1.6 0.03 0.15 0.3 0.6; do
        interrupted TERM "$after" && grep -q "cancelled" "$scratch/stderr" && return
    done
    return 1
}
if [ -z "${SANITIZE:-}" ]; then check "an interrupted optimize says so" cancelled; fi
finish
