#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writers that are interrupted, killed or out of space: existing files stay whole, no temporary files remain.
set -u
. "$(dirname "$0")/lib.sh"
model=$srcdir/models/digits/digits.onnx
${CC:-cc} -shared -fPIC -O1 "$(dirname "$0")/interrupt.c" -o "$scratch/interrupt.so" -ldl || exit 99
# Sanitizers want to be the first library.
shim=$scratch/interrupt.so
[ -z "${SANITIZE:-}" ] || shim="$(${CC:-cc} -print-file-name=libasan.so) $shim"

# What a model says of zeros, and random numbers.
answer() { ./graphrun "$1" --threads 1 | grep -v '^load'; }
./graphc optimize "$model" -o "$scratch/one.grt" >/dev/null && ./graphc optimize "$model" --precision bf16 -o "$scratch/two.grt" >/dev/null || exit 99
answer "$scratch/one.grt" >"$scratch/one"
answer "$scratch/two.grt" >"$scratch/two"
check "two models that can be told apart" sh -c "! cmp -s '$scratch/one' '$scratch/two'"

# replace FILES OPTION...: kill graphc at each change of the directory, until it gets through; in the end there are so many files.
replace()
{
    local at=0 status=137 directory=$scratch/replaced files=$1
    shift
    while [ "$status" = 137 ]; do
        at=$((at + 1))
        rm -rf "$directory"
        mkdir "$directory"
        ./graphc optimize "$model" -o "$directory/k.grt" "$@" >/dev/null || return 1
        status=0
        (KILL_AT=$at LD_PRELOAD=$shim ./graphc optimize "$model" --precision bf16 -o "$directory/k.grt" "$@") >/dev/null 2>&1 || status=$?
        answer "$directory/k.grt" >"$scratch/found" || return 1
        cmp -s "$scratch/found" "$scratch/one" || cmp -s "$scratch/found" "$scratch/two" || return 1
        ./graphc optimize "$model" --precision bf16 -o "$directory/k.grt" "$@" >/dev/null || return 1
        answer "$directory/k.grt" | cmp - "$scratch/two" || return 1
        [ "$(find "$directory" -type f | wc -l)" = "$files" ] || { find "$directory" && return 1; }
    done
    echo "killed $((at - 1)) times, exit status $status"
    [ "$status" = 0 ] && [ "$at" -gt 2 ]
}
check "a plan that is replaced by one who is killed" replace 1
check "the same with external weights" replace 2 --external-weights

# Somebody opens the plan all the while, and gets one or the other.
reads_whole()
{
    local n=0
    while [ ! -e "$scratch/done" ]; do
        answer "$scratch/k.grt" >"$scratch/read" || return 1
        cmp -s "$scratch/read" "$scratch/one" || cmp -s "$scratch/read" "$scratch/two" || return 1
        n=$((n + 1))
    done
    echo "$n reads"
}
replaced_while_read()
{
    rm -f "$scratch/done"
    ./graphc optimize "$model" -o "$scratch/k.grt" --external-weights >/dev/null || return 1
    (for i in 1 2 3 4 5 6 7 8; do
        ./graphc optimize "$model" -o "$scratch/k.grt" --external-weights --precision "$([ $((i % 2)) = 0 ] && echo fp32 || echo bf16)"
    done >/dev/null
    touch "$scratch/done") &
    reads_whole
    local status=$?
    wait
    return "$status"
}
check "a plan that is replaced while it is read" replaced_while_read

interrupted()
{
    SHORT=1 LD_PRELOAD=$shim ./graphc optimize "$model" -o "$scratch/short.grt" && cmp "$scratch/short.grt" "$scratch/one.grt"
}
check "signals and short writes" interrupted

# No room, as on a full disk: files may have 4 KiB.
full()
{
    (trap '' XFSZ && ulimit -f 4 && exec "$@")
}
# x float32[N] -> y = -x, a .npy; and -> [x, -x], a .pb
base64 -d >"$scratch/npy.onnx" <<<'CAg6NAoLCgF4EgF5IgNOZWcSAWdaEAoBeBILCgkIARIFCgMSAU5iEAoBeRILCgkIARIFCgMSAU5CBAoAEBE='
base64 -d >"$scratch/pb.onnx" <<<'CAg6VgoLCgF4EgF5IgNOZWcKHAoBeAoBeRIBeiIRU2VxdWVuY2VDb25zdHJ1Y3QSAWdaEAoBeBILCgkIARIFCgMSAU5iFAoBehIPIg0KCwoJCAESBQoDEgFOQgQKABAR'
no_room()
{
    local status=0
    rm -rf "$scratch/outputs"
    full ./graphrun "$scratch/$1.onnx" --output-dir "$scratch/outputs" --shape x=8192 || status=$?
    [ "$status" = 2 ] && [ -z "$(ls -A "$scratch/outputs")" ]
}
roomy()
{
    full ./graphrun "$scratch/$1.onnx" --output-dir "$scratch/outputs" --shape x=64 && [ -n "$(ls "$scratch/outputs"/*."$1")" ]
}
for kind in npy pb; do
    check "no room for a .$kind" no_room $kind
    check "room for a small one" roomy $kind
    cp -r "$scratch/outputs" "$scratch/before-$kind"
    (full ./graphrun "$scratch/$kind.onnx" --output-dir "$scratch/outputs" --shape x=8192) >/dev/null 2>&1
    check "a large one without room leaves it as it was" diff -r "$scratch/outputs" "$scratch/before-$kind"
done

# x -> doubled 2^60 times: interrupted, it says so and ends as a shell expects, soon, whatever waits behind it.
base64 -d >"$scratch/endless.onnx" <<<'CAg60gEKlQEKBXRyaXBzCgAKAXgSAXkiBExvb3AqfgoEYm9keTJzCg4KAXMKAXMSAW4iA0FkZAoRCgFjEgJnbyIISWRlbnRpdHkSBGJvZHlaCwoBaRIGCgQIBxIAWgsKAWMSBgoECAkSAFoPCgFzEgoKCAgBEgQKAggBYgwKAmdvEgYKBAgJEgBiDwoBbhIKCggIARIECgIIAaABBRIBZyoTEAdCBXRyaXBzSggAAAAAAAAAEFoPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCAhAR'
stopped()
{
    local begin=$SECONDS
    ends_when_interrupted 130 ./graphrun "$scratch/endless.onnx" "$@" >"$scratch/stopped" 2>&1
    local status=$?
    cat "$scratch/stopped"
    [ $((SECONDS - begin)) -lt 30 ] && [ "$status" = 0 ] && grep -q 'interrupted: 0 of' "$scratch/stopped"
}
check "a run that is interrupted" stopped
check "runs that are interrupted" stopped --repeat 1000 --contexts 2 --threads 1
check "runs that are interrupted on a device" stopped --repeat 3 --device mirror --fallback cpu
finish
