#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/decoder: two layers of a decoder in float16 with weights of 4 bits, for 1, 7 and 40 new positions. The first has a
past, presents, two query heads for each key head and positions that are given; the second has neither past nor rotation. Queries,
keys and values are parts of one product, and so are gate and what it lets through. Expected results are NumPy's, rounded where
the graph says. Wants numpy, ml_dtypes and onnx. usage: decoder.py"""
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, INNER, SIZE, PAST, BLOCK, POSITIONS, EPSILON = 128, 96, 32, 21, 32, 64, 1e-5
LAYERS = [{"heads": 4, "kv": 2, "past": True}, {"heads": 4, "kv": 4, "past": False}]
ROWS = [1, 7, 40]


def half(x):
    return np.asarray(x).astype(np.float16).astype(np.float64)


class Model:
    """Nodes, constants, and a function that computes what they say."""

    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.constants, self.values = [], [], {}

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(values, name))
        self.values[name] = values.astype(np.float64)
        return name

    def node(self, op, inputs, *outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, list(outputs), name=outputs[0], **attributes))
        return outputs[0]

    def product(self, x, k, n, y):
        scale = (self.random.uniform(0.15, 0.3, (k // BLOCK, n)) / k**0.5).astype(np.float16)
        codes, zeros = (self.random.integers(0, 16, dims) for dims in ((k, n), scale.shape))
        parts = [self.constant(f"{y}_w", codes.astype(ml_dtypes.uint4)), self.constant(f"{y}_s", scale), self.constant(f"{y}_z", zeros.astype(ml_dtypes.uint4))]
        self.values[f"{y}_d"] = (codes - np.repeat(zeros, BLOCK, 0)) * np.repeat(scale.astype(np.float64), BLOCK, 0)
        return self.node("MatMul", [x, self.node("DequantizeLinear", parts, f"{y}_d", axis=0, block_size=BLOCK)], y)

    def layer(self, x, i, heads, kv, past):
        sizes = np.array([heads, kv, kv]) * SIZE
        self.constant(f"{i}_g", self.random.uniform(0.5, 1.5, HIDDEN).astype(np.float16))
        self.constant(f"{i}_h", self.random.uniform(0.5, 1.5, HIDDEN).astype(np.float16))
        self.constant(f"{i}_sizes", sizes)
        self.constant(f"{i}_halves", np.array([INNER, INNER]))
        self.node("RMSNormalization", [x, f"{i}_g"], f"{i}_n", axis=-1, epsilon=EPSILON)
        self.node("Split", [self.product(f"{i}_n", HIDDEN, sizes.sum(), f"{i}_qkv"), f"{i}_sizes"], f"{i}_q", f"{i}_k", f"{i}_v", axis=-1)
        q, k = f"{i}_q", f"{i}_k"
        if past:
            q = self.node("RotaryEmbedding", [q, "cos", "sin", "ids"], f"{i}_rq", num_heads=heads)
            k = self.node("RotaryEmbedding", [k, "cos", "sin", "ids"], f"{i}_rk", num_heads=kv)
        more = [f"{i}_present_k", f"{i}_present_v"] if past else []
        self.node("Attention", [q, k, f"{i}_v"] + ["", "past_k", "past_v"] * past, f"{i}_a", *more, q_num_heads=heads, kv_num_heads=kv, is_causal=1)
        x = self.node("Add", [x, self.product(f"{i}_a", heads * SIZE, HIDDEN, f"{i}_o")], f"{i}_x")
        self.node("RMSNormalization", [x, f"{i}_h"], f"{i}_m", axis=-1, epsilon=EPSILON)
        self.node("Split", [self.product(f"{i}_m", HIDDEN, 2 * INNER, f"{i}_gu"), f"{i}_halves"], f"{i}_gate", f"{i}_up", axis=-1)
        self.node("Sigmoid", [f"{i}_gate"], f"{i}_sigmoid")
        self.node("Mul", [f"{i}_gate", f"{i}_sigmoid"], f"{i}_silu")
        self.node("Mul", [f"{i}_silu", f"{i}_up"], f"{i}_gated")
        return self.node("Add", [x, self.product(f"{i}_gated", INNER, HIDDEN, f"{i}_down")], f"{i}_y")


def normalised(x, scale):
    return half(half(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPSILON)) * scale)


def rotated(x, heads, cos, sin):
    x = x.reshape(*x.shape[:2], heads, SIZE)
    low, high, c, s = x[..., : SIZE // 2], x[..., SIZE // 2 :], cos[:, :, None], sin[:, :, None]
    return half(np.concatenate([c * low - s * high, s * low + c * high], -1)).reshape(*x.shape[:2], -1)


def attended(q, k, v, heads, kv, past_k, past_v):
    """(results, presents)"""
    apart = [np.moveaxis(t.reshape(1, -1, n, SIZE), 1, 2) for t, n in ((q, heads), (k, kv), (v, kv))]
    q, k, v = apart[0], np.concatenate([past_k, apart[1]], 2), np.concatenate([past_v, apart[2]], 2)
    group, rows, keys = heads // kv, q.shape[2], k.shape[2]
    scores = q @ np.swapaxes(np.repeat(k, group, 1), 2, 3) / SIZE**0.5
    scores[:, :, np.arange(keys)[None] > np.arange(rows)[:, None] + keys - rows] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ np.repeat(v, group, 1)
    return half(np.moveaxis(y, 1, 2).reshape(1, rows, -1)), k, v


def expected(m, feeds):
    x, found = half(feeds["x"]), {}
    cos, sin = (m.values[n][feeds["ids"]] for n in ("cos", "sin"))
    for i, layer in enumerate(LAYERS):
        heads, kv = layer["heads"], layer["kv"]
        q, k, v = np.split(half(normalised(x, m.values[f"{i}_g"]) @ m.values[f"{i}_qkv_d"]), [heads * SIZE, (heads + kv) * SIZE], -1)
        past = [half(feeds[n]) for n in ("past_k", "past_v")] if layer["past"] else [np.zeros((1, kv, 0, SIZE))] * 2
        if layer["past"]:
            q, k = rotated(q, heads, cos, sin), rotated(k, kv, cos, sin)
        y, present_k, present_v = attended(q, k, v, heads, kv, *past)
        if layer["past"]:
            found |= {f"{i}_present_k": present_k, f"{i}_present_v": present_v}
        x = half(x + half(y @ m.values[f"{i}_o_d"]))
        gate, up = np.split(half(normalised(x, m.values[f"{i}_h"]) @ m.values[f"{i}_gu_d"]), 2, -1)
        x = half(x + half(half(half(gate * half(1 / (1 + np.exp(-gate)))) * up) @ m.values[f"{i}_down_d"]))
    return found | {f"{len(LAYERS) - 1}_y": x}


def main():
    m = Model()
    angles = m.random.uniform(0, 6.28, (POSITIONS, SIZE // 2))
    m.constant("cos", np.cos(angles).astype(np.float16))
    m.constant("sin", np.sin(angles).astype(np.float16))
    y = "x"
    for i, layer in enumerate(LAYERS):
        y = m.layer(y, i, **layer)
    kv = LAYERS[0]["kv"]
    inputs = {"x": [1, "rows", HIDDEN], "ids": [1, "rows"], "past_k": [1, kv, PAST, SIZE], "past_v": [1, kv, PAST, SIZE]}
    outputs = {"0_present_k": [1, kv, "total", SIZE], "0_present_v": [1, kv, "total", SIZE], y: [1, "rows", HIDDEN]}
    kinds = {"ids": TensorProto.INT64}
    values = [[helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT16), dims) for n, dims in side.items()] for side in (inputs, outputs)]
    model = helper.make_model(helper.make_graph(m.nodes, "decoder", *values, m.constants), opset_imports=[helper.make_opsetid("", 23)], producer_name="tests/data/decoder.py")
    model.ir_version = 11
    onnx.checker.check_model(model, full_check=True)
    case = Path(__file__).parent / "cases" / "decoder"
    for number, rows in enumerate(ROWS):
        feeds = {n: m.random.standard_normal([d if d != "rows" else rows for d in dims]).astype(np.float16) for n, dims in inputs.items() if n != "ids"}
        feeds = {"x": feeds["x"], "ids": np.arange(PAST, PAST + rows)[None] % POSITIONS, "past_k": feeds["past_k"], "past_v": feeds["past_v"]}
        results = expected(m, feeds)
        data = case / f"test_data_set_{number}"
        data.mkdir(parents=True, exist_ok=True)
        for kind, side in (("input", feeds), ("output", {n: results[n].astype(np.float16) for n in outputs})):
            for i, (name, value) in enumerate(side.items()):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    onnx.save(model, case / "model.onnx")


if __name__ == "__main__":
    main()
