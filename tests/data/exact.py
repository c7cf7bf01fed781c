#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/exact_{steps,sums}_{float16,bfloat16}: what optimisation computes as one step in float32 (chains of element-wise
nodes, activations and norms that are written out, biases, scales behind convolutions, attention), with inputs and what ONNX's
reference evaluator makes of them, which rounds every node's result. `steps` has no sums of many terms, whose order
the standard leaves open, and no function that the evaluator rounds within. Numbers are large and small enough for a rounding more or less to show: some overflow in float16. Wants numpy, ml_dtypes and onnx. usage: exact.py"""
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TYPES = {"float16": (np.float16, TensorProto.FLOAT16), "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16)}
ROWS, COLUMNS = 6, 32


class Graph:
    def __init__(self, name):
        self.dtype, self.type = TYPES[name]
        self.nodes, self.constants, self.outputs, self.feeds = [], [], [], {}
        self.rng = np.random.default_rng(len(name))

    def constant(self, values, dtype=None):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values).astype(dtype or self.dtype), name))
        return name

    def random(self, *dims, spread=1.0):
        return self.constant(self.rng.normal(0, spread, dims))

    def input(self, name, *dims, spread=1.0):
        self.feeds[name] = self.rng.normal(0, spread, dims).astype(self.dtype)

    def put(self, op, *names, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(names), [name], name=f"{op.lower()}{len(self.nodes)}", **attributes))
        return name

    def out(self, name):
        self.outputs.append(helper.make_tensor_value_info(name, self.type, None))

    def model(self):
        graph = helper.make_graph(
            self.nodes, "exact", [helper.make_tensor_value_info(name, self.type, value.shape) for name, value in self.feeds.items()], self.outputs,
            self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], producer_name="tests/data/exact.py")
        model.ir_version = 10
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def element_wise(g):
    x, y, big = "x", "y", g.constant(300.0)
    g.out(g.put("Mul", g.put("Mul", g.put("Mul", x, big), big), g.constant(2.0**-14)))  # overflows float16
    g.out(g.put("Sub", g.put("Add", x, big), big))
    g.out(g.put("Mul", g.put("Div", x, g.constant(3.0)), g.constant(3.0)))
    g.out(g.put("Relu", g.put("Sub", g.put("Mul", x, y), g.put("Div", y, g.constant(7.0)))))
    g.out(g.put("Sqrt", g.put("Add", g.put("Mul", x, x), g.constant(1e-3))))
    g.out(g.put("Pow", g.put("Add", x, y), g.constant(3.0)))
    g.out(g.put("Sum", x, g.put("Mul", y, y)))


def gelu(g):
    """Written out, as exporters do."""
    erf = g.put("Erf", g.put("Div", "x", g.constant(2**0.5)))
    g.out(g.put("Mul", g.put("Mul", "x", g.put("Add", erf, g.constant(1.0))), g.constant(0.5)))


def norm(g):
    mean = g.put("ReduceMean", "x", g.constant([-1], np.int64))
    centred = g.put("Sub", "x", mean)
    variance = g.put("ReduceMean", g.put("Mul", centred, centred), g.constant([-1], np.int64))
    normal = g.put("Div", centred, g.put("Sqrt", g.put("Add", variance, g.constant(1e-3))))
    g.out(g.put("Add", g.put("Mul", normal, g.random(COLUMNS)), g.random(COLUMNS)))


def products(g):
    product = g.put("MatMul", "x", g.random(COLUMNS, 24, spread=0.3))
    g.out(g.put("Relu", g.put("Add", g.put("Add", product, g.random(24)), g.constant(0.1))))
    g.out(g.put("Mul", g.put("Gemm", "x", g.random(COLUMNS, 8), g.random(8)), g.random(8)))
    image = g.put("Conv", "image", g.random(8, 4, 3, 3, spread=0.3), g.random(8), pads=[1, 1, 1, 1])
    scale, shift = g.random(1, 8, 1, 1), g.random(1, 8, 1, 1)
    scaled = g.put("Add", g.put("Mul", image, scale), shift)
    second = g.put("Conv", g.put("Relu", scaled), g.random(8, 8, 1, 1, spread=0.5))
    g.out(g.put("Add", second, image))


def attention(g):
    q, k, v = (g.put("MatMul", "x", g.random(COLUMNS, 16, spread=0.3)) for _ in range(3))
    scores = g.put("Div", g.put("MatMul", q, g.put("Transpose", k, perm=[1, 0])), g.constant(4.0))
    masked = g.put("Add", scores, g.constant(np.triu(np.full((ROWS, ROWS), -30000.0), 1)))
    g.out(scores)
    g.out(g.put("MatMul", g.put("Softmax", masked, axis=-1), v))
    g.out(g.put("Mul", "x", g.put("Sigmoid", "x")))


PARTS = {"steps": (element_wise, gelu), "sums": (norm, products, attention)}


def write(name, parts):
    g = Graph(name)
    g.input("x", ROWS, COLUMNS, spread=2)
    if parts == "steps":
        g.input("y", ROWS, COLUMNS, spread=2)
    else:
        g.input("image", 1, 4, 7, 7)
    for part in PARTS[parts]:
        part(g)
    model = g.model()
    onnx.checker.check_model(model, full_check=True)
    with np.errstate(over="ignore"):
        results = ReferenceEvaluator(model).run(None, g.feeds)
    case = Path(__file__).parent / "cases" / f"exact_{parts}_{name}"
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, case / "model.onnx")
    for kind, named in (("input", g.feeds.items()), ("output", zip([o.name for o in g.outputs], results))):
        for i, (tensor, value) in enumerate(named):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(value).astype(g.dtype), tensor).SerializeToString())


if __name__ == "__main__":
    for each in TYPES:
        for group in PARTS:
            write(each, group)
