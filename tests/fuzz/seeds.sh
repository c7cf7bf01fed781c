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

# Subgraphs, functions, sequences, optionals, maps, strings, small floats, attributes of every kind.
names="add_bcast if if_seq if_opt loop11 loop13_seq scan9_sum sequence_insert_at_back sequence_map_add_1_sequence_1_tensor
    optional_get_element_sequence concat_1d_axis_0 conv_with_strides_padding reshape_extended_dims slice pad
    gemm_all_attributes batchnorm_example lstm_defaults einsum_sum cast_FLOAT_to_FLOAT8E4M3FN
    cast_FLOAT_to_UINT4 string_concat tfidfvectorizer_tf_onlybigrams_levelempty constant nonzero_example softmax_axis_0
    gelu_default_1_expanded layer_normalization_2d_axis0_expanded quantizelinear_axis resize_upsample_scales_linear topk"

"$here/../conformance/unpack.sh" "$data" 2>/dev/null || exit 1
cp -f "$here/../../models/digits/digits.onnx" "$out/import/digits.onnx"
for name in $names; do
    model=$data/node/test_$name/model.onnx
    [ -e "$model" ] && cp -f "$model" "$out/import/$name.onnx"
done
for name in zip_map_strings dict_vectorizer cast_map_sparse category; do
    cp -f "$data/contrib/$name/model.onnx" "$out/import/$name.onnx"
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
# One with chosen algorithms: any device that is described will do.
mkdir -p "$out/devices"
echo '{"format": 1, "kind": "null", "name": "nothing", "sm": 1, "source": "seeds.sh", "properties": {}}' >"$out/devices/nothing.json"
GRAPHRT_DEVICE_PATH=$out/devices "$build/graphc" optimize "$out/import/digits.onnx" --target nothing -o "$out/plan/tuned.grt" >/dev/null || exit 1
[ -n "$(ls "$out/plan")" ]
