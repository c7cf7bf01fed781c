#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the seed corpora: small models of the conformance archive that differ in what they use, and plans of them.
# usage: seeds.sh [--all] BUILD-DIR OUT-DIR    writes OUT-DIR/import/*.onnx and OUT-DIR/plan/*.grt
#   --all   every model of at most 32 KiB in BUILD-DIR/data
set -u
all=
if [ "${1:-}" = --all ]; then
    all=1
    shift
fi
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: seeds.sh [--all] BUILD-DIR OUT-DIR}" && pwd) || exit 1
out=${2:?usage: seeds.sh [--all] BUILD-DIR OUT-DIR}
data=${GRAPHRT_TEST_DATA:-$build/data}
mkdir -p "$out/import" "$out/plan" || exit 1

# Subgraphs, functions, sequences, optionals, maps, strings, small floats, attributes of every kind, windows of every kind.
names="add_bcast if if_seq if_opt loop11 loop13_seq scan9_sum sequence_insert_at_back sequence_map_add_1_sequence_1_tensor
    optional_get_element_sequence concat_1d_axis_0 conv_with_strides_padding reshape_extended_dims slice pad
    gemm_all_attributes batchnorm_example lstm_defaults einsum_sum cast_FLOAT_to_FLOAT8E4M3FN
    cast_FLOAT_to_UINT4 string_concat tfidfvectorizer_tf_onlybigrams_levelempty constant nonzero_example softmax_axis_0
    gelu_default_1_expanded layer_normalization_2d_axis0_expanded quantizelinear_axis resize_upsample_scales_linear topk
    averagepool_2d_dilations maxpool_with_argmax_2d_precomputed_pads lppool_2d_dilations maxunpool_export_with_output_shape
    convtranspose_dilations convtranspose_output_shape deform_conv_with_mask_bias col2im_dilations convinteger_with_padding qlinearconv"

# Ops that passes make for other devices than the CPU, one model for each: QRoundedAttention, QAttention and what the CPU has too, for
# a device that takes all ops; then for one that is like a GPU, where its module is there: CacheUpdate, PointwiseParts, Rows,
# RotaryEmbeddings, Networks, PointwiseConcat, WovenConv, float16, channels last, rows of weights.
cases=$here/../data/cases
for_null="$cases/rounded $cases/levels $cases/rolls $cases/pt2e $data/contrib/nbits_4_64 $data/contrib/qlinear_mul"
for_mirror="$cases/weights $cases/decoder $data/families/densenet121.script $data/families/unet.script"
for name in mha_present gqa_cache_next_short gqa_first_rotary branch_norm cdist group_norm_silu skip_group_norm dynamic_pads qlinear_conv_last; do
    for_mirror="$for_mirror $data/contrib/$name"
done

"$here/../conformance/unpack.sh" "$data" 2>/dev/null || exit 1
cp -f "$here/../../models/digits/digits.onnx" "$out/import/digits.onnx"
for name in $names; do
    model=$data/node/test_$name/model.onnx
    [ -e "$model" ] && cp -f "$model" "$out/import/$name.onnx"
done
for name in zip_map_strings dict_vectorizer cast_map_sparse category; do
    cp -f "$data/contrib/$name/model.onnx" "$out/import/$name.onnx"
done
for model in "$here"/../data/patterns/*/model.onnx; do
    cp -f "$model" "$out/import/$(basename "$(dirname "$model")").onnx"
done
if [ -n "$all" ]; then
    for model in "$data"/*/*/model.onnx; do
        [ "$(stat -Lc %s "$model")" -gt 32768 ] || cp -f "$model" "$out/import/$(basename "$(dirname "$model")").onnx"
    done
fi
for model in "$out"/import/*.onnx; do
    plan=$out/plan/$(basename "$model" .onnx).grt
    [ -e "$plan" ] || "$build/graphc" optimize "$model" -o "$plan" >/dev/null 2>&1
done
# plan_for TARGET MODEL NAME OPTION...
plan_for()
{
    local plan=$out/plan/$3.$1.grt
    [ -e "$plan" ] || "$build/graphc" optimize "$2" --target "$1" -o "$plan" "${@:4}" >/dev/null
}
for case in $for_null; do
    plan_for null "$case/model.onnx" "$(basename "$case")" || exit 1
done
if [ -e "$build/libgraphrt-mirror.so" ]; then
    export GRAPHRT_BACKEND_PATH=$build
    for case in $for_mirror; do
        plan_for mirror "$case/model.onnx" "$(basename "$case")" --precision fp16 || exit 1
    done
    "$build/models/generate/grt-models" parallel_fcn --n 16 --inputs 3 --hidden 4 --batch 2 -o "$out/networks.onnx" >/dev/null &&
        plan_for mirror "$out/networks.onnx" networks || exit 1
fi
# One with chosen algorithms: any device that is described will do.
mkdir -p "$out/devices"
echo '{"format": 1, "kind": "null", "name": "nothing", "sm": 1, "source": "seeds.sh", "properties": {}}' >"$out/devices/nothing.json"
GRAPHRT_DEVICE_PATH=$out/devices "$build/graphc" optimize "$out/import/digits.onnx" --target nothing -o "$out/plan/tuned.grt" >/dev/null || exit 1
[ -n "$(ls "$out/plan")" ]
