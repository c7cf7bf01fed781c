# SPDX-License-Identifier: Apache-2.0
"""Graphs that are drawn at random with values for their inputs, and whether they give what ONNX Runtime gives."""
import graphrt
import numpy as np
import onnxruntime
from conftest import info, model
from drawing import Drawing
from onnx import TensorProto


class Fed(Drawing):
    """With its inputs and their values."""

    def __init__(self, seed):
        super().__init__(seed)
        self.inputs, self.feeds = [], {}

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def input(self, name, array, is_open=False):
        kind = TensorProto.BOOL if array.dtype == bool else TensorProto.FLOAT
        self.inputs.append(info(name, kind, ["batch", *array.shape[1:]] if is_open else array.shape))
        self.feeds[name] = array
        return name

    def slice(self, value, start, end, size, axis):
        end = self.pick(end, 2**62) if end == size else end
        return self.node("Slice", [value, *(self.constant(np.array([x], np.int64)) for x in (start, end, axis))])

    def model(self, *results):
        return model(self.nodes, self.inputs, [info(name, TensorProto.FLOAT, None) for name in results], self.constants, opset=23)


def wrong(draw, seed, drawn=Fed):
    """What is wrong with the results of the graph that `draw` makes in a `drawn`, or None; and the operators of the steps."""
    drawing = drawn(seed)
    made = draw(drawing)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    wanted = onnxruntime.InferenceSession(made, quiet, providers=["CPUExecutionProvider"]).run(None, drawing.feeds)
    compiled = graphrt.Model(made)
    found = graphrt.Session(compiled, threads=1).run(drawing.feeds).values()
    steps = [step["op"].split("::")[-1] for step in compiled.steps]
    for a, b in zip(found, wanted):
        if not np.allclose(a, b, 1e-3, 1e-4, equal_nan=True):
            return f"seed {seed}: differs by {np.nanmax(np.abs(a - b))}; steps {steps}", steps
    return None, steps
