#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/cases/lists: lists that Loops carry from one iteration to the next, in every way that one may become the next one's.

    lists.py DIRECTORY
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

TRIPS = 5
X, Z = np.float32([1, 2]), np.float32([9])


def insert(sequence, item, name):
    return h.make_node("SequenceInsert", [sequence, item], [name])


# name: the body's nodes, and the lists that it hands on; s and t are those that it gets, a is one from outside
LOOPS = {
    "grown": ([insert("s", "x", "p"), insert("t", "z", "q")], ["p", "q"]),
    "exchanged": ([insert("s", "x", "p"), insert("t", "z", "q")], ["q", "p"]),
    "twice": ([insert("s", "x", "p")], ["p", "p"]),
    "passed": ([insert("s", "x", "p")], ["p", "t"]),
    "turned": ([], ["t", "s"]),
    "captured": ([insert("a", "z", "p"), insert("t", "x", "q")], ["p", "q"]),
    "alike": ([insert("s", "x", "p"), h.make_node("Identity", ["p"], ["q"])], ["p", "q"]),
    "erased": ([insert("s", "x", "p"), h.make_node("SequenceErase", ["p"], ["q"])], ["q", "p"]),
}


def expected(nodes, handed_on):
    outside = {"a": [X, X], "b": [Z], "x": X, "z": Z}
    state = [list(outside["a"]), list(outside["b"])]
    for _ in range(TRIPS):
        values = dict(outside, s=state[0], t=state[1])
        for node in nodes:
            of = [values[name] for name in node.input]
            values[node.output[0]] = {"SequenceInsert": lambda: of[0] + [of[1]], "SequenceErase": lambda: of[0][:-1], "Identity": lambda: of[0]}[node.op_type]()
        state = [values[name] for name in handed_on]
    return [np.concatenate(part) for part in state]


def body(name, nodes, handed_on):
    lists = [h.make_tensor_sequence_value_info(part, T.FLOAT, None) for part in ("s", "t")]
    named = [h.make_node("Identity", ["go"], ["still"])] + nodes
    made = [h.make_tensor_value_info("still", T.BOOL, [])] + [h.make_tensor_sequence_value_info(part, T.FLOAT, None) for part in handed_on]
    return h.make_graph(named, name, [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("go", T.BOOL, [])] + lists, made)


def main(directory):
    nodes = [h.make_node("SequenceConstruct", ["x", "x"], ["a"]), h.make_node("SequenceConstruct", ["z"], ["b"])]
    outputs = {}
    for name, (inner, handed_on) in LOOPS.items():
        nodes.append(h.make_node("Loop", ["trips", "", "a", "b"], [f"{name}_0", f"{name}_1"], name, body=body(name, inner, handed_on)))
        for k, part in enumerate(expected(inner, handed_on)):
            nodes.append(h.make_node("ConcatFromSequence", [f"{name}_{k}"], [f"{name}_y{k}"], axis=0))
            outputs[f"{name}_y{k}"] = part
    nodes.append(h.make_node("ConcatFromSequence", ["a"], ["a_y"], axis=0))
    outputs["a_y"] = np.concatenate([X, X])
    inputs = {"x": X, "z": Z, "trips": np.array(TRIPS, np.int64)}
    told = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    graph = h.make_graph(nodes, "lists", told, [h.make_tensor_value_info(n, T.FLOAT, [None]) for n in outputs])
    data = directory / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9), directory / "model.onnx")
    for kind, values in (("input", inputs), ("output", outputs)):
        for k, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
