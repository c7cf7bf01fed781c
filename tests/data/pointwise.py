#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/pointwise: every pointwise function that a group can hold, each as the head of a group of its own (function, times a
row, plus one number), with inputs and what ONNX's reference evaluator makes of them. Wants numpy and onnx. usage: pointwise.py"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROWS, COLUMNS = 4, 64
UNARY = ("Neg Abs Sign Reciprocal Sqrt Exp Log Floor Ceil Round Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Relu Sigmoid Tanh "
         "Softplus Softsign Elu Selu Celu LeakyRelu ThresholdedRelu HardSigmoid HardSwish Mish Gelu Shrink").split()
BINARY = "Add Sub Mul Div Pow Max Min PRelu".split()
COMPARE = "Less Greater Equal LessOrEqual GreaterOrEqual".split()
LOGIC = "And Or Xor".split()
# Arguments in the function's domain.
DOMAIN = {"Acosh": "big", "Tan": "small", "Atanh": "small", "Asin": "small", "Acos": "small", "Sqrt": "big", "Log": "big", "Pow": "big", "Reciprocal": "big"}


def main():
    nodes, outputs = [], []

    def head(op, names):
        value, scaled, result = f"v{len(outputs)}", f"m{len(outputs)}", f"{op.lower()}{len(outputs)}"
        nodes.extend([helper.make_node(op, names, [value], name=op), helper.make_node("Mul", [value, "row"], [scaled]),
                      helper.make_node("Add", [scaled, "one"], [result])])
        outputs.append(helper.make_tensor_value_info(result, TensorProto.FLOAT, [ROWS, COLUMNS]))

    for op in UNARY:
        head(op, [DOMAIN.get(op, "x")])
    for op in BINARY:
        head(op, [DOMAIN.get(op, "x"), "row" if op == "PRelu" else "y"])
    for k, op in enumerate(COMPARE):
        nodes.append(helper.make_node(op, ["x", "y"], [f"c{k}"], name=op))
        head("Where", [f"c{k}", "x", "row"])
    nodes.extend([helper.make_node("Less", ["x", "y"], ["p"]), helper.make_node("Greater", ["x", "row"], ["q"])])
    for k, op in enumerate(LOGIC):
        nodes.append(helper.make_node(op, ["p", "q"], [f"l{k}"], name=op))
        head("Where", [f"l{k}", "x", "y"])
    head("Clip", ["x", "low", "high"])

    def constant(name, values, dims):
        return helper.make_tensor(name, TensorProto.FLOAT, dims, np.asarray(values, np.float32).ravel())

    rng = np.random.default_rng(1)
    feeds = {"x": rng.normal(0, 2, (ROWS, COLUMNS)), "y": rng.normal(0, 2, (ROWS, COLUMNS)), "small": rng.uniform(-0.9, 0.9, (ROWS, COLUMNS)),
             "big": rng.uniform(1.1, 4, (ROWS, COLUMNS))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    feeds["y"][0, :8] = feeds["x"][0, :8]  # for Equal
    graph = helper.make_graph(
        nodes, "pointwise", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, COLUMNS]) for name in feeds], outputs,
        [constant("row", np.linspace(0.5, 1.5, COLUMNS), [COLUMNS]), constant("one", [0.25], [1]), constant("low", [0.3], []),
         constant("high", [0.6], [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], producer_name="tests/data/pointwise.py")
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    case = Path(__file__).parent / "cases" / "pointwise"
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, case / "model.onnx")
    for kind, named in (("input", feeds.items()), ("output", zip([o.name for o in outputs], ReferenceEvaluator(model).run(None, feeds)))):
        for i, (name, value) in enumerate(named):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(value, np.float32), name).SerializeToString())


if __name__ == "__main__":
    main()
