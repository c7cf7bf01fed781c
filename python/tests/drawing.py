# SPDX-License-Identifier: Apache-2.0
"""Graphs that are drawn at random."""
import numpy as np
from onnx import helper, numpy_helper


class Drawing:
    """A graph as it grows. One seed always draws the same."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.counter = [], [], 0

    def chance(self, share=0.5):
        return self.random.random() < share

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def name(self, stem):
        self.counter += 1
        return f"{stem}{self.counter}"

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        """The name of its output; of several, a list."""
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{self.counter}", **attributes))
        return names[0] if outputs == 1 else names
