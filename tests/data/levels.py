#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/levels: attention of float16 whose results are quantised, to signed and unsigned bytes and to float8, for many rows and
for few. Each query has two keys and is orthogonal to all others, so that a result is the mean of two even numbers: exact in any
order, and no quotient lies between two levels but those that are exact. Wants numpy, ml_dtypes and onnx. usage: levels.py"""
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, HEADS, SIZE, FEW = 128, 2, 64, 9
# name -> type, scale, zero point, queries
RESULTS = {"signed": (TensorProto.INT8, 2.0, 0, ROWS), "unsigned": (TensorProto.UINT8, 1.5, 131, ROWS),
           "float8": (TensorProto.FLOAT8E4M3FN, 0.5, 0, ROWS), "few": (TensorProto.INT8, 2.0, -7, FEW)}


def rounded(y, kind, scale, zero):
    y = y.astype(np.float32) / np.float32(scale)
    if kind == TensorProto.FLOAT8E4M3FN:
        return np.clip(y, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(kind))
    return np.clip(np.rint(y) + zero, limits.min, limits.max).astype(limits.dtype)


def main():
    random = np.random.default_rng(1)
    direction = np.stack([np.arange(ROWS) % SIZE, (5 * np.arange(ROWS) + 3) % SIZE], 1)
    x = 8 * np.eye(SIZE)[direction].reshape(1, ROWS, HEADS * SIZE).astype(np.float16)
    v = (2 * random.integers(-125, 126, (1, ROWS, HEADS * SIZE))).astype(np.float16)
    heads = v.reshape(ROWS, HEADS, SIZE).astype(np.float64)
    mean = np.stack([(heads[:, h] + np.roll(heads[:, h], -SIZE, 0)) / 2 for h in range(HEADS)], 1).reshape(1, ROWS, HEADS * SIZE)
    nodes, constants, results = [], [], {}
    for k, (name, (kind, scale, zero, queries)) in enumerate(RESULTS.items()):
        constants.append(helper.make_tensor(f"{name}_scale", TensorProto.FLOAT, [], [scale]))
        constants.append(helper.make_tensor(f"{name}_zero", kind, [], [zero]))
        query = "x" if queries == ROWS else "first"
        nodes.append(helper.make_node("Attention", [query, "x", "v"], [f"{name}_y"], name=f"{name}_y", q_num_heads=HEADS, kv_num_heads=HEADS,
                                      scale=1.0 + k)) # not the same node
        nodes.append(helper.make_node("QuantizeLinear", [f"{name}_y", f"{name}_scale", f"{name}_zero"], [name], name=name))
        results[name] = rounded(mean[:, :queries], kind, scale, zero)
    feeds = {"x": x, "v": v, "first": x[:, :FEW]}

    def infos(values):
        return [helper.make_tensor_value_info(name, RESULTS[name][0] if name in RESULTS else TensorProto.FLOAT16, value.shape)
                for name, value in values.items()]

    model = helper.make_model(helper.make_graph(nodes, "levels", infos(feeds), infos(results), constants),
                              opset_imports=[helper.make_opsetid("", 23)], producer_name="tests/data/levels.py")
    model.ir_version = 11
    onnx.checker.check_model(model, full_check=True)
    data = Path(__file__).parent / "cases" / "levels" / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, values in (("input", feeds), ("output", results)):
        for i, (name, value) in enumerate(values.items()):
            tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


if __name__ == "__main__":
    main()
