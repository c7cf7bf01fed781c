#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the example programs on the model that ships with the project.
set -u
. "$(dirname "$0")/lib.sh"
digits=$srcdir/models/digits

# At least 98% of the held-out images are read, from the ONNX file as from a plan.
reads_digits()
{
    examples/digits "$1" "$digits/test_images.npy" "$digits/test_labels.npy" | tee "$scratch/digits" &&
        awk '/^accuracy/ { sub("%", "", $2); found = $2 >= 98 && $4 == 450 } END { exit !found }' "$scratch/digits" &&
        grep -q '^latency' "$scratch/digits"
}
plan() { ./graphc optimize "$digits/digits.onnx" -o "$scratch/digits.grt"; }

check "plan of the digits model" plan
check "digits from ONNX" reads_digits "$digits/digits.onnx"
check "digits from a plan" reads_digits "$scratch/digits.grt"
check "threads on one session" examples/threads "$scratch/digits.grt" 4 20
check "changing shapes" examples/dynamic_shapes "$scratch/digits.grt"
check "a pool on the CPU" examples/pool "$digits/digits.onnx" cpu 300
check "a pool on eight devices" examples/pool "$digits/digits.onnx" mirror 300
check "a service on the CPU" examples/service "$digits/digits.onnx" cpu 400
check "a service on a device" examples/service "$digits/digits.onnx" mirror:0 400
check "a service that is interrupted" ends_when_interrupted 0 examples/service "$digits/digits.onnx" cpu 1000000000
check "a pool whose process is killed" examples/processes "$digits/digits.onnx" cpu
check "runs until a deadline" examples/stop "$digits/digits.onnx" 200
# x -> doubled 2^60 times
base64 -d >"$scratch/endless.onnx" <<<'CAg60gEKlQEKBXRyaXBzCgAKAXgSAXkiBExvb3AqfgoEYm9keTJzCg4KAXMKAXMSAW4iA0FkZAoRCgFjEgJnbyIISWRlbnRpdHkSBGJvZHlaCwoBaRIGCgQIBxIAWgsKAWMSBgoECAkSAFoPCgFzEgoKCAgBEgQKAggBYgwKAmdvEgYKBAgJEgBiDwoBbhIKCggIARIECgIIAaABBRIBZyoTEAdCBXRyaXBzSggAAAAAAAAAEFoPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCAhAR'
check "a Loop until a deadline" examples/stop "$scratch/endless.onnx" 200
check "a Loop until an interrupt" ends_when_interrupted 3 examples/stop "$scratch/endless.onnx" 60000

# h' = tanh(h W + x)
base64 -d >"$scratch/recurrent.onnx" <<<'CAk61QIKGAoBaAoBVxIBYRoFcmVjdXIiBk1hdE11bAoTCgFhCgF4EgFiGgNhZGQiA0FkZAoZCgFiEgZoX25leHQaBnNxdWFzaCIEVGFuaAoyCgZoX25leHQKBGF4ZXMSAXkaA3N1bSIJUmVkdWNlU3VtKg8KCGtlZXBkaW1zGACgAQISCXJlY3VycmVudCpLCAQIBBABQgFXSkCamRk/zczMPc3MzD3NzMw9zczMPZqZGT/NzMw9zczMPc3MzD3NzMw9mpkZP83MzD3NzMw9zczMPc3MzD2amRk/KhQIARAHQgRheGVzSggBAAAAAAAAAFoYCgF4EhMKEQgBEg0KBxIFYmF0Y2gKAggEWhgKAWgSEwoRCAESDQoHEgViYXRjaAoCCARiFAoBeRIPCg0IARIJCgcSBWJhdGNoYh0KBmhfbmV4dBITChEIARINCgcSBWJhdGNoCgIIBEIECgAQEg=='
check "streams with state on the CPU" examples/state "$scratch/recurrent.onnx" cpu h_next=h
check "streams with state on a device" examples/state "$scratch/recurrent.onnx" mirror:0 h_next=h 12 30
check "streams in a pool on the CPU" examples/streams "$scratch/recurrent.onnx" cpu h_next=h
check "streams in a pool on a device" examples/streams "$scratch/recurrent.onnx" mirror:0 h_next=h 12 30
check "a plan that declares state" sh -c "./graphc optimize '$scratch/recurrent.onnx' --state h_next=h -o '$scratch/recurrent.grt' && ./graphc inspect '$scratch/recurrent.grt' | grep -q 'graphrt.state: h_next=h'"
traces() { examples/trace "$digits/digits.onnx" "$1" "$scratch/trace.json" 5 && tests/scripts/json_has traceEvents.0.ts:number traceEvents.20.tid:integer <"$scratch/trace.json" && grep -qF '"name":"Conv conv1' "$scratch/trace.json"; }
check "a trace of a pool on the CPU" traces cpu
check "a trace of a pool on a device" traces mirror:0
check "memory within its prediction on the CPU" sh -c "examples/memory '$digits/digits.onnx' cpu | grep -q 'the session has .* MiB, had .* at most'"
check "memory within its prediction on a device" examples/memory "$digits/digits.onnx" mirror:0
in_time() { examples/latency "$digits/digits.onnx" "$@" | grep -qE '^in time \([-0-9.e]+ ms\): [0-9]+, late: [0-9]+; .* others beside them$'; }
check "requests with deadlines beside others on the CPU" in_time cpu 200 20000
check "requests with deadlines beside others on a device" in_time mirror:0 200 20000
check "requests that are all late" in_time cpu 50 0.000001
replaced() { examples/weights "$digits/digits.onnx" "$@" | grep -qE '^2 weights replaced [0-9]+ times: [1-9][0-9]* results of one set, [1-9][0-9]* of the other, 0 of neither$'; }
check "weights replaced while the CPU serves" replaced fc.weight,fc.bias cpu 200
check "weights replaced while a device serves" replaced fc.weight,fc.bias mirror:0 200
refuse 1 "weights that are none" examples/weights "$digits/digits.onnx" none
# Weights of 25 MB in a file of their own, of which the library sees the bytes.
external() { models/generate/grt-models resnet50 --width 8 --size 32 --external -o "$scratch/external.onnx"; }
check "a model with external weights" external
check "weights out of memory" sh -c "examples/buffers '$scratch/external.onnx' '$scratch/external.onnx.data' | grep -q 'has 1000 elements'"
refuse 1 "weights of another name" examples/buffers "$scratch/external.onnx" "$scratch/external.onnx.data" other.data
moved() { examples/faults "$digits/digits.onnx" "$@" | tee "$scratch/moved" && grep -q 'moved 5 times' "$scratch/moved" && grep -qF "$1 requests: $1 answered, 0 failed" "$scratch/moved"; }
check "sessions that move between CPU and device" moved 2000 cpu mirror:0
check "sessions that move between devices" moved 2000 mirror:0 mirror:1 mirror:2
check "the slowest steps" sh -c "examples/profile '$digits/digits.onnx' cpu 5 | grep -q '^ *[0-9.]* ms  Conv conv1'"
refuse 2 "state of an input that is none" ./graphc optimize "$scratch/recurrent.onnx" --state h_next=none -o "$scratch/none.grt"

# A custom operator: known only where its library is named, at compile time as where the plan is run.
window=examples/.libs/custom_ops.so
model=$srcdir/examples/custom_ops.onnx
window_runs() { ./graphrun "$@" --shape signal=2x8 --input signal=zeros --json | tr -d ' \n' | grep -q '"name":"frames","kind":"tensor","dtype":"float32","shape":\[2,3,3\]'; }
check "a custom operator is checked" ./graphc check --custom-ops "$window" "$model"
check "a custom operator runs" window_runs --custom-ops "$window" "$model"
check "a custom operator in a plan" ./graphc optimize --custom-ops "$window" "$model" -o "$scratch/window.grt"
check "a plan with a custom operator runs" window_runs --custom-ops "$window" "$scratch/window.grt"
check "the dims of its outputs are expressions" sh -c "./graphc inspect --custom-ops '$window' '$model' | grep -q 'frames: float32\[rowsx'"
refuse 2 "a custom operator without its library" ./graphrun "$scratch/window.grt"
refuse 2 "its own rule speaks" ./graphrun --custom-ops "$window" "$model" --shape signal=2x2
refuse 2 "a library that is none" ./graphrun --custom-ops "$model" "$model"

for example in digits threads dynamic_shapes pool service state stop streams trace profile memory latency weights buffers faults; do
    refuse 2 "$example says how it is used" examples/$example
done
refuse 1 "a missing model is an error" examples/threads "$scratch/none.grt"
refuse 1 "labels are not images" examples/digits "$digits/digits.onnx" "$digits/test_labels.npy" "$digits/test_labels.npy"
finish
