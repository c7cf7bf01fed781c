#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# graphc quantize: accuracy, errors and bytes of quantised models, runs that are interrupted, what is refused.
set -u
. "$(dirname "$0")/lib.sh"

digits=$srcdir/models/digits
model=$digits/digits.onnx
mkdir "$scratch/data"

# split FILE DIR N DIMS BYTES: the first N pieces of a .npy of float32, each as a file of these dims.
split()
{
    local i
    for ((i = 0; i < $3; i++)); do
        {
            printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($4), }"
            tail -c +$((129 + i * $5)) "$1" | head -c "$5"
        } >"$(printf '%s/%03d.npy' "$2" "$i")"
    done
}
split "$digits/test_images.npy" "$scratch/data" 40 "1, 1, 8, 8" 256
data=$scratch/data
quantize() { ./graphc quantize "$@"; }
# At least 98 % of the held-out images.
reads_digits() { examples/digits "$1" "$digits/test_images.npy" "$digits/test_labels.npy" | tee "$scratch/digits" | awk '/^accuracy/ { sub("%", "", $2); found = $2 >= 98 && $4 == 450 } END { exit !found }'; }
# steps MODEL OP=N...: the plan has these steps.
steps() { local file=$1; shift; ./graphc inspect "$file" "${@/#/--expect=}"; }
# field NAME: of the last report.
field() { sed -nE "s/^ *\"$1\": ([^,]*),?$/\1/p" "$scratch/report.json" | head -n 1; }
# report OPTION...: a quantised model and its report as JSON, which obeys its schema.
report() { quantize "$@" --json >"$scratch/report.json" && tests/scripts/json_valid "$srcdir/docs/reports.schema.json" quantize <"$scratch/report.json"; }
below() { awk -v x="$(field "$1")" -v most="$2" 'BEGIN { if (x + 0 <= most + 0 && x != "") exit 0; print x " is above " most; exit 1 }'; }

# ---- accuracy ----
forms()
{
    local name=$1 most=$2
    shift 2
    check "digits, $name" report "$model" -o "$scratch/$name.onnx" --data "$data" "$@"
    check "digits, $name: the error that is reported" below error "$most"
    check "digits, $name: accuracy" reads_digits "$scratch/$name.onnx"
}
forms static 0.03
check "static: every layer is an integer step" steps "$scratch/static.onnx" QConv=3 QMatMul=1 Conv=0 MatMul=0
forms mse 0.03 --calibration mse
forms percentile 0.03 --calibration percentile --percentile 99.9
forms symmetric 0.03 --activations int8
forms float8-activations 0.05 --activations float8
check "float8: the model says so" sh -c "./graphc inspect '$scratch/float8-activations.onnx' | grep -q 'FLOAT8E4M3FN\|float8e4m3fn'"
refuse 2 "float8: a calibration of integers" quantize "$model" -o "$scratch/x.onnx" --data "$data" --activations float8 --calibration mse
forms dynamic 0.02 --dynamic
check "dynamic: the product is an integer step" steps "$scratch/dynamic.onnx" QMatMul=1 Conv=3
forms int8 0.01 --weights int8
forms int4 0.1 --weights int4
forms int4-channels 0.1 --weights int4 --block 0
forms float8 0.05 --weights float8
check "weights alone need no data" quantize "$model" -o "$scratch/plain.onnx" --weights int4
check "and the data change nothing" cmp "$scratch/plain.onnx" "$scratch/int4.onnx"
check "external weights" sh -c "./graphc quantize '$model' -o '$scratch/outside.onnx' --data '$data' --external-weights && test -s '$scratch/outside.onnx.data'"
check "external weights: accuracy" reads_digits "$scratch/outside.onnx"

# ---- larger topologies ----
samples() { mkdir -p "$1" && split "$digits/test_images.npy" "$1" "$3" "$2" "$4"; }
./models/generate/grt-models resnet50 --size 32 --width 8 --classes 10 -o "$scratch/resnet.onnx" >/dev/null || exit 99
samples "$scratch/images" "1, 3, 32, 32" 6 12288
check "a residual network" report "$scratch/resnet.onnx" -o "$scratch/resnet.q.onnx" --data "$scratch/images"
check "a residual network: error" below error 0.1
check "a residual network: convolutions and sums are integer steps" steps "$scratch/resnet.q.onnx" QConv=53 QAdd=16 Conv=0 Add=0
./models/generate/grt-models vit_b16 --size 32 --layers 2 --hidden 64 --heads 4 --classes 10 -o "$scratch/vit.onnx" >/dev/null || exit 99
check "a small transformer" report "$scratch/vit.onnx" -o "$scratch/vit.q.onnx" --data "$scratch/images"
check "a small transformer: error" below error 0.1
check "a small transformer: attention stays whole" steps "$scratch/vit.q.onnx" Attention=2 MatMul=0
check "a small transformer, float8" report "$scratch/vit.onnx" -o "$scratch/vit.8.onnx" --data "$scratch/images" --activations float8
check "a small transformer, float8: error" below error 0.1
check "a small transformer, dynamic" report "$scratch/vit.onnx" -o "$scratch/vit.d.onnx" --data "$scratch/images" --dynamic
check "a small transformer, dynamic: error" below error 0.1

# ---- which layers ----
check "layers kept by name" report "$model" -o "$scratch/kept.onnx" --data "$data" --keep 'conv1,f*'
check "two are left" test "$(field quantised)" = 2
check "layers kept: steps" steps "$scratch/kept.onnx" Conv=1 QConv=2
check "ops of layers" report "$model" -o "$scratch/ops.onnx" --data "$data" --ops Gemm
check "one is left" test "$(field quantised)" = 1
check "a limit for the error" report "$model" -o "$scratch/limit.onnx" --data "$data" --max-error 0.008
check "the limit is kept" below error 0.008
check "by putting layers back" test "$(field put_back)" -ge 1 -a "$(field quantised)" -ge 1
refuse 2 "a limit that cannot be kept" quantize "$model" -o "$scratch/none.onnx" --data "$data" --max-error 1e-9
check "nothing was written" test ! -e "$scratch/none.onnx"

# ---- bytes ----
check "the same bytes twice" sh -c "./graphc quantize '$model' -o '$scratch/again.onnx' --data '$data' && cmp '$scratch/again.onnx' '$scratch/static.onnx'"
check "nothing but the model stays" sh -c "! ls '$scratch' | grep -E 'calibration|tmp'"
check "state" quantize "$model" -o "$scratch/s1.onnx" --data "$data" --state "$scratch/state"
check "state: nothing is seen again" report "$model" -o "$scratch/s2.onnx" --data "$data" --state "$scratch/state" --keep fc
check "state: all samples were there" test "$(field resumed)" = 40
check "state: other calibration begins anew" report "$model" -o "$scratch/s3.onnx" --data "$data" --state "$scratch/state" --calibration mse
check "state: none was there" test "$(field resumed)" = 0
# Ended by a signal at some time; the next call ends with the bytes of one that was not.
resumed()
{
    local after
    for after in 0.2 0.4 0.6 0.8 1.6 3.2 0.5 1 2; do
        timeout -s INT "$after" ./graphc quantize "$scratch/resnet.onnx" -o "$scratch/r.onnx" --data "$scratch/many" --measure 0 --calibration mse --state "$scratch/part" >/dev/null 2>&1
        [ ! -e "$scratch/part" ] || break
    done
    [ -e "$scratch/part" ] || return 1
    report "$scratch/resnet.onnx" -o "$scratch/r.onnx" --data "$scratch/many" --measure 0 --calibration mse --state "$scratch/part" || return 1
    echo "$(field resumed) of $(field samples) samples were seen before"
    [ "$(field resumed)" -gt 0 ] && cmp "$scratch/r.onnx" "$scratch/whole.onnx"
}
mkdir "$scratch/many"
for ((i = 0; i < 400; i++)); do ln "$scratch/images/00$((i % 6)).npy" "$(printf '%s/many/%03d.npy' "$scratch" "$i")"; done
check "all at once" quantize "$scratch/resnet.onnx" -o "$scratch/whole.onnx" --data "$scratch/many" --measure 0 --calibration mse
check "interrupted, and on" resumed
check "progress" sh -c "./graphc quantize '$model' -o '$scratch/p.onnx' --data '$data' --progress 2>&1 | grep -q 'graphc: calibrate 50%'"

# ---- what is refused ----
bad() { local name=$1 word=$2; shift 2; refuse 2 "$name" "$@"; cp "$scratch/out" "$scratch/message"; check "$name: the message says $word" grep -E -- "$word" "$scratch/message"; }
bad "no data" "--data" quantize "$model" -o "$scratch/x.onnx"
bad "no output" "-o" quantize "$model" --data "$data"
bad "no such directory" "no-such" quantize "$model" -o "$scratch/x.onnx" --data image="$scratch/no-such"
bad "an input without data" "input_ids|image" quantize "$model" -o "$scratch/x.onnx" --data other="$data"
mkdir "$scratch/wrong" && cp "$digits/test_labels.npy" "$scratch/wrong"
bad "samples of another type" "sample 0.*image" quantize "$model" -o "$scratch/x.onnx" --data "$scratch/wrong"
bad "two modes" "not both" quantize "$model" -o "$scratch/x.onnx" --dynamic --weights int8
bad "no such layer" "nonesuch" quantize "$model" -o "$scratch/x.onnx" --data "$data" --keep nonesuch
bad "no such op" "Relu" quantize "$model" -o "$scratch/x.onnx" --data "$data" --ops Relu
bad "no such calibration" "minmax" quantize "$model" -o "$scratch/x.onnx" --data "$data" --calibration most
bad "a small block" "16" quantize "$model" -o "$scratch/x.onnx" --weights int4 --block 8
bad "the model in its own place" "take the place" quantize "$model" -o "$model" --data "$data"
bad "what is quantised already" "nothing to quantise" quantize "$scratch/static.onnx" -o "$scratch/x.onnx" --data "$data"
./graphc optimize "$model" -o "$scratch/plan.grt" >/dev/null
bad "a plan" "plan" quantize "$scratch/plan.grt" -o "$scratch/x.onnx" --dynamic
head -c 3000 "$model" >"$scratch/cut.onnx"
bad "half a model" "cut.onnx" quantize "$scratch/cut.onnx" -o "$scratch/x.onnx" --dynamic
check "none of them wrote a model" test ! -e "$scratch/x.onnx"

# ---- others' opinion ----
if python3 -c 'import onnx, onnxruntime' 2>/dev/null; then
    check "ONNX's checker and ONNX Runtime open them" python3 - "$scratch"/{static,mse,symmetric,dynamic,int8,int4,float8,outside}.onnx <<'END'
import sys, onnx, onnxruntime, numpy
for path in sys.argv[1:]:
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    session.run(None, {"image": numpy.zeros((2, 1, 8, 8), numpy.float32)})
END
else
    skip "ONNX's checker and ONNX Runtime open them" "Python has no onnx and onnxruntime here"
fi
# Quantised by PyTorch after export.
pt2e=$srcdir/tests/data/cases/pt2e
check "PyTorch's PT2E: what PyTorch computes" ./graphrun check --atol 1e-5 "$pt2e"
check "PyTorch's PT2E: integer steps" steps "$pt2e/model.onnx" QConv=3 QMatMul=1 QGlobalAveragePool=1 Conv=0 Gemm=0 ReduceMean=0
finish
