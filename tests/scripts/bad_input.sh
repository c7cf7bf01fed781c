#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad models, plans, inputs: exit status 2 and a message that names the culprit; no crash, no leak (under sanitizers), no hang.
set -u
. "$(dirname "$0")/lib.sh"

model=$srcdir/models/digits/digits.onnx
plan=$scratch/digits.grt
size=$(stat -c %s "$model")
input=$(./graphc inspect "$model" | sed -n 's/^ *input *\([^:]*\):.*/\1/p' | head -n 1)

# bad NAME WORD COMMAND...: ends with status 2 within 20 s and 2 GiB, and its message holds WORD (an extended regular expression)
bad()
{
    local name=$1 word=$2 status=0
    shift 2
    timeout 20 "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    if [ "$status" = 2 ] && grep -qiE -- "$word" "$scratch/err"; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name: exit status $status, expected 2 and a message with '$word'; found:"
        head -n 10 "$scratch/err" | sed 's/^/    /'
    fi
}
onnx() { base64 -d >"$scratch/$1.onnx"; }

./graphc optimize "$model" -o "$plan" >/dev/null || { echo "0 passed, 1 failed, 0 skipped" && exit 1; }
plan_size=$(stat -c %s "$plan")

bad "missing model" "nothing.onnx" ./graphrun "$scratch/nothing.onnx"
bad "missing model, optimize" "nothing.onnx" ./graphc optimize "$scratch/nothing.onnx" -o "$scratch/x.grt"
bad "missing model, inspect" "nothing.onnx" ./graphc inspect "$scratch/nothing.onnx"
bad "missing model, check" "nothing.onnx" ./graphc check "$scratch/nothing.onnx"
bad "missing model, bench" "nothing.onnx" ./graphrun bench "$scratch/nothing.onnx"
bad "a directory" "$scratch" ./graphrun "$scratch"
: >"$scratch/empty.onnx"
bad "an empty file" "empty.onnx" ./graphrun "$scratch/empty.onnx"
head -c 5000 "$0" >"$scratch/text.onnx"
bad "a text file" "text.onnx" ./graphrun "$scratch/text.onnx"
for n in 1 10 100 $((size / 2)) $((size - 1)); do
    head -c "$n" "$model" >"$scratch/cut.onnx"
    bad "model cut at $n" "cut.onnx" ./graphrun "$scratch/cut.onnx"
done
bad "graphc check of a cut model" "cut.onnx" ./graphc check "$scratch/cut.onnx"
bad "output directory not there" "no/such" ./graphc optimize "$model" -o "$scratch/no/such/x.grt"
cp "$model" "$scratch/own.onnx"
ln -s own.onnx "$scratch/link.onnx"
bad "the plan over its model" "own.onnx: .*the model" ./graphc optimize "$scratch/own.onnx" -o "$scratch/own.onnx"
bad "the plan over its model, by a link" "link.onnx" ./graphc optimize "$scratch/own.onnx" -o "$scratch/link.onnx"
check "the model is still there" cmp "$model" "$scratch/own.onnx"
mkfifo "$scratch/pipe"
bad "a pipe that nobody writes to" "pipe: nothing comes" ./graphrun "$scratch/pipe"
bad "the plan over a pipe" "pipe.*not a regular file" ./graphc optimize "$model" -o "$scratch/pipe"
bad "a plan as the model, optimize" "this is a plan" ./graphc optimize "$plan"
bad "a plan as the model, check" "this is a plan" ./graphc check "$plan"
head -c 1000 "$model" >"$scratch/once.onnx"
names_once() { ! ./graphc optimize "$scratch/once.onnx" 2>"$scratch/named" && [ "$(grep -o once.onnx "$scratch/named" | wc -l)" = 1 ]; }
check "a message names the file once" names_once
if [ -c /dev/full ]; then
    for command in "graphrun $plan" "graphc inspect $plan" "graphc check $model" "graphrun --help"; do
        bad "standard output is full: ${command%% *}" "standard output: " sh -c "./$command >/dev/full"
    done
fi

for n in 1 7 8 100 4095 4096 5000 $((plan_size / 2)) $((plan_size - 1)); do
    head -c "$n" "$plan" >"$scratch/cut.grt"
    bad "plan cut at $n" "cut.grt" ./graphrun "$scratch/cut.grt"
done
for at in 8 16 24 40 4100 4500 $((plan_size / 2)) $((plan_size - 10)); do
    cp "$plan" "$scratch/flip.grt"
    printf '\xa5' | dd of="$scratch/flip.grt" bs=1 seek="$at" conv=notrunc status=none
    cmp -s "$plan" "$scratch/flip.grt" && continue
    bad "plan changed at $at" "checksum|version" ./graphrun "$scratch/flip.grt"
done
bad "plan as external weights" "flip.grt" ./graphc inspect "$scratch/flip.grt"
cat "$plan" "$plan" >"$scratch/twice.grt"
bad "plan with bytes behind it" "expected $plan_size bytes" ./graphrun "$scratch/twice.grt"

bad "wrong input name" "no input 'nope'.*'$input'" ./graphrun "$plan" --input nope=zeros
bad "wrong shape" "$input" ./graphrun "$plan" --shape "$input=1x3x8x8"
bad "wrong rank" "$input" ./graphrun "$plan" --shape "$input=64"
bad "absurd shape" "$input" ./graphrun "$plan" --shape "$input=1099511627776x1x8x8"
bad "overflowing shape" "$input" ./graphrun "$plan" --shape "$input=4611686018427387904x4611686018427387904x8x8"
bad "wrong dtype" "$input.*int64|int64.*$input" ./graphrun "$plan" --input "$input=$srcdir/models/digits/test_labels.npy"
bad "missing input file" "input '$input': .*none.npy" ./graphrun "$plan" --input "$input=$scratch/none.npy"
bad "missing .pb file" "input '$input': .*none.pb" ./graphrun "$plan" --input "$input=$scratch/none.pb"
bad "missing list of inputs" "list of inputs: .*none" ./graphrun "$plan" --input "$input=@$scratch/none"
bad "missing key" "--key: .*none" ./graphc sign "$plan" --key "$scratch/none"
bad "missing public key" "--trust.*none" ./graphrun "$plan" --trust "$scratch/none"
bad "missing expectations" "--expect: .*none" ./graphrun check --expect "$scratch/none" "$srcdir"
# npy NAME DTYPE: the header of a .npy file, and 256 bytes
npy()
{
    { printf '\x93NUMPY\x01\x00\x76\x00' && printf '%-117s\n' "{'descr': $2, 'fortran_order': False, 'shape': (1, 1, 8, 8), }" &&
        head -c 256 /dev/zero; } >"$scratch/$1.npy"
}
npy objects "'|O'"
bad "objects as .npy" "input '$input': .*objects.npy: found dtype '\|O'" ./graphrun "$plan" --input "$input=$scratch/objects.npy"
npy dates "'<M8[s]'"
bad "dates as .npy" "found dtype '<M8\[s\]'" ./graphrun "$plan" --input "$input=$scratch/dates.npy"
npy fields "[('a', '<f4')]"
bad "structures as .npy" "found dtype \[\('a', '<f4'\)\]" ./graphrun "$plan" --input "$input=$scratch/fields.npy"
npy big "'>f4'"
bad "big-endian .npy" "found dtype '>f4'.*newbyteorder" ./graphrun "$plan" --input "$input=$scratch/big.npy"

# What cannot be written is said before anything runs.
unwritten() # NAME WORD COMMAND...
{
    bad "$@"
    [ -s "$scratch/out" ] || return 0
    failed=$((failed + 1))
    echo "FAILED: $1: something was run before"
}
unwritten "outputs below nothing" "--output-dir: .*no/such" ./graphrun "$plan" --output-dir "$scratch/no/such"
unwritten "outputs below a file" "--output-dir: .*not a directory" ./graphrun "$plan" --output-dir "$plan/below"
unwritten "outputs into a file" "--output-dir: .*not a directory" ./graphrun "$plan" --output-dir "$plan"
unwritten "a trace below nothing" "--trace: .*no/such" ./graphrun "$plan" --trace "$scratch/no/such/t.json"
unwritten "a trace over a directory" "--trace: .*directory" ./graphrun "$plan" --trace "$scratch"
unwritten "a picture of loading below nothing" "--explain-load: .*no/such" ./graphrun "$plan" --explain-load="$scratch/no/such/t.html"
unwritten "a report below nothing" "--report: .*no/such" ./graphrun bench "$plan" --report "$scratch/no/such/t.html"
unwritten "a page below nothing" "--html: .*no/such" ./graphc inspect "$plan" --html "$scratch/no/such/t.html"
unwritten "verdicts below nothing" "--junit: .*no/such" ./graphrun check --junit "$scratch/no/such/j.xml" "$srcdir"
unwritten "a plan below nothing" "-o: .*no/such" ./graphc optimize "$model" -o "$scratch/no/such/x.grt"
unwritten "a quantised model below nothing" "-o: .*no/such" ./graphc quantize "$model" --dynamic -o "$scratch/no/such/x.onnx"
head -c 200 "$srcdir/models/digits/test_images.npy" >"$scratch/cut.npy"
bad "cut input file" "cut.npy" ./graphrun "$plan" --input "$input=$scratch/cut.npy"
head -c 200 "$0" >"$scratch/text.pb"
bad "text as .pb" "text.pb" ./graphrun "$plan" --input "$input=$scratch/text.pb"
bad "neither .npy nor .pb" "neither" ./graphrun "$plan" --input "$input=$0"
bad "an input twice" "'$input' is given twice" ./graphrun "$plan" --input "$input=zeros" --input "$input=random"
bad "a shape twice" "'$input' is given twice" ./graphrun "$plan" --shape "$input=1x1x8x8" --shape "$input=2x1x8x8"
bad "a shape for a file" "--shape" ./graphrun "$plan" --input "$input=$srcdir/models/digits/test_images.npy" --shape "$input=1x1x8x8"
bad "too many threads" "1024" ./graphrun "$plan" --threads 100000
bad "no such device" "gpu9" ./graphrun "$plan" --device gpu9

# a Fourier transform of 2^40 numbers, of which eight are given: refused before tables for it are computed
onnx transform <<<'CAo6SAoOCgF4CgFuEgF5IgNERlQSAWcqDxAHQgFuSggAAAAAAAEAAFoXCgF4EhIKEAgBEgwKAggBCgIICAoCCAFiCQoBeRIECgIIAUIECgAQFQ=='
bad "2^40 numbers to transform" "out of memory" sh -c 'ulimit -t 10 && exec ./graphrun "$1"' sh "$scratch/transform.onnx"

# 2^40 elements in a hundred bytes
onnx huge <<<'CAg6PwoQCgF3EgF5IghJZGVudGl0eRIBZyoSCICAgICAIBABQgF3SgQxMjM0YhQKAXkSDwoNCAESCQoHCICAgICAIEIECgAQEQ=='
bad "2^40 elements" "'w'" ./graphrun "$scratch/huge.onnx"
onnx negative <<<'CAg6PgoQCgF3EgF5IghJZGVudGl0eRIBZyoWCPv//////////wEQAUIBd0oEMTIzNGIPCgF5EgoKCAgBEgQKAggCQgQKABAR'
bad "negative dim" "'w'" ./graphrun "$scratch/negative.onnx"
# first reads what second makes
onnx cyclic <<<'CAg6UgoVCgF4CgFiEgFhGgVmaXJzdCIDQWRkChQKAWESAWIaBnNlY29uZCIEUmVsdRIBZ1oPCgF4EgoKCAgBEgQKAggCYg8KAWISCgoICAESBAoCCAJCBAoAEBE='
bad "a cycle" "first" ./graphrun "$scratch/cyclic.onnx"
# external data "../secret.bin", "nothing.bin"
onnx escape <<<'CAg6TAoQCgF3EgF5IghJZGVudGl0eRIBZyokCAEQAUIBd2oZCghsb2NhdGlvbhINLi4vc2VjcmV0LmJpbnABYg8KAXkSCgoICAESBAoCCAFCBAoAEBE='
printf 'abcd' >"$scratch/secret.bin"
mkdir "$scratch/inner"
mv "$scratch/escape.onnx" "$scratch/inner/"
bad "external data that escapes" "secret.bin" ./graphrun "$scratch/inner/escape.onnx"
onnx absent <<<'CAg6SgoQCgF3EgF5IghJZGVudGl0eRIBZyoiCAEQAUIBd2oXCghsb2NhdGlvbhILbm90aGluZy5iaW5wAWIPCgF5EgoKCAgBEgQKAggBQgQKABAR'
bad "external data that is absent" "nothing.bin" ./graphrun "$scratch/absent.onnx"
# Add of float32 and int64; of 2 and 3 elements
onnx types <<<'CAg6SwoTCgF4CgF6EgF5GgNzdW0iA0FkZBIBZ1oPCgF4EgoKCAgBEgQKAggCWg8KAXoSCgoICAcSBAoCCAJiDwoBeRIKCggIARIECgIIAkIECgAQEQ=='
bad "types that do not fit" "'sum'" ./graphrun "$scratch/types.onnx"
onnx shapes <<<'CAg6SwoTCgF4CgF6EgF5GgNzdW0iA0FkZBIBZ1oPCgF4EgoKCAgBEgQKAggCWg8KAXoSCgoICAESBAoCCANiDwoBeRIKCggIARIECgIIAkIECgAQEQ=='
bad "shapes that do not fit" "'sum'" ./graphrun "$scratch/shapes.onnx"
bad "graphc check of them" "not a valid" ./graphc check "$scratch/shapes.onnx"
# random numbers of the input's type, which is int4
bad "random numbers in 4 bits" "input 0, 'x', is int4; allowed are float32" ./graphrun "$srcdir/tests/fuzz/regressions/run/random_like_int4.onnx"
bad "random texts" "without attribute dtype the result would be string" ./graphrun "$srcdir/tests/fuzz/regressions/run/random_like_string.onnx"
# attention of integers, whose mask of integers a Cast would leave as it is
bad "attention of integers" "input 0, 'q', is int32; allowed are float32" ./graphrun "$srcdir/tests/fuzz/regressions/run/attention_integers.onnx"
# a pool with strides 1 and 0, of an input of unknown rank
onnx pool <<<'CAgSADpZCj4KAXgSAXkaBHBvb2wiB01heFBvb2wqFQoMa2VybmVsX3NoYXBlQAJAAqABByoQCgdzdHJpZGVzQAFAAKABBxIBZ1oJCgF4EgQKAggBYgkKAXkSBAoCCAFCBAoAEBU='
bad "a window without a step" "MaxPool node 'pool': attribute strides has the value 0 at index 1; it must lie in \[1, 2147483647\]" \
    ./graphrun "$scratch/pool.onnx"
bad "a window that a plan forges" "section META.*QConv node 'window': attribute dilations has the value -9223372036854775807" \
    ./graphrun "$srcdir/tests/fuzz/regressions/plan/window_dilation.plan"
# two ops that nobody has: both are named
onnx unknown <<<'CAg6VAoVCgF4EgFhGgNvZGQiCE5vU3VjaE9wChYKAWESAXkaBW9kZGVyIgdOb3JUaGlzEgFnWg8KAXgSCgoICAESBAoCCAJiDwoBeRIKCggIARIECgIIAkIECgAQEQ=='
bad "unknown ops" "NoSuchOp" ./graphrun "$scratch/unknown.onnx"
refuse 1 "graphc check of unknown ops" ./graphc check "$scratch/unknown.onnx"
check "it lists both" sh -c "./graphc check '$scratch/unknown.onnx' | grep -c 'NoSuchOp\|NorThis' | grep -q 2"
finish
