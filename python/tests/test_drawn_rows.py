# SPDX-License-Identifier: Apache-2.0
"""Rows that are moved, and what works on them row by row: drawn graphs as of attention over windows or channels, beside ONNX Runtime. Moves pass such
nodes, are joined, become parts of Concats and products, or vanish: whatever the optimiser makes of them, results are the same."""
import numpy as np
import pytest

from fed import Fed, wrong


class Rows(Fed):
    """Values of [batch, height, width, channels], and what they become."""

    def __init__(self, seed):
        super().__init__(seed)
        self.batch, self.sides, self.channels = self.pick(1, 2), (self.pick(4, 6), self.pick(2, 4)), self.pick(16, 24)  # rows of 64 bytes and more are gathered
        self.shape = (self.batch, *self.sides, self.channels)
        self.made = []

    def reshaped(self, x, *dims):
        return self.node("Reshape", [x, self.constant(np.array(dims))])

    def row_by_row(self, x):
        """The dims of x stay."""
        channels = self.channels
        kind = self.pick("norm", "product", "product with bias", "sum", "curve")
        if kind == "norm":
            return self.node("LayerNormalization", [x, self.constant(self.normal(channels)), self.constant(self.normal(channels))], axis=-1)
        if kind == "sum":
            return self.node("Add", [x, self.constant(self.normal(channels))])
        if kind == "curve":
            return self.node(self.pick("Relu", "Tanh", "Sigmoid"), [x])
        y = self.node("MatMul", [x, self.constant(self.normal(channels, channels) / 6)])
        return self.node("Add", [y, self.constant(self.normal(channels))]) if kind != "product" else y

    def rolled(self, x, axis):
        size, by = self.shape[axis], self.pick(1, 2)
        parts = [self.slice(x, by, size, size, axis), self.slice(x, 0, by, size, axis)]
        return self.node("Concat", parts, axis=axis - 4 * self.chance())

    def blocks(self, x):
        """As of a transformer over shifted windows."""
        for shift in self.pick((False, True), (True, False, True), (False, True, False, True)):
            norm = self.node("LayerNormalization", [x, self.constant(self.normal(self.channels)), self.constant(self.normal(self.channels))], axis=-1)
            x = self.node("Add", [x, self.among_windows(norm, shift)])
            x = self.node("Add", [self.row_by_row(self.row_by_row(x)), x]) if self.chance(0.7) else x
        return x

    def among_windows(self, x, shift=None):
        """Rows in the order of windows, and back, in general."""
        (height, width), c, side = self.sides, self.channels, 2
        shift = self.chance() if shift is None else shift
        for axis in (1, 2) if shift else ():
            x = self.rolled(x, axis)
        x = self.node("Transpose", [self.reshaped(x, -1, height // side, side, width // side, side, c)], perm=[0, 1, 3, 2, 4, 5])
        x = self.reshaped(x, -1, *self.pick((side * side,), (side, side)), c)
        for _ in range(self.pick(0, 1, 2, 3)):
            x = self.row_by_row(x)
        if self.chance(0.15):
            return self.reshaped(x, -1, height, width, c)  # stays in that order
        x = self.node("Transpose", [self.reshaped(x, -1, height // side, width // side, side, side, c)], perm=[0, 1, 3, 2, 4, 5])
        x = self.reshaped(x, -1, height, width, c)
        for axis in (2, 1) if shift else ():
            x = self.rolled(x, axis)
        return x

    def over_channels(self, x):
        """Products whose columns are tokens, by heads, with queries, keys and values side by side or not."""
        (height, width), c, heads = self.sides, self.channels, self.pick(1, 2)
        n, size = height * width, c // heads
        packed = self.node("MatMul", [self.reshaped(x, -1, n, c), self.constant(self.normal(c, 3 * c) / 6)])
        packed = self.node("Transpose", [self.reshaped(packed, -1, n, 3, heads, size)], perm=self.pick([2, 0, 3, 4, 1], [2, 0, 3, 1, 4]))
        turned = self.nodes[-1].attribute[0].ints[-1] == 1
        q, k, v = (self.node("Squeeze", [part, self.constant(np.array([0]))]) for part in self.node("Split", [packed], 3, axis=0, num_outputs=3))
        if not turned:
            q, k, v = (self.node("Transpose", [part], perm=[0, 1, 3, 2]) for part in (q, k, v))
        k = self.node("Mul", [k, self.constant(np.float32(0.3))]) if self.chance() else k
        scores = self.node("Softmax", [self.node("MatMul", [q, self.node("Transpose", [k], perm=[0, 1, 3, 2])])], axis=-1)
        y = self.node("Transpose", [self.node("MatMul", [scores, v])], perm=[0, 3, 1, 2])
        return self.reshaped(y, -1, height, width, c)

    def beside_another(self, x):
        """Channels of another value are joined to it and projected back; one of both was moved for that."""
        other = self.pick(*self.made)
        turned = self.chance(0.7)
        if turned:
            a = self.node("Transpose", [self.node("Transpose", [other], perm=[0, 3, 1, 2])], perm=[0, 2, 3, 1])
            other = self.node("Transpose", [a], perm=[0, 2, 1, 3])
            x = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        y = self.node("Concat", [x, other] if self.chance() else [other, x], axis=3)
        y = self.node("MatMul", [y, self.constant(self.normal(2 * self.channels, self.channels) / 8)])
        return self.node("Transpose", [y], perm=[0, 2, 1, 3]) if turned else y

    def cropped(self, x):
        """More rows than there are, cut off along one axis after the other."""
        (height, width), c = self.sides, self.channels
        x = self.node("Pad", [x, self.constant(np.array([0, 0, 0, 0, 0, 1, 2, 0]))])
        x = self.row_by_row(x) if self.chance() else x
        return self.slice(self.slice(x, 0, height, height + 1, 1), 0, width, width + 2, 2)


def draw_rows(drawing):
    is_open = drawing.chance(0.4)
    x = drawing.input("x", drawing.normal(*drawing.shape), is_open)
    drawing.made = [x]
    for _ in range(drawing.pick(2, 3, 5)):
        y = drawing.pick(drawing.row_by_row, drawing.among_windows, drawing.blocks, drawing.over_channels, drawing.beside_another, drawing.cropped)(x)
        x = drawing.node("Add", [y, drawing.pick(x, *drawing.made)]) if drawing.chance(0.7) else y
        drawing.made.append(x)
    results = [drawing.pick(*drawing.made[1:])] if drawing.chance(0.2) else []
    if drawing.chance(0.3):
        x = drawing.node("ReduceMean", [x, drawing.constant(np.array([1, 2]))], keepdims=0)
    return drawing.model(x, *(r for r in results if r != x))


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_rows(first):
    gathered = 0
    for seed in range(first, first + 20):
        what, steps = wrong(draw_rows, seed, Rows)
        assert what is None, what
        gathered += "Gather" in steps
    assert gathered  # windows' moves that became one
