#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/weights: products of few and of many float16 rows by constant weights of 4 and 8 bits with one zero point, one for
each column, and one for each block. Sums are whole numbers of at most 11 bits times a power of two, so that every order and
every rounding of weights gives the same. Wants numpy, ml_dtypes and onnx. usage: weights.py"""
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, INNER, COLUMNS, BLOCK = {"few": 3, "many": 40}, 64, 40, 32
TYPES = {"u4": (TensorProto.UINT4, ml_dtypes.uint4, 16), "u8": (TensorProto.UINT8, np.uint8, 32)}
SCALES = {"one": (), "column": (COLUMNS,), "block": (INNER // BLOCK, COLUMNS)}


def spread(values):
    return np.repeat(values, BLOCK, 0) if values.ndim == 2 else values


def main():
    rng = np.random.default_rng(1)
    feeds = {name: rng.integers(-1, 2, (rows, INNER)).astype(np.float16) for name, rows in ROWS.items()}
    nodes, constants, outputs, results = [], [], [], []

    def constant(name, kind, values):
        constants.append(numpy_helper.from_array(np.asarray(values).astype(kind), name))
        return name

    for type_name, (_, kind, end) in TYPES.items():
        for scales, dims in SCALES.items():
            name = f"{type_name}_{scales}"
            codes, zeros = rng.integers(0, end, (INNER, COLUMNS)), rng.integers(0, end, dims)
            scale = 2.0 ** -rng.integers(4, 6, dims)
            block = {"axis": 0, "block_size": BLOCK} if scales == "block" else {"axis": 1}
            nodes.append(helper.make_node("DequantizeLinear", [constant(f"{name}_w", kind, codes), constant(f"{name}_s", np.float16, scale),
                                                               constant(f"{name}_z", kind, zeros)], [name], name=name, **block))
            weights = (codes - spread(zeros)) * spread(scale)
            for rows, x in feeds.items():
                nodes.append(helper.make_node("MatMul", [rows, name], [f"{name}_{rows}"], name=f"{name}_{rows}"))
                outputs.append(helper.make_tensor_value_info(f"{name}_{rows}", TensorProto.FLOAT16, [ROWS[rows], COLUMNS]))
                exact = x.astype(np.float64) @ weights
                assert (exact.astype(np.float16) == exact).all(), name
                results.append(exact.astype(np.float16))
    graph = helper.make_graph(nodes, "weights", [helper.make_tensor_value_info(n, TensorProto.FLOAT16, x.shape) for n, x in feeds.items()],
                              outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], producer_name="tests/data/weights.py")
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    case = Path(__file__).parent / "cases" / "weights"
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, case / "model.onnx")
    for kind, values in (("input", feeds.items()), ("output", zip([o.name for o in outputs], results))):
        for i, (name, value) in enumerate(values):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


if __name__ == "__main__":
    main()
