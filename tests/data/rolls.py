#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/rolls: torch.roll as exporters write it, two slices and a Concat for each axis, of elements of every size, over one
axis to three, over the last one, of a value that begins in the middle of another; and patches that are merged. Wants numpy and
onnx. usage: rolls.py"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

END = np.iinfo(np.int64).max
# name -> type, dims, {axis: shift}, rows that are cut off first
ROLLS = {"windows": (np.float32, [2, 14, 14, 24], {1: 3, 2: 11}, 0), "odd": (np.float16, [3, 7, 5, 3], {1: 2, 2: 4}, 0),
         "last": (np.uint8, [5, 33], {1: 7}, 0), "apart": (np.float64, [4, 6, 2], {0: 1, 2: 1}, 0),
         "all": (np.int64, [3, 4, 5], {0: 2, 1: 1, 2: 3}, 0), "middle": (np.float32, [6, 9, 3], {1: 4}, 1),
         "bools": (np.bool_, [4, 16, 16], {1: 5}, 0), "vectors": (np.float16, [2, 6, 6, 64], {1: 5, 2: 1}, 0)}


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.feeds, self.results = [], [], {}, {}

    def ints(self, *values):
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def cut(self, x, name, axis, start, end=END, step=1):
        return self.node("Slice", [x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step)], name)


def roll(graph, name, x, shifts):
    for k, (axis, shift) in enumerate(shifts.items()):
        parts = [graph.cut(x, f"{name}_{axis}_behind", axis, shift), graph.cut(x, f"{name}_{axis}_before", axis, 0, shift)]
        x = graph.node("Concat", parts, name if k == len(shifts) - 1 else f"{name}_{axis}", axis=axis)


def merge_patches(graph, name, x):
    rows = [graph.cut(x, f"{name}_{r}", 1, r, step=2) for r in range(2)]
    parts = [graph.cut(rows[r], f"{name}_{r}{c}", 2, c, step=2) for c in range(2) for r in range(2)]
    graph.node("Concat", parts, name, axis=3)


def main():
    random, graph = np.random.default_rng(1), Graph()
    for name, (kind, dims, shifts, cut) in ROLLS.items():
        graph.feeds[f"{name}_x"] = x = random.integers(0, 2 if kind == np.bool_ else 100, dims).astype(kind)
        roll(graph, name, graph.cut(f"{name}_x", f"{name}_cut", 0, cut) if cut else f"{name}_x", shifts)
        graph.results[name] = np.roll(x[cut:], [-shift for shift in shifts.values()], list(shifts))
    graph.feeds["patches_x"] = x = random.integers(0, 100, [2, 6, 8, 5]).astype(np.float32)
    merge_patches(graph, "patches", "patches_x")
    graph.results["patches"] = np.concatenate([x[:, r::2, c::2] for c in range(2) for r in range(2)], 3)

    def infos(values):
        return [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in values.items()]

    made = helper.make_graph(graph.nodes, "rolls", infos(graph.feeds), infos(graph.results), graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], producer_name="tests/data/rolls.py")
    model.ir_version = 9
    onnx.checker.check_model(model, full_check=True)
    case = Path(__file__).parent / "cases" / "rolls"
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, case / "model.onnx")
    for kind, values in (("input", graph.feeds), ("output", graph.results)):
        for i, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


if __name__ == "__main__":
    main()
