# SPDX-License-Identifier: Apache-2.0
"""Small models, each for one thing that a server must get right."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs],
                              [numpy_helper.from_array(value, name) for name, value in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def scaled(factor, width=4):
    """y = factor * x, for any batch."""
    return model([helper.make_node("Mul", ["x", "k"], ["y"])], [("x", T.FLOAT, ["n", width])], [("y", T.FLOAT, ["n", width])],
                 [("k", np.float32(factor))])


def picked():
    """y = table[i]: an index beyond the table is the fault of its request."""
    return model([helper.make_node("Gather", ["table", "i"], ["y"])], [("i", T.INT64, ["n", 1])], [("y", T.FLOAT, ["n", 1])],
                 [("table", np.arange(10, dtype=np.float32) * 10)])


def fixed():
    """No dim is symbolic, one output is a scalar."""
    return model([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("ReduceSum", ["sum"], ["total"], keepdims=0)],
                 [("a", T.INT32, [2, 3]), ("b", T.INT32, [2, 3])], [("sum", T.INT32, [2, 3]), ("total", T.INT32, [])])


def found():
    """The size of the output depends on data."""
    return model([helper.make_node("NonZero", ["x"], ["where"])], [("x", T.FLOAT, [8])], [("where", T.INT64, [1, None])])


def joined():
    """Strings in and out."""
    return model([helper.make_node("StringConcat", ["a", "b"], ["c"])], [("a", T.STRING, ["n", 2]), ("b", T.STRING, ["n", 2])],
                 [("c", T.STRING, ["n", 2])])


def with_default():
    """Input b has a default: 1."""
    return model([helper.make_node("Add", ["a", "b"], ["c"])], [("a", T.FLOAT, ["n", 2]), ("b", T.FLOAT, [2])], [("c", T.FLOAT, ["n", 2])],
                 [("b", np.ones(2, np.float32))])


def counter():
    """A running sum: state_out = state + x, y = the same."""
    return model([helper.make_node("Add", ["x", "state"], ["y"]), helper.make_node("Identity", ["y"], ["state_out"])],
                 [("x", T.FLOAT, ["n", 1]), ("state", T.FLOAT, ["n", 1])], [("y", T.FLOAT, ["n", 1]), ("state_out", T.FLOAT, ["n", 1])])


def counted():
    """y = x + the number of rows of the run."""
    return model([helper.make_node("Shape", ["x"], ["dims"], start=0, end=1), helper.make_node("Cast", ["dims"], ["rows"], to=T.FLOAT),
                  helper.make_node("Add", ["x", "rows"], ["y"])], [("x", T.FLOAT, ["n", 2])], [("y", T.FLOAT, ["n", 2])])


def slow(rounds=60, width=384):
    """A chain of products: long enough for requests to queue behind it."""
    rng = np.random.default_rng(0)
    names = ["x"] + [f"h{i}" for i in range(rounds - 1)] + ["y"]
    return model([helper.make_node("MatMul", [names[i], "w"], [names[i + 1]]) for i in range(rounds)],
                 [("x", T.FLOAT, ["n", width])], [("y", T.FLOAT, ["n", width])],
                 [("w", (rng.standard_normal((width, width)) / width**0.5).astype(np.float32))])
