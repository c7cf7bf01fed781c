#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# graph/ir/input_types.def is what the schemas of ONNX and of ONNX Runtime say, where these are installed.
set -u
. "$(dirname "$0")/lib.sh"

status=0
python3 "$srcdir/scripts/input_types.py" --check >"$scratch/said" 2>&1 || status=$?
if [ "$status" = 77 ]; then
    skip "dtypes of inputs as the schemas have them" "$(tail -n 1 "$scratch/said")"
    finish
fi
check "dtypes of inputs as the schemas have them" sh -c "cat '$scratch/said'; exit $status"
mkdir -p "$scratch/tree"
(cd "$srcdir" && cp --parents scripts/input_types.py include/graphrt/tensor.h src/base/tensor.h graph/ir/input_types.def "$scratch/tree")
sed -i '/"Reshape"/s/INT64/INT32 | INT64/' "$scratch/tree/graph/ir/input_types.def"
refuse 1 "a dtype that no schema allows" python3 "$scratch/tree/scripts/input_types.py" --check
finish
