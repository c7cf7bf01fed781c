#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/rounded: attentions that are rounded to bytes behind each node, of which nothing else is read: parts of one value with scaled
queries and keys, and signed tensors with a mask and a table of shares; and a product that adds a constant row behind its own rounding, with as
many rows as have tiles for most of a GPU. Numbers are as in heads.py, whose functions these are. usage: rounded.py"""
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import heads
from heads import Levels, constant, fed, node, rounded

ROWS, TILES, STEP, SEED = 64, 140, 97, 1


def softmax(value):
    shares = np.exp(value - value.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def share(x, value, of, name):
    shares = softmax(value)
    levels = shares / np.float64(of.scale)
    middle = (np.abs(levels % 1 - 0.5) / np.maximum(levels, 1)).min()
    assert middle > 1e-6, middle  # float32 rounds them three times
    return rounded(node("Softmax", [x], f"{name}_softmax", axis=-1), shares, of, f"{name}_shares")


def attend_parts(batch=2, tokens=37, n=3, size=32):
    x, value = fed("parts", (batch, tokens, 3, n, size), Levels(2.0**-5, np.uint8(126)), np.uint8)
    node("Split", [node("Transpose", [x], "parts_turned", perm=[2, 0, 3, 1, 4])], "parts_cut", axis=0, num_outputs=3)
    del heads.nodes[-1].output[:]
    heads.nodes[-1].output.extend(["part_q", "part_k", "part_v"])
    dims = constant(np.array([batch, n, tokens, size], np.int64))
    q, k, v = (node("Reshape", [f"part_{c}", dims], f"{c}_part") for c in "qkv")
    q_value, k_value, v_value = value.transpose(2, 0, 3, 1, 4)
    q, q_value = rounded(node("Mul", [q, constant(np.float32(0.5))], "q_half"), q_value * 0.5, Levels(2.0**-6, np.uint8(120)), "q_scaled")
    k, k_value = rounded(node("Mul", [node("Transpose", [k], "k_turned", perm=[0, 1, 3, 2]), constant(np.float32(0.25))], "k_quarter"),
                         k_value * 0.25, Levels(2.0**-6, np.uint8(131)), "k_scaled")
    x, value = rounded(node("MatMul", [q, k], "part_sums"), q_value @ k_value.swapaxes(-1, -2), Levels(2.0**-4, np.uint8(125)), "part_scores")
    x, value = share(x, value, Levels(2.0**-8, np.uint8(0)), "part")
    x, value = rounded(node("MatMul", [x, v], "part_attended"), value @ v_value, Levels(2.0**-5, np.uint8(128)), "part_result")
    x = node("Transpose", [x], "part_tokens", perm=[0, 2, 1, 3])
    rounded(x, value.swapaxes(1, 2), Levels(2.0**-5, np.uint8(128)), "y_parts", True)


def attend_masked(batch=2, queries=21, keys=70, n=2, size=64):
    q, q_value = fed("sq", (batch, queries, n, size), Levels(2.0**-7, np.int8(3)), np.int8)
    k, k_value = fed("sk", (batch, n, keys, size), Levels(2.0**-6, np.int8(-7)), np.int8)
    v, v_value = fed("sv", (batch, keys, n, size), Levels(2.0**-4, np.int8(11)), np.int8)
    mask, mask_value = fed("smask", (batch, 1, queries, keys), Levels(2.0**-6, np.int8(127)), np.int8)
    q, k = node("Transpose", [q], "sq_heads", perm=[0, 2, 1, 3]), node("Transpose", [k], "sk_turned", perm=[0, 1, 3, 2])
    v = node("Transpose", [v], "sv_heads", perm=[0, 2, 1, 3])
    sums = np.einsum("bqhd,bhkd->bhqk", q_value, k_value)
    x, value = rounded(node("MatMul", [q, k], "masked_sums"), sums, Levels(2.0**-4, np.int8(-3)), "s_scores")
    x, value = rounded(node("Add", [x, mask], "s_masked"), value + mask_value, Levels(2.0**-4, np.int8(12)), "s_scores_masked")
    x, value = share(x, value, Levels(2.0**-8, np.int8(-128)), "s")
    x, value = rounded(node("Mul", [x, constant(np.float32(0.5))], "s_half"), value * 0.5, Levels(2.0**-8, np.int8(-101)), "s_again")
    value = np.einsum("bhqk,bkhd->bhqd", value, v_value)
    rounded(node("MatMul", [x, v], "s_attended"), value, Levels(2.0**-4, np.int8(5)), "y_masked", True)


def add_row(depth=64, columns=64):
    of_x, of_w, of_row = Levels(2.0**-6, np.uint8(113)), Levels(2.0**-7, np.int8(0)), Levels(2.0**-3, np.int8(-9))
    heads.feeds["rows"] = heads.random.integers(0, 256, (1, ROWS, depth)).astype(np.uint8)
    node("Tile", ["rows", constant(np.array([1, TILES, 1], np.int64))], "many_rows")
    x, value = of_x.dequantise("many_rows", "many_rows_wide"), of_x.numbers(np.tile(heads.feeds["rows"], (1, TILES, 1)))
    w = heads.random.integers(-127, 128, (depth, columns)).astype(np.int8)
    row = heads.random.integers(-128, 128, columns).astype(np.int8)
    sums = node("MatMul", [x, of_w.dequantise(constant(w), "row_w")], "row_sums")
    x, value = rounded(sums, value @ of_w.numbers(w), Levels(2.0**-4, np.uint8(100)), "row_product")
    x = node("Add", [of_row.dequantise(constant(row), "row_wide"), x], "row_added")
    y = Levels(2.0**-3, np.uint8(140)).of(value + of_row.numbers(row))
    Levels(2.0**-3, np.uint8(140)).quantise(x, "row_y")
    ends = [constant(np.array([at], np.int64)) for at in (0, ROWS * TILES, 1, STEP)]
    node("Slice", ["row_y", *ends], "y_rows")
    heads.results["y_rows"] = y[:, ::STEP]


def main():
    heads.random = np.random.default_rng(SEED)
    attend_parts()
    attend_masked()
    add_row()
    model = helper.make_model(helper.make_graph(heads.nodes, "rounded", heads.infos(heads.feeds), heads.infos(heads.results), heads.constants),
                              opset_imports=[helper.make_opsetid("", 21)], producer_name="tests/data/rounded.py")
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    data = Path(__file__).parent / "cases" / "rounded" / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, values in (("input", heads.feeds), ("output", heads.results)):
        for i, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(value), name).SerializeToString())
    for name, value in heads.results.items():
        limits = np.iinfo(value.dtype)
        print(name, value.shape, "most", np.mean(value == limits.max), "least", np.mean(value == limits.min), "levels", len(np.unique(value)))


if __name__ == "__main__":
    main()
