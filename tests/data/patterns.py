#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes patterns/NAME: small models of what passes make one step of, which no model of a single node has, with what ONNX's reference
evaluator makes of random inputs. tests/mutate changes them at random. Sizes, forms and constants are drawn. Wants numpy and onnx.

usage: patterns.py [DIRECTORY [SEED [COUNT]]]     COUNT of each (2), into DIRECTORY (patterns beside this file)"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 20


class Model:
    """A graph that grows node by node; draws come from its own random numbers."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.feeds, self.results = [], [], {}, []

    def pick(self, *of):
        return of[self.random.integers(len(of))]

    def size(self, low, high):
        return int(self.random.integers(low, high + 1))

    def input(self, *dims, kind=np.float32):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.random.standard_normal(dims).astype(kind)
        return name

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weights(self, *dims):
        return self.constant((self.random.standard_normal(dims) / 2).astype(np.float32))

    def put(self, op, *inputs, outputs=1, **attributes):
        names = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def result(self, name):
        self.results.append(name)

    def made(self, name):
        feeds = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in self.feeds.items()]
        unknown = [helper.make_empty_tensor_value_info(y) for y in self.results]
        graph = helper.make_graph(self.nodes, name, feeds, unknown, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tests/data/patterns.py", ir_version=9)
        values = ReferenceEvaluator(model).run(None, self.feeds)
        del graph.output[:]
        graph.output.extend(helper.make_tensor_value_info(y, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for y, v in zip(self.results, values))
        model.graph.CopyFrom(graph)
        onnx.checker.check_model(model, full_check=True)
        return model, values


def scaled(m, x, channels):
    """The input by channel: a norm, or a product, a sum or both."""
    form = m.pick("norm", "Mul", "Div", "both", "x")
    by_channel = lambda: m.constant((m.random.random((channels, 1, 1)) + 0.5).astype(np.float32))
    if form == "norm":
        return m.put("BatchNormalization", x, *(m.constant((m.random.random(channels) + 0.5).astype(np.float32)) for _ in range(4)))
    if form == "x":
        return x
    y = m.put("Mul" if form == "both" else form, x, by_channel())
    return m.put(m.pick("Add", "Sub"), y, by_channel()) if form == "both" else y


def branches(m):
    """Convolutions of one input and the input itself, added up or subtracted."""
    group = m.pick(1, 1, 2, 0)
    channels = 2 * m.size(1, 4)
    group = group or channels
    x = m.input(m.size(1, 2), channels, m.size(4, 7), m.size(4, 7))
    parts = []
    for k in range(m.size(2, 4)):
        taps = [m.pick(1, 3), m.pick(1, 3), 5][:2] if k else [3, 3]
        inputs = [x, m.weights(channels, channels // group, *taps)] + ([m.weights(channels)] if m.pick(0, 1) else [])
        y = m.put("Conv", *inputs, group=group, pads=[t // 2 for t in taps] * 2)
        parts.append(scaled(m, y, channels) if m.pick(0, 0, 1) else y)
    for _ in range(m.size(0, 2)):
        parts.insert(m.size(0, len(parts)), scaled(m, x, channels))
    y = parts[0]
    for part in parts[1:]:
        y = m.put(m.pick("Add", "Add", "Sub"), *((y, part) if m.pick(0, 1) else (part, y)))
    m.result(m.put("Relu", y))


def mixed_heads(m):
    """Scores whose heads are mixed in front of a softmax, behind it, or both."""
    heads, queries, keys = m.size(1, 6), m.size(1, 9), m.size(1, 40)

    def mix(s):
        form = m.pick("product", "conv", "left")
        if form == "product":
            y = m.put("MatMul", m.put("Transpose", s, perm=[0, 2, 3, 1]), m.weights(heads, heads))
            y = m.put("Add", y, m.weights(heads)) if m.pick(0, 1) else y
            return m.put("Transpose", y, perm=[0, 3, 1, 2])
        if form == "conv":
            return m.put("Conv", s, m.weights(heads, heads, 1, 1), *([m.weights(heads)] if m.pick(0, 1) else []))
        flat = m.put("Reshape", s, m.constant(np.array([0, heads, queries * keys])))
        return m.put("Reshape", m.put("MatMul", m.weights(heads, heads), flat), m.constant(np.array([0, heads, queries, keys])))

    s = m.input(m.size(1, 2), heads, queries, keys)
    form = m.pick(1, 2, 3)
    s = mix(s) if form & 1 else s
    s = m.put("Softmax", s, axis=-1)
    s = mix(s) if form & 2 else s
    m.result(m.put("MatMul", s, m.input(1, heads, keys, m.size(1, 5))))


def mixed_tokens(m):
    """Products by a constant matrix between two transposes, as of MLP-Mixer."""
    tokens, channels, hidden = m.size(1, 9), m.size(2, 12), m.size(1, 17)
    x = m.input(m.size(1, 2), tokens, channels)
    y = m.put("LayerNormalization", x, m.weights(channels)) if m.pick(0, 1) else x
    y = m.put("Transpose", y, perm=[0, 2, 1])
    for columns in (hidden, tokens):
        y = m.put("MatMul", y, m.weights(tokens if columns == hidden else hidden, columns))
        y = m.put("Add", y, m.weights(columns)) if m.pick(0, 1) else y
        y = m.put(m.pick("Relu", "Gelu", "Sigmoid"), y) if columns == hidden else y
    m.result(m.put("Add", x, m.put("Transpose", y, perm=[0, 2, 1])))


class Levels:
    """Scales and zero points of bytes."""

    def __init__(self, m):
        self.m, self.kind = m, m.pick(np.uint8, np.int8)

    def scale(self, least=-6, most=-4):
        m = self.m
        zero = m.size(100, 140) if self.kind == np.uint8 else m.size(-10, 10)
        return m.constant(np.float32(2.0 ** m.size(least, most))), m.constant(self.kind(zero))

    def rounded(self, y):
        scale = self.scale()
        return self.m.put("DequantizeLinear", self.m.put("QuantizeLinear", y, *scale), *scale)

    def weights(self, *dims, axis):
        m = self.m
        scales = (2.0 ** m.random.integers(-8, -6, dims[axis])).astype(np.float32) if m.pick(0, 1) else np.float32(2.0 ** -7)
        w = m.constant(m.random.integers(-127, 128, dims).astype(np.int8))
        return m.put("DequantizeLinear", w, m.constant(scales), m.constant(np.zeros(scales.shape, np.int8)), axis=axis)


def quantised_tables(m):
    """A product rounded to bytes, and functions of that byte alone, each rounded: GELU, SiLU, or some other one."""
    levels, depth, columns = Levels(m), m.size(1, 40), m.size(1, 20)
    y = levels.rounded(m.input(m.size(1, 3), m.size(1, 5), depth))
    y = m.put("MatMul", y, levels.weights(depth, columns, axis=1))
    y = x = levels.rounded(m.put("Add", y, m.weights(columns)) if m.pick(0, 1) else y)
    form = m.pick("Gelu", "erf", "silu", "chain")
    if form == "Gelu":
        y = levels.rounded(m.put("Gelu", x))
    elif form == "silu":
        y = levels.rounded(m.put("Mul", x, levels.rounded(m.put("Sigmoid", x))))
    elif form == "chain":
        for op in ("Tanh", m.pick("Abs", "Relu"), m.pick("Sqrt", "Exp")):
            y = levels.rounded(m.put(op, y))
    else:
        y = levels.rounded(m.put("Erf", levels.rounded(m.put("Mul", x, m.constant(np.float32(0.75))))))
        y = levels.rounded(m.put("Add", y, m.constant(np.float32(1))))
        y = levels.rounded(m.put("Mul", x, y))
    m.result(levels.rounded(m.put("MatMul", y, levels.weights(columns, m.size(1, 9), axis=1))))


def multipliers(m):
    """Convolutions of groups of one channel with several filters each, of floats or of bytes."""
    channels, many, spatial = m.size(1, 20), m.size(1, 3), m.pick(1, 2)
    taps = [m.size(1, 3) for _ in range(spatial)]
    x = m.input(m.size(1, 2), channels, *(m.size(4, 9) for _ in range(spatial)))
    attributes = {"group": channels, "strides": [m.size(1, 2)] * spatial, "pads": [t // 2 for t in taps] * 2}
    bias = [m.weights(channels * many)] if m.pick(0, 1) else []
    if m.pick(0, 1):
        m.result(m.put("Relu", m.put("Conv", x, m.weights(channels * many, 1, *taps), *bias, **attributes)))
    else:
        levels = Levels(m)
        m.result(levels.rounded(m.put("Conv", levels.rounded(x), levels.weights(channels * many, 1, *taps, axis=0), **attributes)))


def recurrent(m):
    """Two layers, one or two directions, of a few rows."""
    steps, rows, width, hidden, ways = m.size(1, 5), m.size(1, 5), m.size(1, 20), m.size(1, 20), m.pick(1, 2)
    op, gates = m.pick(("GRU", 3), ("LSTM", 4), ("RNN", 1))
    y = m.input(steps, rows, width)
    for _ in range(2):
        attributes = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else m.pick("forward", "reverse")}
        if op == "GRU":
            attributes["linear_before_reset"] = m.size(0, 1)
        inputs = [y, m.weights(ways, gates * hidden, width), m.weights(ways, gates * hidden, hidden)]
        inputs += [m.weights(ways, 2 * gates * hidden)] if m.pick(0, 1) else []
        y = m.put(op, *inputs, outputs=2, **attributes)[0]
        y = m.put("Reshape", m.put("Transpose", y, perm=[0, 2, 1, 3]), m.constant(np.array([0, 0, -1])))
        width = ways * hidden
    m.result(y)


PATTERNS = [branches, mixed_heads, mixed_tokens, quantised_tables, multipliers, recurrent]


def write(directory, name, make, seed):
    m = Model(seed)
    make(m)
    model, values = m.made(name)
    data = directory / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, directory / name / "model.onnx")
    for kind, names, arrays in (("input", m.feeds, m.feeds.values()), ("output", m.results, values)):
        for i, (key, value) in enumerate(zip(names, arrays)):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, key).SerializeToString())


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "patterns"
    seed, count = (int(sys.argv[i]) if len(sys.argv) > i else i - 1 for i in (2, 3))
    for make in PATTERNS:
        for i in range(count):
            write(directory, f"{make.__name__}_{i}", make, seed + i)


if __name__ == "__main__":
    main()
