#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# graphc and graphrun from the outside: exit status, reports, saved files, output streams.
set -u
. "$(dirname "$0")/lib.sh"

model=$srcdir/models/digits/digits.onnx
plan=$scratch/digits.grt
input=$(./graphc inspect "$model" | sed -n 's/^ *input *\([^:]*\):.*/\1/p' | head -n 1)

says() { local want=$1; shift; "$@" 2>&1 | grep -q -- "$want" || { "$@" 2>&1 | head; return 1; }; }
silent_stderr() { local text; if text=$("$@" 2>&1 >/dev/null) && [ -z "$text" ]; then return 0; fi; echo "on stderr: $text"; return 1; }
# REPORT COMMAND PATH:TYPE...: the report obeys its schema, and has these fields too.
fields()
{
    local report=$1 command=$2
    shift 2
    $command >"$scratch/report.json"
    tests/scripts/json_valid "$srcdir/docs/reports.schema.json" "$report" <"$scratch/report.json" &&
        tests/scripts/json_has "$@" <"$scratch/report.json"
}
last_line() { local want=$1; shift; [ "$("$@" 2>/dev/null | tail -n 1)" = "$want" ]; }

for command in "graphc" "graphc optimize" "graphc quantize" "graphc check" "graphc inspect" "graphc devices" "graphrun" "graphrun check" "graphrun bench" "graphrun compare"; do
    # shellcheck disable=SC2086 # a command and its sub-command
    check "$command --help" says "usage: $command" ./$command --help
done
check "--version" says "^graphrun [0-9]" ./graphrun --version
for command in "graphc" "graphrun" "graphc nonsense" "graphc optimize" "graphrun --no-such-option x" "graphrun check" \
    "graphrun bench" "graphrun bench --pinned x" "graphc devices --device null" "graphc optimize x --output=" "graphrun bench --repeat 0 x" "graphrun --input x" "graphrun --shape x=2xx3 y"; do
    # shellcheck disable=SC2086 # the same
    refuse 2 "bad use: $command" ./$command
done

# As getopt has it, and help for one command.
check "-V" says "^graphc [0-9]" ./graphc -V
check "help of a command" says "^usage: graphc optimize" ./graphc help optimize
check "help of a command of graphrun" says "^usage: graphrun bench" ./graphrun help bench
refuse 2 "help of no command" ./graphc help nonsense
check "-oFILE" sh -c "./graphc optimize '$model' '-o$scratch/attached.grt' && test -s '$scratch/attached.grt'"
refuse 2 "a value for -h" ./graphc optimize -hx

check "optimize" ./graphc optimize "$model" -o "$plan"
check "optimize again gives the same bytes" sh -c "./graphc optimize '$model' -o '$plan.2' && cmp '$plan' '$plan.2'"
check "no temporary file stays" sh -c "! ls -A '$scratch' | grep -q tmp"
# Killed at any time: the plan is there whole or not at all, and nothing else is.
killed()
{
    local after
    mkdir "$scratch/killed"
    ./models/generate/grt-models mobilenet_v2 -o "$scratch/large.onnx" >/dev/null || return 1
    for after in 0.05 0.1 0.15 0.2 0.25 0.3 0.4; do
        timeout -s KILL "$after" ./graphc optimize "$scratch/large.onnx" -o "$scratch/killed/x.grt" >/dev/null 2>&1
        [ ! -e "$scratch/killed/x.grt" ] || ./graphc inspect "$scratch/killed/x.grt" || return 1
        rm -f "$scratch/killed/x.grt"
    done
    rm "$scratch/large.onnx"
    rmdir "$scratch/killed"
}
check "killed while it writes" killed
# Standard output and pipes.
check "optimize -o -" sh -c "./graphc optimize '$model' -o - >'$scratch/stdout.grt' && cmp '$plan' '$scratch/stdout.grt'"
check "optimize -o -: nothing stays behind" sh -c "mkdir '$scratch/tmp' && TMPDIR='$scratch/tmp' ./graphc optimize '$model' -o - >/dev/null && rmdir '$scratch/tmp'"
# Its reader goes away; it is told to end.
left_alone()
{
    local after
    mkdir "$scratch/tmp"
    TMPDIR=$scratch/tmp ./graphc optimize "$model" -o - | head -c 10 >/dev/null
    for after in 0.01 0.02 0.03 0.05; do
        TMPDIR=$scratch/tmp timeout -s TERM "$after" ./graphc optimize "$model" -o - >/dev/null 2>&1
    done
    rmdir "$scratch/tmp"
}
check "optimize -o - that is ended: nothing stays behind" left_alone
check "optimize -o -: no room is an error" sh -c "! ./graphc optimize '$model' -o - >/dev/full && ! test -e ./-"
check "optimize -o - of an invalid model writes nothing" sh -c "! ./graphc optimize '$plan' -o - >'$scratch/none' && ! test -s '$scratch/none'"
check "optimize, from a pipe into a pipe" sh -c "cat '$model' | ./graphc optimize - -o - | cmp '$plan' -"
check "optimize of /dev/stdin" sh -c "cat '$model' | ./graphc optimize /dev/stdin -o '$scratch/piped.grt' && cmp '$plan' '$scratch/piped.grt'"
check "check of a pipe" sh -c "cat '$model' | ./graphc check -"
check "inspect of a pipe" sh -c "cat '$plan' | ./graphc inspect - --json | tests/scripts/json_has steps:integer"
check "run of a pipe" sh -c "cat '$plan' | ./graphrun - && cat '$model' | ./graphrun /dev/stdin"
check "bench of a pipe" sh -c "cat '$plan' | ./graphrun bench - --seconds 0.05"
check "run of a process's output" bash -c "./graphrun <(cat '$model')"
refuse 2 "an empty standard input" ./graphrun -
refuse 2 "no name for the plan" sh -c "cat '$model' | ./graphc optimize -"
for options in "-o - --json" "-o - --external-weights"; do
    # shellcheck disable=SC2086 # several options
    refuse 2 "bad use: graphc optimize $options" ./graphc optimize "$model" $options
done
for command in "graphc tune $plan --device null -o -" "graphrun check --junit - $scratch" "graphrun $plan --explain-load=-" "graphc cache export -"; do
    # shellcheck disable=SC2086 # a command and its sub-command
    refuse 2 "a file is wanted: ${command%% *}" ./$command
done
check "no file named -" sh -c "! test -e ./-"
check "optimize --json" fields optimize "./graphc optimize $model -o $plan --json" plan:string plan_bytes:integer optimize_ms:number
check "optimize --list-passes" says . ./graphc optimize --list-passes
check "check" says "everything is supported" ./graphc check "$model"
check "check --json" fields support "./graphc check $model --json" supported:boolean findings:array
check "check --device with a number" says "everything is supported on null:3" ./graphc check "$model" --device null:3
refuse 2 "inspect --expect without a number" ./graphc inspect "$model" --expect Relu=
refuse 2 "inspect --expect without an op" ./graphc inspect "$model" --expect '<=3'
refuse 2 "check --device with a bad number" ./graphc check "$model" --device null:x
check "check of a plan" sh -c "! ./graphc check '$plan' 2>'$scratch/said' && grep -q 'this is a plan' '$scratch/said' && ! grep -q 'not a valid' '$scratch/said'"
for file in "$model" "$plan"; do
    kind=${file##*.}
    check "inspect .$kind" says parameters ./graphc inspect "$file"
    check "inspect --json .$kind" fields inspect "./graphc inspect $file --json" nodes:integer steps:integer parameters:integer \
        weights_bytes:integer arena_bytes:integer inputs:array outputs:array inputs.0.name:string inputs.0.shape:array \
        ops:object flops:number memory.default:integer passes:array
    check "inspect --expect .$kind" ./graphc inspect "$file" --expect MatMul=1 --expect Softmax=0
    refuse 1 "inspect --expect another number, .$kind" ./graphc inspect "$file" --expect MatMul=7
    check "inspect --expect at most, .$kind" ./graphc inspect "$file" --expect 'MatMul<=1' --expect 'Softmax<=3' --expect '*<=1000'
    refuse 1 "inspect --expect fewer, .$kind" ./graphc inspect "$file" --expect 'MatMul<=0'
    refuse 1 "inspect --expect fewer of all, .$kind" ./graphc inspect "$file" --expect '*<=1'
    check "inspect --dot .$kind" says "digraph" ./graphc inspect "$file" --dot
    check "run .$kind" says "run .* ms" ./graphrun "$file"
    check "run --json .$kind" fields run "./graphrun $file --json" devices.0.device:string threads:integer runs:integer \
        inputs.0.shape:array results.0.outputs.0.values:array load_ms.total:number first_run_ms:number latency_ms.p50:number
done
check "memory for a wrong shape: nothing else is reported" sh -c "! ./graphc inspect '$plan' --shape '$input=1' >'$scratch/none' && ! test -s '$scratch/none'"
check "memory per shape" fields inspect "./graphc inspect $plan --json --shape $input=8x1x8x8" memory.given_shapes:integer
check "quiet when piped" silent_stderr ./graphrun "$plan" --repeat 50
check "random inputs are named" says "random (seed 0)" ./graphrun "$plan"
check "explain load" says "first run" ./graphrun "$plan" --explain-load
check "null device" ./graphrun "$plan" --device null
# Nobody's choices: they leave no row in the user's cache.
check "the null device stores nothing" sh -c "env -u GRAPHRT_ALGO_CACHE XDG_CACHE_HOME='$scratch/cache' ./graphrun '$plan' --device null &&
    env -u GRAPHRT_ALGO_CACHE XDG_CACHE_HOME='$scratch/cache' ./graphc inspect '$plan' --shape '$input=3x1x8x8' &&
    ! find '$scratch/cache' -name '*.db' 2>/dev/null | grep ."
check "inspect --shape stores nothing anywhere" sh -c "GRAPHRT_ALGO_CACHE='$scratch/inspected.db' ./graphc inspect '$plan' --shape '$input=3x1x8x8' &&
    ! test -e '$scratch/inspected.db'"

# Several devices at once, and lists of inputs: outputs in the order of the inputs, one bad input does not stop the others.
check "two devices" says "mirror:2 .* 5 runs\|mirror:2 .* runs: min" ./graphrun "$plan" --device mirror:0,2 --repeat 10
# A row each: one that had nothing to do has no latencies.
idle()
{
    ./graphrun "$plan" --device null:0-7 --repeat 1000 --json >"$scratch/idle.json" && tests/scripts/json_has devices.7.runs:integer <"$scratch/idle.json" &&
        ./graphrun "$plan" --device null:0-7 | tee "$scratch/idle" | grep '  0 runs: -$' && ! grep '  0 runs: min' "$scratch/idle"
}
check "idle devices" idle
check "all devices" says "20 runs on 8 devices" ./graphrun "$plan" --device null:all --repeat 20
check "ranges" says "4 runs on 3 devices" ./graphrun "$plan" --device null:1-2,7 --repeat 4
check "several devices --json" fields run "./graphrun $plan --device mirror:0-1 --repeat 4 --explain-load --json" devices.1.latency_ms.p50:number \
    results.0.outputs.0.values:array failed:integer throughput_per_s:number load.total_ms:number load.devices.1.device:string \
    load.devices.1.phases.0.begin_ms:number load.devices.1.host_bytes:integer load.devices.0.heuristics:integer
mkdir "$scratch/list"
for i in 1 2 3 4 5; do cp "$srcdir/models/digits/test_images.npy" "$scratch/list/$i.npy"; done
check "a directory of inputs" says "5 runs on 3 devices .* 0 failed" ./graphrun "$plan" --device mirror:0-2 --input "$input=$scratch/list" \
    --output-dir "$scratch/many"
check "outputs of each input" sh -c "ls '$scratch/many/000004/'*.npy && diff -r '$scratch/many/000000' '$scratch/many/000004'"
check "several contexts" says "30 runs on 2 devices .* 0 failed" ./graphrun "$plan" --device mirror:0-1 --contexts 3 --repeat 30
check "a directory, several contexts of one device" says "5 runs on 1 devices .* 0 failed" ./graphrun "$plan" --contexts 2 --input "$input=$scratch/list"
check "a directory, --json" fields run "./graphrun $plan --input $input=$scratch/list --json" results.4.input:string results.4.outputs.0.values:array
echo "no image" >"$scratch/list/3.npy"
check "one bad input, --json" sh -c "! ./graphrun '$plan' --device mirror:0-1 --input '$input=$scratch/list' --json >'$scratch/bad.json' &&
    tests/scripts/json_valid '$srcdir/docs/reports.schema.json' run <'$scratch/bad.json' && tests/scripts/json_has results.2.error:string failed:integer <'$scratch/bad.json'"
refuse 2 "one bad input" ./graphrun "$plan" --device mirror:0-2 --input "$input=$scratch/list"
check "one bad input: the others go on" says "5 runs on 3 devices .* 1 failed" ./graphrun "$plan" --device mirror:0-2 --input "$input=$scratch/list"
check "a directory on one device" says "5 runs on 1 devices" ./graphrun "$plan" --input "$input=$scratch/list"
for list in null:9 null: null:1,1 null:2-1 null:1-x cpu,null none:all null:0-99999999; do
    refuse 2 "bad use: --device $list" ./graphrun "$plan" --device "$list"
done
check "bench, a pool" fields bench "./graphrun bench $plan --device mirror --seconds 0.05 --contexts 2 --pinned --json" 0.pool.contexts:number 0.pool.throughput_per_s:number
check "explain load, each device" says "mirror:1 .* weights: .* from the host" ./graphrun "$plan" --device mirror:0-1 --explain-load
# NonZero of bool[2,2], which the mirror leaves to the CPU: what keeps runs from being replayed is named.
base64 -d >"$scratch/nonzero.onnx" <<'ONNX'
CAcSDGJhY2tlbmQtdGVzdDprChwKCWNvbmRpdGlvbhIGcmVzdWx0IgdOb25aZXJvEhR0ZXN0X25vbnplcm9fZXhhbXBsZVobCgljb25kaXRpb24SDgoMCAkSCAoCCAIKAggCYhgKBnJlc3VsdBIOCgwIBxIICgIIAgoCCANCBAoAEA0=
ONNX
check "explain load, replay" says "not as a graph: NonZero node '.*': it runs on the CPU" ./graphrun "$scratch/nonzero.onnx" --device mirror --fallback cpu \
    --explain-load
check "explain load, replay --json" fields run "./graphrun $scratch/nonzero.onnx --device mirror --fallback cpu --explain-load --json" \
    load.devices.0.replay.op:string load.devices.0.replay.reason:string load.devices.0.replay.graphs:integer
check "explain load as a picture" sh -c "./graphrun '$plan' --device mirror:0-3 '--explain-load=$scratch/load.html' && grep -q 'mirror:3.*open device' '$scratch/load.html' &&
    grep -q '</html>' '$scratch/load.html'"
check "explain load of one device as a picture" sh -c "./graphrun '$plan' '--explain-load=$scratch/one.html' && grep -q 'cpu:0' '$scratch/one.html'"

# ZipMap of float32[1,2] with the labels 7 and 3, and an entry of metadata.
base64 -d >"$scratch/map.onnx" <<'ONNX'
CAg6bQo3CgF4EgF6IgZaaXBNYXAqGwoSY2xhc3NsYWJlbHNfaW50NjRzQAdAA6ABBzoKYWkub25ueC5tbBIGc2NvcmVzWhMKAXgSDgoMCAESCAoCCAEKAggCYhUKAXoSECIOCgwqCggHEgYKBAgBEgBCBAoAEA9CDgoKYWkub25ueC5tbBADchAKBmF1dGhvchIGbm9ib2R5
ONNX
check "a map on standard output" says "map of 2 from int64 to float32 *3: 0 7: 0" ./graphrun "$scratch/map.onnx" --input x=zeros
check "a map --json" fields run "./graphrun $scratch/map.onnx --json" results.0.outputs.0.items.0.keys.values.1:integer \
    results.0.outputs.0.items.0.values.values.1:number
check "inspect a map" says "output *z: sequence of maps to float32" ./graphc inspect "$scratch/map.onnx"
check "inspect a map --json" fields inspect "./graphc inspect $scratch/map.onnx --json" outputs.0.element_kind:string metadata.entries.author:string

# Memory: what is predicted is enough, and a byte less is not.
predicted=$(./graphc inspect "$plan" --json | tr -d '\n ' | sed -n 's/.*"total_bytes":\([0-9]*\).*/\1/p')
check "inspect predicts memory" fields inspect "./graphc inspect $plan --json" memory.session.activations_bytes:integer memory.session.device:string
check "inspect says what a session has" says "session .* on cpu: weights" ./graphc inspect "$plan"
check "a limit of the predicted memory" ./graphrun "$plan" --memory-limit "$predicted"
refuse 2 "a limit of a byte less" ./graphrun "$plan" --memory-limit $((predicted - 1))
check "it names the node and the bytes" says "memory_limit is $((predicted - 1)) bytes.*node '\|node '.*memory_limit is $((predicted - 1)) bytes" \
    ./graphrun "$plan" --memory-limit $((predicted - 1))

# Compared tensor by tensor: a plan with its model, with the same in half precision, and with one whose weights differ from some layer on.
check "compare a plan with its model" says "^all within the tolerance" ./graphrun compare "$model" "$plan"
check "compare with half precision" sh -c "./graphc optimize '$model' --precision fp16 -o '$scratch/half.grt' >/dev/null && ./graphrun compare '$model' '$scratch/half.grt' --all |
    grep -q 'float32   float16 .*relu2.out'"
refuse 1 "half precision is not within 1e-5" ./graphrun compare "$model" "$scratch/half.grt" --tolerance 1e-5
check "compare --json" fields compare "./graphrun compare $model $scratch/half.grt --json" tensors.0.error:number compared:integer
# The first element of conv3's weights becomes 8: it lies behind the name, a tag and the length of 73,728 bytes.
change_weight()
{
    cp "$model" "$scratch/changed.onnx" && chmod u+w "$scratch/changed.onnx" || return 1
    local at
    at=$(grep -abo 'conv3.weight' "$model" | tail -n 1 | cut -d: -f1)
    printf '\0\0\0\101' | dd of="$scratch/changed.onnx" bs=1 seek=$((at + 12 + 4)) conv=notrunc 2>/dev/null
}
check "change a weight" change_weight
refuse 1 "a changed weight" ./graphrun compare "$model" "$scratch/changed.onnx"
check "the step of the changed weight is named" says "^first beyond the tolerance: 'relu3.out', made by Conv '.*conv3.*'" ./graphrun compare "$model" "$scratch/changed.onnx"
# Fused otherwise, tensors are compared with themselves: what a Conv made is no longer there once its Relu is in the same step.
check "compare with a plan without fusion" sh -c "./graphc optimize '$model' --level 0 -o '$scratch/plain.grt' >/dev/null &&
    ./graphrun compare '$model' '$scratch/plain.grt' --all >'$scratch/compared'"
check "results of fused steps are compared" grep -q 'relu3.out (Conv, Relu)' "$scratch/compared"
check "compare two devices" says "^all within the tolerance" ./graphrun compare "$model" --other-device cpu:0
refuse 2 "compare with a model of other inputs" ./graphrun compare "$model" "$scratch/map.onnx"

inspected_page()
{
    ./graphc inspect "$model" --html "$scratch/steps.html" && grep -q "conv1<br>bn1<br>relu1</td>" "$scratch/steps.html" &&
        grep -q "float32\[" "$scratch/steps.html" && [ "$(grep -c "<tr><td>[0-9]" "$scratch/steps.html")" = "$(./graphc inspect "$model" --json | grep -m 1 -o '"steps": [0-9]*' | grep -o '[0-9]*')" ]
}
check "inspect --html" inspected_page
refuse 2 "two forms of a report" ./graphc inspect "$model" --json --html "$scratch/x.html"

# What the schema has is in the page that explains it.
explained()
{
    local field bad=0
    tests/scripts/json_valid "$srcdir/docs/reports.schema.json" >"$scratch/names" && [ "$(wc -l <"$scratch/names")" -gt 100 ] || return 1
    while read -r field; do
        grep -q "\`$field\`" "$srcdir/docs/json.md" || { echo "docs/json.md lacks $field" && bad=1; }
    done <"$scratch/names"
    return "$bad"
}
check "docs/json.md has every field of the schema" explained

# The cache of algorithms, with the null device, which asks it for convolutions and products.
export GRAPHRT_ALGO_CACHE=$scratch/algos.db
check "cache why: nothing yet" says "no row of this op" ./graphc cache why "$plan" --device null
check "cache why: all hit" says " 0 misses" ./graphc cache why "$plan" --device null
check "cache why names what differs" says "the nearest row differs: in0=.*7x8x8x1.*, there in0=" ./graphc cache why "$plan" \
    --device null --shape "$input=7x1x8x8"
check "cache why --json" fields cache_lookups "./graphc cache why $plan --device null --json" hits:integer misses:integer lookups.0.key:string \
    lookups.0.hit:boolean
check "cache ls" says "heuristic .*op=.*gpu=null;" ./graphc cache ls
check "cache ls --json" fields cache_rows "./graphc cache ls --json" file:string damaged:integer rows.0.key:string rows.0.bytes:integer
# Sin(Exp(x) + x) of float32[8]: a group that the mirror generates a kernel for.
base64 -d >"$scratch/group.onnx" <<'ONNX'
CAoSADpPCgsKAXgSAWEiA0V4cAoOCgFhCgF4EgFiIgNBZGQKCwoBYhIBeSIDU2luEgFnWg8KAXgSCgoICAESBAoCCAhiDwoBeRIKCggIARIECgIICEIECgAQFA==
ONNX
generated()
{
    env GRAPHRT_MIRROR_CODE=0 GRAPHRT_ALGO_CACHE="$scratch/code.db" ./graphrun "$scratch/group.onnx" --device mirror --explain-load "$@"
}
check "a generated kernel: never" says "generated kernels: 1 interpreted" generated --compile never
check "a generated kernel: first" says "generated kernels: 1 compiled" generated --compile first
check "a generated kernel of an earlier start" says "generated kernels: 1 from the cache" generated
check "a generated kernel is named" says "store .*kernel op=Pointwise;" generated
check "explain load, generated kernels --json" fields run "generated --json" load.devices.0.code_store:integer load.devices.0.code_waiting:integer
refuse 2 "--compile of another word" generated --compile sometime
check "cache ls, code" says "code .* ms .* B  code=group;.*source=" ./graphc cache ls --cache "$scratch/code.db"
check "cache why, code" says "code  op=Pointwise;.*(store)" env GRAPHRT_MIRROR_CODE=0 ./graphc cache why "$scratch/group.onnx" --device mirror --cache "$scratch/code.db"
check "cache export, code" says "1 rows written" ./graphc cache export "$scratch/code.export" --cache "$scratch/code.db"
check "cache prune, code" says "1 rows removed" ./graphc cache prune --matching code= --cache "$scratch/code.db"
check "cache ls of a file that is not there" says "/none.db: 0 rows: there is no such file yet" ./graphc cache ls --cache "$scratch/none.db"
check "cache ls names a directory that is not there" says "directory '$scratch/absent': No such file" ./graphc cache ls --cache "$scratch/absent/algos.db"
refuse 2 "cache ls where there is no directory" ./graphc cache ls --cache "$scratch/absent/algos.db"
refuse 2 "cache ls --json where there is no directory" env GRAPHRT_ALGO_CACHE="$scratch/absent/algos.db" ./graphc cache ls --json
refuse 2 "cache prune where there is no directory" ./graphc cache prune --all --cache "$scratch/absent/algos.db"
check "a user who has no cache yet has no rows" env -u GRAPHRT_ALGO_CACHE XDG_CACHE_HOME="$scratch/absent" ./graphc cache ls
check "cache export --json" fields cache_copied "./graphc cache export $scratch/also.db --json" file:string copied:integer
check "cache import --json" fields cache_copied "./graphc cache import $scratch/also.db --json" file:string copied:integer
check "cache prune --json" fields cache_pruned "./graphc cache prune --matching nothing --json" removed:integer
check "keygen --json" fields keygen "./graphc keygen $scratch/pair --json" secret:string public:string key:string
check "sign --json" fields sign "./graphc sign $plan --key $scratch/pair -o $scratch/signed.grt --json" plan:string output:string
check "cache export" says "rows written" ./graphc cache export "$scratch/exported.db"
check "tune --help" says "usage: graphc tune" ./graphc tune --help
check "tune where nothing is to tune" says "there is nothing to tune" ./graphc tune "$plan" --device cpu
check "tune -o where nothing is to tune" sh -c "./graphc tune '$plan' --device cpu -o '$scratch/untuned.grt' && ./graphrun '$scratch/untuned.grt'"
check "tune" says "steps with .* choices; [1-9][0-9]* measured, 0 tuned before, 0 left" ./graphc tune "$plan" --device null --again
check "tune says when nothing is kept" says "kept nowhere" env GRAPHRT_ALGO_CACHE=off ./graphc tune "$plan" --device null
check "tune again measures nothing" says " 0 measured, [1-9]" ./graphc tune "$plan" --device null
check "tune --json" fields tune "./graphc tune $plan --device null --again --json" tuned:integer known:integer before_ms:number \
    results.0.key:string results.0.candidates:integer results.0.winner:integer stopped:boolean
check "tune marks rows" says "tuned .*op=.*gpu=null;" ./graphc cache ls
check "tune -o" says "tuned.grt in" ./graphc tune "$plan" --device null -o "$scratch/tuned.grt"
check "the tuned plan runs" ./graphrun "$scratch/tuned.grt"
check "the tuned plan has its choices" env GRAPHRT_ALGO_CACHE=off sh -c "./graphc tune '$scratch/tuned.grt' --device null | grep ' 0 measured'"
refuse 2 "tune -o of an ONNX model" ./graphc tune "$model" --device null -o "$scratch/other.grt"
refuse 2 "tune without a model" ./graphc tune
refuse 2 "tune --seconds -1" ./graphc tune "$plan" --seconds -1
check "cache prune --matching" says "^[1-9].* rows removed" ./graphc cache prune --matching 7x8x8x1
check "cache prune --older-than" says "^0 rows removed" ./graphc cache prune --older-than 1
check "cache prune --all" says "^[1-9].* rows removed" ./graphc cache prune --all
check "cache import" says "rows read" ./graphc cache import "$scratch/exported.db"
check "what was imported is found" says " 0 misses" ./graphc cache why "$plan" --device null
echo "not a database, not at all, but long enough to be one" >"$scratch/foreign.db"
refuse 2 "cache import of something else" ./graphc cache import "$scratch/foreign.db"
check "a cache that cannot be written is told of" says "warning: .*/proc/no" env GRAPHRT_ALGO_CACHE=/proc/no/such.db ./graphrun "$plan" \
    --device null --explain-load
check "a foreign file is left alone and does no harm" sh -c \
    "GRAPHRT_ALGO_CACHE='$scratch/foreign.db' ./graphrun '$plan' --device null >/dev/null && grep -q '^not a' '$scratch/foreign.db'"
for command in "graphc cache" "graphc cache nonsense" "graphc cache prune" "graphc cache why" "graphc cache ls x" \
    "graphc cache import /no/such/file"; do
    # shellcheck disable=SC2086 # the same
    refuse 2 "bad use: $command" ./$command
done
export GRAPHRT_ALGO_CACHE=off

# Algorithms chosen for devices that are not here: the null device everywhere, a GPU where the module and cuDNN are.
mkdir "$scratch/devices"
export GRAPHRT_DEVICE_PATH=$scratch/devices
echo '{"format": 1, "kind": "null", "name": "imagined", "sm": 10, "source": "a test", "properties": {}}' >"$scratch/devices/nowhere.json"
check "devices" says "nowhere .*imagined, sm_10; a test" ./graphc devices
check "devices of the source tree" says "h200 .*sm_90" ./graphc devices
check "devices says which kinds there are" says "^kinds of devices: cpu, .*null (for tests)" ./graphc devices
check "devices --json" fields devices "./graphc devices --json" kinds.0.name:string gpus:array described.0.target:string described.0.sm:integer
refuse 2 "devices --dump of a kind without descriptions" ./graphc devices --dump --device cpu
check "devices --dump" says '"kind": "null"' ./graphc devices --dump --device null
check "devices --dump FILE, which can be a target" sh -c "./graphc devices --dump '$scratch/devices/dumped.json' --device null &&
    ./graphc optimize '$model' --target dumped -o '$scratch/dumped.grt'"
check "every pointwise function" ./graphrun check "$srcdir/tests/data/cases/pointwise"
check "patterns of several nodes that become one step" ./graphrun check "$srcdir/tests/data/patterns"
check "lists that loops carry" ./graphrun check "$srcdir/tests/data/cases/lists"
check "a plan for another kind of device, whose steps this one lacks" sh -c "./graphc optimize '$srcdir/tests/data/cases/levels/model.onnx' \
    --target null -o '$scratch/other.grt' >/dev/null && ! ./graphrun '$scratch/other.grt' 2>'$scratch/said' && grep -q 'made for null: one for cpu may run' '$scratch/said'"
for device in cpu mirror:0; do
    check "broadcast operands of wider types, on $device" ./graphrun check --device "$device" "$srcdir/tests/data/cases/broadcast_less" "$srcdir/tests/data/cases/broadcast_group"
    check "products by packed weights with zero points, on $device" ./graphrun check --rtol 0 --atol 0 --device "$device" "$srcdir/tests/data/cases/weights"
    check "rolls and merged patches, on $device" ./graphrun check --rtol 0 --atol 0 --device "$device" "$srcdir/tests/data/cases/rolls"
    check "a decoder's layers, on $device" ./graphrun check --rtol 0.02 --atol 0.03 --device "$device" "$srcdir/tests/data/cases/decoder"
done
check "check --plan of a described device" ./graphrun check --plan nowhere "$srcdir/tests/data/cases/pointwise"
refuse 2 "check --plan nonsense" ./graphrun check --plan nonsense "$srcdir/tests/data/cases/pointwise"
check "optimize --target of a described device" says "imagined, sm_10: [1-9].* algorithms chosen" ./graphc optimize "$model" \
    --target nowhere -o "$scratch/tuned.grt"
check "the same bytes again" sh -c "./graphc optimize '$model' --target nowhere -o '$scratch/again.grt' && cmp '$scratch/tuned.grt' '$scratch/again.grt'"
check "inspect counts them" says "imagined, sm_10: [1-9]" ./graphc inspect "$scratch/tuned.grt"
check "inspect --json counts them" fields inspect "./graphc inspect $scratch/tuned.grt --json" tuning.0.gpu:string tuning.0.sm:string \
    tuning.0.heuristic:integer tuning.0.tuned:integer
check "optimize --json counts them" fields optimize "./graphc optimize $model --target sm_10 -o $scratch/tuned.grt --json" tuning.0.gpu:string
check "a session asks nobody" says "algorithms: [1-9][0-9]* from the plan, 0 from the cache, 0 missed, 0 heuristic queries" ./graphrun \
    "$scratch/tuned.grt" --device null --explain-load
check "cache why knows them" says "^plan  op=" ./graphc cache why "$scratch/tuned.grt" --device null
check "optimize --target of a module" ./graphc optimize "$model" --target mirror -o "$scratch/mirror.grt"
check "its plan says so" says "target mirror" ./graphc inspect "$scratch/mirror.grt"
refuse 2 "optimize --target of no module" ./graphc optimize "$model" --target mirage -o "$scratch/mirage.grt"
check "optimize --target --shape" ./graphc optimize "$model" --target nowhere --shape "$input=4x1x8x8" -o "$scratch/tuned.grt"
check "a session with that shape asks nobody" says " 0 missed, 0 heuristic queries" ./graphrun "$scratch/tuned.grt" --device null \
    --shape "$input=4x1x8x8" --explain-load
GRAPHRT_ALGO_CACHE=$scratch/known.db ./graphrun "$scratch/dumped.grt" --device null >/dev/null 2>&1
GRAPHRT_ALGO_CACHE=$scratch/known.db ./graphc tune "$scratch/dumped.grt" --device null >/dev/null 2>&1
check "optimize --choices" says "null, sm_10: 0 algorithms chosen, [1-9][0-9]* measured" ./graphc optimize "$model" --target nowhere \
    --choices "$scratch/known.db" -o "$scratch/tuned.grt"
refuse 2 "optimize --choices of no file" ./graphc optimize "$model" --target nowhere --choices /no/such/file -o "$scratch/bad.grt"
for options in "--choices /no/such/file" "--target nonsense" "--target nowhere --target cpu" "--shape $input=4x1x8x8" "--target nowhere --shape $input=1x2" "--target nowhere --shape x=1"; do
    # shellcheck disable=SC2086 # several options
    refuse 2 "bad use: graphc optimize $options" ./graphc optimize "$model" $options -o "$scratch/bad.grt"
done
for options in nonsense "--dump x y" "--dump=x y"; do
    # shellcheck disable=SC2086 # the same
    refuse 2 "bad use: graphc devices $options" ./graphc devices $options
done
echo '{"format": 1}' >"$scratch/devices/broken.json"
check "a broken description is named" says "broken.json: not a description" ./graphc devices
unset GRAPHRT_DEVICE_PATH
if [ -e libgraphrt-cuda.so ] && status=$(./graphc optimize "$model" --target h200 -o "$scratch/gpu.grt" 2>&1); then
    mkdir -p "$scratch/lacking"
    sed -e 's/"multiProcessorCount": [0-9]*,//; s/"name": "[^"]*"/"name": "Lacking"/' "$srcdir/share/devices/h200.json" >"$scratch/lacking/lacking.json"
    check "a GPU's description without its numbers is refused by their names" says "'Lacking' must have a number \"multiProcessorCount\"" \
        env GRAPHRT_DEVICE_PATH="$scratch/lacking" ./graphc optimize "$model" --target lacking -o "$scratch/lacking.grt"
    check "check --plan of a GPU, on the CPU" ./graphrun check --plan h200 "$srcdir/tests/data/cases/pointwise"
    # The digits' plan has nothing to choose: all its products are the module's own.
    check "optimize --target h200" says "NVIDIA H200, sm_90: [1-9].* algorithms chosen" sh -c "./graphc optimize \
        '$srcdir/tests/data/cases/pointwise/model.onnx' --target h200 -o '$scratch/gpu.chosen' && ./graphc inspect '$scratch/gpu.chosen'"
    check "the same bytes again, for h200" sh -c "./graphc optimize '$model' --target h200 -o '$scratch/gpu.2' &&
        cmp '$scratch/gpu.grt' '$scratch/gpu.2'"
else
    skip "optimize --target h200" "${status:-this build has no CUDA module}"
    check "what is missing for a GPU is said, and what makes it" says "make -C .* libgraphrt-cuda.so" ./graphc optimize "$model" --target h200 -o "$scratch/gpu.grt"
fi

check "save outputs" ./graphrun "$plan" --input "$input=$srcdir/models/digits/test_images.npy" --output-dir "$scratch/a"
check "the model itself gives the same" ./graphrun "$model" --input "$input=$srcdir/models/digits/test_images.npy" --output-dir "$scratch/b"
check "saved outputs are the same" sh -c "ls '$scratch'/a/*.npy && diff -r '$scratch/a' '$scratch/b'"
check "bench --json" fields bench "./graphrun bench $plan $model --seconds 0.05 --json" 0.model:string 0.device:string 0.threads:integer \
    0.latency_ms.min:number 0.latency_ms.p50:number 0.latency_ms.p90:number 0.latency_ms.p95:number 0.latency_ms.p99:number \
    0.latency_ms.p99_9:number 0.latency_ms.max:number 0.latency_ms.mean:number 0.latency_ms.standard_deviation:number 0.throughput_per_s:number \
    0.load_ms.total:number 0.first_run_ms:number 0.processor_ms:number 0.host_us:number 0.peak_rss_bytes:integer 1.model:string
check "bench of a process under load --json" fields bench "./graphrun bench $plan --seconds 0.05 --concurrency 2 --process --threads 1 --json" 0.load.0.clients:integer
refuse 2 "--process without requests" ./graphrun bench "$plan" --process
check "bench under load --json" fields bench "./graphrun bench $plan --seconds 0.05 --concurrency 1,3 --rate 200 --json" 0.load.1.clients:integer \
    0.load.1.latency_ms.p99_9:number 0.load.2.rate:number 0.load.2.unanswered:integer 0.load.2.throughput_per_s:number
check "a rate that nothing could serve" says "requests that were due were not answered: the rate is too high" timeout 60 ./graphrun bench "$plan" --threads 1 --seconds 0.05 --rate 1e9
check "bench under load" says "^  clients 3  .* p99.9 .* max" ./graphrun bench "$plan" --seconds 0.05 --concurrency 1,3
mixed() { sh -c "$1" | tee "$scratch/mixed.json" | tests/scripts/json_valid "$srcdir/docs/reports.schema.json" bench_together && shift && tests/scripts/json_has "$@" <"$scratch/mixed.json"; }
check "models together --json" mixed "./graphrun bench $plan $model --seconds 0.05 --together --concurrency 1,3 --rate 200 --deadline 60000 --threads 1 --json" models.1.load.2.rate:number \
    together.models.1:string together.load.1.clients:integer together.load.1.of_time_slices:number together.load.1.models.1.latency_ms.p99_9:number \
    together.load.1.models.1.deadline.met:number together.load.2.rate:number together.load.2.models.0.throughput_per_s:number together.peak_rss_bytes:integer
# Of three throughputs of a load, one is the sum of the others.
sums_up()
{
    sed '1,/"together": {/d' "$scratch/mixed.json" | grep -oE '"throughput_per_s": [0-9.e+]+' | awk '{ sum += $2; most = $2 > most ? $2 : most }
        NR % 3 == 0 { off = sum - 2 * most; bad = bad || most <= 0 || off > 1e-3 || off < -1e-3; sum = most = 0 } END { exit bad || NR != 9 }'
}
check "all requests are those of the models" sums_up
check "models together in processes, on a device" mixed "./graphrun bench $model $model --device mirror:0 --seconds 0.05 --together --concurrency 2 --process --threads 1 --json" together.load.0.models.1.model:string
check "models together" says "^2 models together on cpu" ./graphrun bench "$plan" "$model" --seconds 0.05 --together --rate 100
refuse 2 "--together without requests" ./graphrun bench "$plan" "$model" --together
refuse 2 "one model together" ./graphrun bench "$plan" --together --rate 100
check "a deadline that all meet" fields bench "./graphrun bench $plan --seconds 0.05 --concurrency 2 --deadline 60000 --json" 0.load.0.deadline.met:number
check "a deadline that none meet" says "within 1e-06 ms  0.000 %; late by p50" ./graphrun bench "$plan" --seconds 0.05 --concurrency 2 --deadline 0.000001
refuse 2 "a deadline of nothing" ./graphrun bench "$plan" --deadline 1
refuse 2 "clients that are no number" ./graphrun bench "$plan" --concurrency 1,x
check "a trace" sh -c "./graphrun '$plan' --device mirror:0-1 '--trace=$scratch/trace.json' && tests/scripts/json_has traceEvents.1.ts:number traceEvents.1.dur:number <'$scratch/trace.json' && grep -q nodes '$scratch/trace.json' && grep -q 'create kernels' '$scratch/trace.json'"
refuse 2 "a trace of a directory" ./graphrun "$plan" --input "image=$scratch" --trace "$scratch/trace.json"
check "--verbose" says "graphrun: info: load: session on cpu:0" ./graphrun "$plan" --verbose
check "check --verbose names every case" says "PASS test_case" sh -c "mkdir -p '$scratch/test_case' && cp -r '$srcdir'/tests/data/cases/pointwise/. '$scratch/test_case' && ./graphrun check --verbose '$scratch/test_case'"
check "GRAPHRT_LOG" says "graphrun: debug: run: .* prepared combination 1" env GRAPHRT_LOG=debug ./graphrun "$plan"
refuse 2 "a GRAPHRT_LOG that is none" env GRAPHRT_LOG=loud ./graphrun "$plan"
completed() { bash -c "source <(./$1 completion bash); COMP_WORDS=($1 $2); COMP_CWORD=$3; _$1_words; echo \"\${COMPREPLY[*]}\""; }
check "completion of commands" says "^optimize$" completed graphc opt 1
check "completion of options" says "--contexts --concurrency" completed graphrun "bench --con" 2
# What --help names and what completion offers, of each command; the word behind none is the tool itself.
options_of() { grep -oE '(^|[[:space:],(])--[a-z0-9][-a-z0-9]*' | tr -d ' ,(\t' | sort -u; }
completes_all()
{
    local tool command n=0
    for tool in graphc graphrun; do
        for command in $(completed "$tool" "" 1 | tr ' ' '\n' | grep '^[a-z]') none; do
            case $tool-$command in *-help | *-completion | graphc-none) continue ;; esac
            [ "$command" != none ] || command=
            "./$tool" ${command:+"$command"} --help >"$scratch/help" || return 1
            completed "$tool" "$command --" $((${command:+1} + 1)) | tr ' ' '\n' | options_of >"$scratch/offered"
            sed -n 's/^ \{2,6\}\(-[a-zA-Z], *\)\{0,1\}\(--[a-z0-9][-a-z0-9]*\).*/\2/p' "$scratch/help" | sort -u >"$scratch/told"
            [ -s "$scratch/told" ] || { echo "$tool $command --help has no options" && return 1; }
            comm -23 "$scratch/told" "$scratch/offered" | grep . && echo "are not offered: $tool $command" && return 1
            n=$((n + 1))
        done
    done
    echo "$n commands"
    [ "$n" -ge 13 ]
}
check "completion has every option of --help" completes_all
refuse 2 "completion for no shell" ./graphc completion
check "bench --profile" fields bench "./graphrun bench $plan --repeat 10 --profile 3 --json" 0.profile.steps.0.op:string \
    0.profile.steps.0.name:string 0.profile.steps.0.ms:number 0.profile.steps.2.ms:number 0.device_ms:number
check "run --repeat says how latencies are spread" says "p99.9 [0-9.]*  max [0-9.]* ms" ./graphrun "$plan" --repeat 10
check "bench says what it did" says "runs after 2 to warm up" ./graphrun bench "$plan" --repeat 10 --warmup 2
check "bench says how latencies spread" says "^ *mean [0-9.]*, standard deviation" ./graphrun bench "$plan" --repeat 10

# Cases: one that passes, one whose reference is wrong, one that is no case.
case_of() # NAME: the model with its own output as reference
{
    mkdir -p "$scratch/cases/$1/test_data_set_0"
    cp "$scratch/add.onnx" "$scratch/cases/$1/model.onnx"
    printf '\x08\x01\x08\x02\x10\x01J\x08\0\0\200?\0\0\0@' >"$scratch/cases/$1/test_data_set_0/input_0.pb"
    cp "$scratch/cases/$1/test_data_set_0/input_0.pb" "$scratch/cases/$1/test_data_set_0/input_1.pb"
    printf '\x08\x01\x08\x02\x10\x01J\x08\0\0\0@\0\0\200@' >"$scratch/cases/$1/test_data_set_0/output_0.pb"
}
# Add of two float32[n,2], written out: ONNX in base64
base64 -d >"$scratch/add.onnx" <<'ONNX'
CAg6WgoTCgF4CgF6EgF5GgNzdW0iA0FkZBIBZ1oUCgF4Eg8KDQgBEgkKAxIBbgoCCAJaFAoBehIPCg0IARIJCgMSAW4KAggCYhQKAXkSDwoNCAESCQoDEgFuCgIIAkIECgAQEQ==
ONNX
case_of good
check "check passes" last_line "1 passed, 0 failed, 0 skipped" ./graphrun check "$scratch/cases/good"
case_of wrong
printf '\x08\x01\x08\x02\x10\x01J\x08\0\0\0@\0\0\0@' >"$scratch/cases/wrong/test_data_set_0/output_0.pb"
refuse 1 "check fails" ./graphrun check "$scratch/cases/wrong"
check "check says where" says "FAIL wrong: .*\[0,1\]: expected 2, found 4" ./graphrun check "$scratch/cases/wrong"
check "a directory of cases" last_line "1 passed, 1 failed, 0 skipped" ./graphrun check --jobs 2 "$scratch/cases"
check "tolerance" last_line "2 passed, 0 failed, 0 skipped" ./graphrun check --atol 3 "$scratch/cases"
echo 'wrong: its reference is' >"$scratch/expect"
check "expected failure" last_line "1 passed, 0 failed, 1 skipped" ./graphrun check --expect "$scratch/expect" "$scratch/cases"
echo 'good: it is not' >>"$scratch/expect"
check "an expected failure that passes" last_line "0 passed, 1 failed, 1 skipped" ./graphrun check --expect "$scratch/expect" "$scratch/cases"
mkdir "$scratch/empty"
refuse 2 "a directory without a case" ./graphrun check "$scratch/empty"
check "it says so" says "holds no case" ./graphrun check "$scratch/cases/good" "$scratch/empty"
told_once() { [ "$(./graphrun check --jobs 1 --device "$1" "$scratch/cases" 2>&1 | tee "$scratch/said" | grep -c "$1\|FAIL")" = 1 ] || { cat "$scratch/said"; return 1; }; }
for device in nosuch null:99; do
    refuse 2 "check --device $device" ./graphrun check --device "$device" "$scratch/cases"
    check "it is said once, and no case has failed" told_once "$device"
done
for options in "--precision fp8" "--fallback gpu" "--model /no/such/model" "--plan cpu --model $plan"; do
    # shellcheck disable=SC2086 # several options
    refuse 2 "bad use: graphrun check $options" ./graphrun check $options "$scratch/cases/good"
done
# What computes nothing is held to types and shapes.
check "check --device null" last_line "2 passed, 0 failed, 0 skipped" ./graphrun check --device null "$scratch/cases"
case_of other_type
printf '\x08\x02\x10\x06J\x08\0\0\0@\0\0\0@' >"$scratch/cases/other_type/test_data_set_0/output_0.pb"
check "check --device null sees types and shapes" says "FAIL other_type: .*expected" ./graphrun check --device null "$scratch/cases/other_type"
rm -r "$scratch/cases/other_type"
check "check --json" fields cases "./graphrun check $scratch/cases --json" passed:integer failed:integer skipped:integer cases.0.name:string cases.0.verdict:string \
    cases.0.message:string
check "check --junit" sh -c "! ./graphrun check '$scratch/cases' --junit '$scratch/junit.xml' && grep -q '<testsuite .*tests=\"2\" failures=\"1\" skipped=\"0\"' \
    '$scratch/junit.xml' && grep -q '<testcase .* name=\"wrong\"><failure message=' '$scratch/junit.xml'"
command -v xmllint >/dev/null && check "check --junit is XML" xmllint --noout "$scratch/junit.xml"
refuse 2 "check --junit where no file can be" ./graphrun check "$scratch/cases/good" --junit "$scratch/no/such.xml"
refuse 2 "a directory that is not there" ./graphrun check "$scratch/nowhere"
check "a plan with a case's data" sh -c "./graphc optimize '$scratch/add.onnx' -o '$scratch/add.grt' &&
    ./graphrun check --model '$scratch/add.grt' '$scratch/cases/good'"
check "external weights" sh -c "./graphc optimize '$model' -o '$scratch/ext.grt' --external-weights && ./graphrun '$scratch/ext.grt' &&
    test -s '$scratch'/ext.grt.????????????????.weights"
check "external weights gone" sh -c "rm '$scratch'/ext.grt.*.weights; ! ./graphrun '$scratch/ext.grt'"
finish
