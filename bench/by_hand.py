#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as people and converters other than PyTorch's write them: onnx.helper node by node, tf2onnx's and keras2onnx's forms, old and new opsets.

    bench/by_hand.py DIRECTORY [--only NAME ...]        writes DIRECTORY/NAME/model.onnx; bench/sweep.py compares them with ONNX Runtime

Images with channels last between Transposes, norms and activations in parts, clips by Where, attention by Einsum with masks from lengths, dense layers of heads,
loops over time by Loop and Scan, branches by If, detection with NonMaxSuppression, experts by TopK and Scatter, 16-bit floats, dims that stay open.
"""
import argparse
from pathlib import Path

import numpy as np
from onnx import TensorProto as T, checker, helper as h, numpy_helper, save

MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


class Graph:
    """Nodes in order; a call of an op's name adds one and gives the name of its output."""

    def __init__(self, inputs, seed=0, dtype=np.float32):
        self.nodes, self.initializers, self.random, self.dtype = [], [], np.random.default_rng(seed), dtype
        self.inputs = [h.make_tensor_value_info(n, t, d) for n, (t, d) in inputs.items()]

    def constant(self, array, dtype=None):
        array = np.asarray(array, dtype or (self.dtype if np.asarray(array).dtype.kind == "f" else None))
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *dims, scale=None):
        fan = int(np.prod(dims[:-1])) if len(dims) > 1 else dims[0]
        return self.constant(self.random.standard_normal(dims) * (scale or fan ** -0.5))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def __getattr__(self, op):
        def add(*inputs, outputs=1, **attributes):
            names = [f"{op}_{len(self.nodes)}_{k}" for k in range(outputs)]
            given = [x if isinstance(x, str) else self.constant(np.asarray(x, self.dtype) if isinstance(x, float) else x) for x in inputs]
            self.nodes.append(h.make_node(op, given, names, **attributes))
            return names[0] if outputs == 1 else names
        return add

    def finished(self, outputs, opset=17, ir=None):
        """outputs: name -> type and rank or dims."""
        shown = [h.make_tensor_value_info(n, t, [None] * d if isinstance(d, int) else d) for n, (t, d) in outputs.items()]
        graph = h.make_graph(self.nodes, "by_hand", self.inputs, shown, self.initializers)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir or (8 if opset < 19 else 10))

    def body(self, name, inputs, outputs):
        """The nodes as the body of a loop or a branch."""
        return h.make_graph(self.nodes, name, [h.make_tensor_value_info(n, t, d) for n, (t, d) in inputs.items()],
                            [h.make_tensor_value_info(n, t, [None] * d if isinstance(d, int) else d) for n, (t, d) in outputs.items()], self.initializers)


# ---- images with channels last ----
def same_conv(g, x, channels, out, k=3, stride=1, group=1):
    """tf2onnx: a Transpose on either side of each convolution, padding by Pad."""
    y = g.Transpose(x, perm=[0, 3, 1, 2])
    y = g.Pad(y, g.ints(0, 0, k // 2, k // 2, 0, 0, k // 2, k // 2)) if k > 1 else y
    y = g.Conv(y, g.weight(out, channels // group, k, k, scale=(k * k * channels // group) ** -0.5), kernel_shape=[k, k], strides=[stride, stride], group=group)
    return g.Transpose(y, perm=[0, 2, 3, 1])


def batch_norm(g, x, c):
    """Folded by TensorFlow: a Mul and an Add of channels, which are the last dim."""
    return g.Add(g.Mul(x, g.constant(g.random.uniform(0.5, 1.5, c))), g.weight(c, scale=0.1))


@model
def nhwc_residual():
    g = Graph({"x": (T.FLOAT, ["n", 56, 56, 24])})
    x = "x"
    for stride, a, b in ((1, 24, 40), (2, 40, 40), (1, 40, 56)):
        y = g.Relu(batch_norm(g, same_conv(g, x, a, b, 3, stride), b))
        y = batch_norm(g, same_conv(g, y, b, b), b)
        x = g.Relu(g.Add(y, batch_norm(g, same_conv(g, x, a, b, 1, stride), b)))
    x = g.ReduceMean(x, axes=[1, 2], keepdims=0)
    y = g.Softmax(g.Add(g.MatMul(x, g.weight(56, 10)), g.weight(10)))
    return g.finished({y: (T.FLOAT, 2)})


@model
def nhwc_mobile():
    """Depthwise, ReLU6 by Min and Max, hard swish by parts, squeeze and excitation with channels last."""
    g = Graph({"x": (T.FLOAT, [2, 32, 32, 16])})

    def six(x):
        return g.Min(g.Max(x, g.constant(0.0)), g.constant(6.0))

    def hard_swish(x):
        return g.Mul(x, g.Mul(six(g.Add(x, g.constant(3.0))), g.constant(1 / 6)))
    x = "x"
    for c in (72, 88):
        y = six(batch_norm(g, same_conv(g, x, 16, c, 1), c))
        y = hard_swish(batch_norm(g, same_conv(g, y, c, c, 5, 1, c), c))
        s = g.ReduceMean(y, axes=[1, 2], keepdims=1)
        s = g.Relu(g.Add(same_conv(g, s, c, 24, 1), g.weight(24)))
        s = g.Mul(six(g.Add(g.Add(same_conv(g, s, 24, c, 1), g.weight(c)), g.constant(3.0))), g.constant(1 / 6))
        x = g.Add(x, batch_norm(g, same_conv(g, g.Mul(y, s), c, 16, 1), 16))
    return g.finished({x: (T.FLOAT, 4)}, 13)


@model
def flat_convolutions():
    """tf2onnx's Conv1D: an image of height one by Unsqueeze and Squeeze; causal padding, dilated gates."""
    g = Graph({"x": (T.FLOAT, [3, 200, 32])})
    x = "x"
    for dilation in (1, 2, 4):
        y = g.Pad(x, g.ints(0, 2 * dilation, 0, 0, 0, 0))
        y = g.Transpose(g.Unsqueeze(y, g.ints(1)), perm=[0, 3, 1, 2])
        y = g.Conv(y, g.weight(64, 32, 1, 3, scale=0.1), kernel_shape=[1, 3], dilations=[1, dilation])
        y = g.Squeeze(g.Transpose(y, perm=[0, 2, 3, 1]), g.ints(1))
        a, b = g.Split(y, outputs=2, axis=-1)
        x = g.Add(x, g.Mul(g.Tanh(a), g.Sigmoid(b)))
    y = g.ReduceMax(x, axes=[1], keepdims=0)
    return g.finished({y: (T.FLOAT, 2)}, 13)


# ---- transformers ----
def norm(g, x, c, epsilon=1e-6):
    """Keras: moments, then a scale and a shift that hold both."""
    mean = g.ReduceMean(x, axes=[-1], keepdims=1)
    d = g.Sub(x, mean)
    variance = g.ReduceMean(g.Mul(d, d), axes=[-1], keepdims=1)
    inverse = g.Reciprocal(g.Sqrt(g.Add(variance, g.constant(epsilon))))
    scale = g.Mul(inverse, g.constant(g.random.uniform(0.5, 1.5, c)))
    return g.Add(g.Mul(x, scale), g.Sub(g.weight(c, scale=0.1), g.Mul(mean, scale)))


def gelu(g, x):
    return g.Mul(g.Mul(g.constant(0.5), x), g.Add(g.constant(1.0), g.Erf(g.Div(x, g.constant(2 ** 0.5)))))


@model
def keras_attention():
    """Dense layers of heads by Einsum with biases [heads, size], a mask from lengths as 1 - mask times -1e9."""
    g = Graph({"x": (T.FLOAT, ["n", 77, 160]), "kept": (T.INT32, ["n", 77])})
    x = "x"
    hidden = g.Mul(g.Sub(g.constant(1.0), g.Cast(g.Unsqueeze("kept", g.ints(1, 2)), to=T.FLOAT)), g.constant(-1e9))
    for _ in range(2):
        y = norm(g, x, 160)
        q, k, v = (g.Add(g.Einsum(y, g.weight(160, 5, 32, scale=160 ** -0.5), equation="abc,cde->abde"), g.weight(5, 32, scale=0.1)) for _ in range(3))
        q = g.Mul(q, g.constant(32 ** -0.5))
        scores = g.Add(g.Einsum(k, q, equation="aecd,abcd->acbe"), hidden)
        y = g.Einsum(g.Softmax(scores, axis=-1), v, equation="acbe,aecd->abcd")
        y = g.Add(g.Einsum(y, g.weight(5, 32, 160, scale=160 ** -0.5), equation="abcd,cde->abe"), g.weight(160, scale=0.1))
        x = g.Add(x, y)
        y = gelu(g, g.Add(g.MatMul(norm(g, x, 160), g.weight(160, 640)), g.weight(640, scale=0.1)))
        x = g.Add(x, g.Add(g.MatMul(y, g.weight(640, 160)), g.weight(160, scale=0.1)))
    return g.finished({x: (T.FLOAT, 3)}, 13)


@model
def tensorflow_bert():
    """Rows of all tokens in two dims, reshaped to heads by dims of the graph; a mask made by an outer product; tanh GELU in parts."""
    g = Graph({"ids": (T.INT64, ["n", 33]), "kept": (T.INT64, ["n", 33])})
    shape = g.Shape("ids")
    n = g.Slice(shape, g.ints(0), g.ints(1))
    x = g.Add(g.Gather(g.weight(100, 96, scale=1.0), "ids"), g.weight(33, 96, scale=1.0))
    x = g.Reshape(norm(g, x, 96), g.ints(-1, 96))
    ones = g.Expand(g.constant(1.0), g.Concat(n, g.ints(33, 1), axis=0))
    mask = g.Mul(ones, g.Cast(g.Reshape("kept", g.Concat(n, g.ints(1, 33), axis=0)), to=T.FLOAT))
    mask = g.Mul(g.Sub(g.constant(1.0), g.Unsqueeze(mask, g.ints(1))), g.constant(-10000.0))
    for _ in range(2):
        q, k, v = (g.Transpose(g.Reshape(g.Add(g.MatMul(x, g.weight(96, 96)), g.weight(96, scale=0.1)), g.Concat(n, g.ints(33, 2, 48), axis=0)), perm=[0, 2, 1, 3]) for _ in range(3))
        scores = g.Add(g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.constant(48 ** -0.5)), mask)
        y = g.Reshape(g.Transpose(g.MatMul(g.Softmax(scores, axis=3), v), perm=[0, 2, 1, 3]), g.ints(-1, 96))
        x = norm(g, g.Add(g.Add(g.MatMul(y, g.weight(96, 96)), g.weight(96, scale=0.1)), x), 96)
        y = g.Add(g.MatMul(x, g.weight(96, 384)), g.weight(384, scale=0.1))
        cube = g.Mul(g.constant(0.044715), g.Pow(y, g.constant(3.0)))
        y = g.Mul(g.Mul(y, g.constant(0.5)), g.Add(g.constant(1.0), g.Tanh(g.Mul(g.constant(0.7978846), g.Add(y, cube)))))
        x = norm(g, g.Add(g.Add(g.MatMul(y, g.weight(384, 96)), g.weight(96, scale=0.1)), x), 96)
    y = g.Reshape(x, g.Concat(n, g.ints(33, 96), axis=0))
    return g.finished({y: (T.FLOAT, 3)}, 13)


@model
def masked_by_where():
    """Softmax by Exp and ReduceSum behind a ReduceMax, masks by Where, clips by Where; heads that share keys by Tile."""
    g = Graph({"x": (T.FLOAT, [2, 50, 96]), "lengths": (T.INT64, [2])})
    q = g.Transpose(g.Reshape(g.MatMul("x", g.weight(96, 96)), g.ints(2, 50, 4, 24)), perm=[0, 2, 1, 3])
    k, v = (g.Tile(g.Transpose(g.Reshape(g.MatMul("x", g.weight(96, 24)), g.ints(2, 50, 1, 24)), perm=[0, 2, 1, 3]), g.ints(1, 4, 1, 1)) for _ in range(2))
    seen = g.Less(g.constant(np.arange(50).reshape(1, 1, 1, 50)), g.Reshape("lengths", g.ints(-1, 1, 1, 1)))
    causal = g.constant(np.tril(np.ones((50, 50), bool))[None, None])
    scores = g.Where(g.And(seen, causal), g.Div(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.constant(24 ** 0.5)), g.constant(-1e4))
    e = g.Exp(g.Sub(scores, g.ReduceMax(scores, axes=[3], keepdims=1)))
    weights = g.Div(e, g.ReduceSum(e, g.ints(3), keepdims=1))
    y = g.Reshape(g.Transpose(g.MatMul(weights, v), perm=[0, 2, 1, 3]), g.ints(2, 50, 96))
    y = g.Where(g.Less(y, g.constant(-0.5)), g.constant(-0.5), g.Where(g.Greater(y, g.constant(0.5)), g.constant(0.5), y))
    return g.finished({y: (T.FLOAT, 3)}, 13)


@model
def new_attention():
    """Operators of opset 23: Attention with grouped heads, RotaryEmbedding and RMSNormalization."""
    g = Graph({"x": (T.FLOAT, ["n", 40, 128])})
    y = g.RMSNormalization("x", g.constant(np.ones(128)), axis=-1)
    q, k, v = (g.MatMul(y, g.weight(128, w)) for w in (128, 64, 64))
    angles = np.arange(40)[:, None] * 100.0 ** -(np.arange(0, 32, 2) / 32)
    at = g.Expand(g.constant(np.arange(40)[None]), g.Concat(g.Slice(g.Shape("x"), g.ints(0), g.ints(1)), g.ints(40), axis=0))
    q, k = (g.RotaryEmbedding(t, g.constant(np.cos(angles)), g.constant(np.sin(angles)), at, num_heads=n) for t, n in ((q, 4), (k, 2)))
    y = g.Attention(q, k, v, q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=30.0)
    y = g.Add("x", g.MatMul(y, g.weight(128, 128)))
    return g.finished({y: (T.FLOAT, 3)}, 23)


# ---- time ----
@model
def looped_memory():
    """A cell of gates in a Loop with a condition, outputs stacked by it."""
    g = Graph({"x": (T.FLOAT, [20, 3, 24])})
    b = Graph({})
    xt = b.Gather("x", "i", axis=0)
    z = b.Sigmoid(b.Add(b.MatMul(xt, b.weight(24, 32)), b.MatMul("s", b.weight(32, 32))))
    n = b.Tanh(b.MatMul(b.Concat(xt, b.Mul("s", z), axis=1), b.weight(56, 32)))
    s = b.Add(b.Mul(z, "s"), b.Mul(b.Sub(b.constant(1.0), z), n))
    more = b.Less(b.ReduceMax(s, keepdims=0), b.constant(5.0))
    body = b.body("step", {"i": (T.INT64, []), "on": (T.BOOL, []), "s": (T.FLOAT, [3, 32])}, {more: (T.BOOL, []), s: (T.FLOAT, [3, 32]), b.Identity(s): (T.FLOAT, [3, 32])})
    last, all_of = g.Loop(g.constant(np.array(20)), g.constant(np.array(True)), g.constant(np.zeros((3, 32))), outputs=2, body=body)
    return g.finished({last: (T.FLOAT, 2), all_of: (T.FLOAT, 3)}, 16)


@model
def scanned_memory():
    """The same by Scan, backwards, under an LSTM with peepholes that is written out."""
    g = Graph({"x": (T.FLOAT, [16, 4, 20])})
    b = Graph({}, 1)
    gates = b.Add(b.Gemm("xt", b.weight(20, 96), b.weight(96, scale=0.1)), b.MatMul("s", b.weight(24, 96)))
    i, f, o, c = b.Split(gates, b.ints(24, 24, 24, 24), outputs=4, axis=1)
    cell = b.Add(b.Mul(b.Sigmoid(b.Add(f, b.Mul("c", b.weight(24)))), "c"), b.Mul(b.Sigmoid(i), b.Tanh(c)))
    out = b.Mul(b.Sigmoid(o), b.Tanh(cell))
    body = b.body("step", {"s": (T.FLOAT, [4, 24]), "c": (T.FLOAT, [4, 24]), "xt": (T.FLOAT, [4, 20])},
                  {out: (T.FLOAT, [4, 24]), cell: (T.FLOAT, [4, 24]), b.Identity(out): (T.FLOAT, [4, 24])})
    s, c, ys = g.Scan(g.constant(np.zeros((4, 24))), g.constant(np.zeros((4, 24))), "x", outputs=3, body=body, num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1])
    return g.finished({s: (T.FLOAT, 2), ys: (T.FLOAT, 3)}, 16)


@model
def old_recurrence():
    """keras2onnx: a bidirectional LSTM and a GRU with linear_before_reset between Transposes, opset 11."""
    g = Graph({"x": (T.FLOAT, [2, 30, 16])})
    y = g.Transpose("x", perm=[1, 0, 2])
    y, _, _ = g.LSTM(y, g.weight(2, 80, 16, scale=0.2), g.weight(2, 80, 20, scale=0.2), g.weight(2, 160, scale=0.1), outputs=3, hidden_size=20, direction="bidirectional")
    y = g.Reshape(g.Transpose(y, perm=[2, 0, 1, 3]), g.ints(2, 30, 40))
    y, last = g.GRU(g.Transpose(y, perm=[1, 0, 2]), g.weight(1, 72, 40, scale=0.2), g.weight(1, 72, 24, scale=0.2), g.weight(1, 144, scale=0.1), outputs=2, hidden_size=24, linear_before_reset=1)
    y = g.Squeeze(last, axes=[0])
    return g.finished({y: (T.FLOAT, 2)}, 11)


# ---- branches, sets, boxes ----
@model
def two_branches():
    """If by the mean of an image: one branch is a network, the other an Identity with a scale."""
    g = Graph({"x": (T.FLOAT, [1, 12, 12, 8])})
    mean = g.ReduceMean("x", keepdims=0)
    a, b = Graph({}, 1), Graph({}, 2)
    ya = a.Relu(same_conv(a, same_conv(a, "x", 8, 16), 16, 8))
    yb = b.Mul("x", b.constant(2.0))
    y = g.If(g.Greater(mean, g.constant(0.0)), then_branch=a.body("yes", {}, {ya: (T.FLOAT, 4)}), else_branch=b.body("no", {}, {yb: (T.FLOAT, 4)}))
    return g.finished({y: (T.FLOAT, 4)}, 13)


@model
def suppressed():
    """A head of boxes, decoded, NonMaxSuppression, and the rows that it keeps."""
    g = Graph({"x": (T.FLOAT, [1, 16, 16, 24])})
    y = g.Relu(same_conv(g, "x", 24, 32))
    boxes = g.Reshape(same_conv(g, y, 32, 12), g.ints(1, -1, 4))
    scores = g.Sigmoid(g.Reshape(same_conv(g, y, 32, 9), g.ints(1, -1, 3)))
    at, size = g.Split(boxes, outputs=2, axis=2)
    size = g.Mul(g.Exp(g.Clip(size, g.constant(-4.0), g.constant(4.0))), g.constant(0.2))
    boxes = g.Concat(g.Sub(at, size), g.Add(at, size), axis=2)
    kept = g.NonMaxSuppression(boxes, g.Transpose(scores, perm=[0, 2, 1]), g.ints(20), g.constant(np.array([0.5], np.float32)), g.constant(np.array([0.2], np.float32)))
    rows = g.Gather(kept, g.ints(2), axis=1)
    chosen = g.GatherND(g.Squeeze(boxes, g.ints(0)), rows)
    return g.finished({chosen: (T.FLOAT, 2), kept: (T.INT64, 2)}, 13)


@model
def sparse_experts():
    """Two of six experts a token: TopK, Softmax, ScatterElements into gates, all experts by Einsum of three tensors."""
    g = Graph({"x": (T.FLOAT, ["n", 48])})
    best, which = g.TopK(g.MatMul("x", g.weight(48, 6)), g.ints(2), outputs=2, axis=-1)
    gates = g.ScatterElements(g.Mul(g.MatMul("x", g.constant(np.zeros((48, 6)))), g.constant(0.0)), which, g.Softmax(best, axis=-1), axis=1)
    y = g.Relu(g.Einsum("x", g.weight(6, 48, 96, scale=48 ** -0.5), equation="td,edf->tef"))
    y = g.Einsum(y, g.weight(6, 96, 48, scale=96 ** -0.5), gates, equation="tef,efd,te->td")
    return g.finished({y: (T.FLOAT, 2)}, 16)


@model
def graph_sums():
    """Messages along edges by Gather and ScatterND with add, degrees, a gate by Where."""
    g = Graph({"x": (T.FLOAT, ["n", 32]), "edges": (T.INT64, [2, "e"])})
    a, b = (g.Gather("edges", g.constant(np.array(i)), axis=0) for i in (0, 1))
    zeros = g.Mul("x", g.constant(0.0))
    m = g.Relu(g.MatMul(g.Concat(g.Gather("x", a), g.Gather("x", b), axis=1), g.weight(64, 32)))
    total = g.ScatterND(zeros, g.Unsqueeze(b, g.ints(1)), m, reduction="add")
    count = g.ScatterND(g.ReduceSum(zeros, g.ints(1), keepdims=0), g.Unsqueeze(b, g.ints(1)), g.ReduceMax(g.Add(g.Mul(m, g.constant(0.0)), g.constant(1.0)), axes=[1], keepdims=0), reduction="add")
    mean = g.Div(total, g.Unsqueeze(g.Where(g.Greater(count, g.constant(0.0)), count, g.constant(1.0)), g.ints(1)))
    y = g.Add("x", g.MatMul(mean, g.weight(32, 32)))
    return g.finished({y: (T.FLOAT, 2)}, 16)


@model
def half_norms():
    """Half precision as Paddle and others write it: float32 islands around norms and softmax."""
    g = Graph({"x": (T.FLOAT16, [2, 60, 64])}, dtype=np.float16)
    wide = g.Cast("x", to=T.FLOAT)
    y = g.Cast(g.LayerNormalization(wide, g.constant(np.ones(64), np.float32), g.constant(np.zeros(64), np.float32), axis=2), to=T.FLOAT16)
    q, k, v = (g.Transpose(g.Reshape(g.MatMul(y, g.weight(64, 64)), g.ints(0, 0, 4, 16)), perm=[0, 2, 1, 3]) for _ in range(3))
    scores = g.Cast(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), to=T.FLOAT)
    weights = g.Cast(g.Softmax(g.Mul(scores, g.constant(0.25, np.float32)), axis=3), to=T.FLOAT16)
    y = g.Reshape(g.Transpose(g.MatMul(weights, v), perm=[0, 2, 1, 3]), g.ints(0, 0, 64))
    y = g.Add("x", g.MatMul(y, g.weight(64, 64)))
    return g.finished({y: (T.FLOAT16, 3)}, 17)


@model
def old_image():
    """Opset 9: Upsample, BatchNormalization alone, Dropout, Flatten, LRN, Slice and Pad with attributes, PRelu."""
    g = Graph({"x": (T.FLOAT, [1, 3, 40, 40])})
    y = g.Conv("x", g.weight(16, 3, 5, 5, scale=0.1), g.weight(16), kernel_shape=[5, 5], auto_pad="SAME_UPPER", strides=[2, 2])
    y = g.BatchNormalization(y, *(g.constant(g.random.uniform(0.5, 1.5, 16)) for _ in range(4)), epsilon=1e-3)
    y = g.PRelu(g.LRN(y, size=5, alpha=1e-3, beta=0.75), g.weight(16, 1, 1))
    y = g.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")
    y = g.Slice(g.Upsample(y, g.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest"), starts=[0, 1], ends=[16, 15], axes=[1, 2])
    y = g.Dropout(g.Pad(y, pads=[0, 0, 1, 0, 0, 0, 1, 0], mode="reflect"))
    y = g.Gemm(g.Flatten(g.GlobalAveragePool(y)), g.weight(16, 7), g.weight(7))
    return g.finished({y: (T.FLOAT, 2)}, 9, 4)


@model
def decoder_step():
    """One token with caches of open length, positions by their Shape, logits of the last."""
    g = Graph({"x": (T.FLOAT, ["n", 1, 64]), "keys": (T.FLOAT, ["n", 4, "past", 16]), "values": (T.FLOAT, ["n", 4, "past", 16])})
    q, k, v = (g.Transpose(g.Reshape(g.MatMul("x", g.weight(64, 64)), g.ints(0, 0, 4, 16)), perm=[0, 2, 1, 3]) for _ in range(3))
    at = g.Cast(g.Gather(g.Shape("keys"), g.constant(np.array(2))), to=T.FLOAT)
    angle = g.Mul(at, g.constant(100.0 ** -(np.arange(0, 16, 2) / 16)))
    angle = g.Concat(angle, angle, axis=0)

    def turned(t):
        a, b = g.Split(t, outputs=2, axis=3)
        return g.Add(g.Mul(t, g.Cos(angle)), g.Mul(g.Concat(g.Neg(b), a, axis=3), g.Sin(angle)))
    keys, values = g.Concat("keys", turned(k), axis=2), g.Concat("values", v, axis=2)
    weights = g.Softmax(g.Mul(g.MatMul(turned(q), g.Transpose(keys, perm=[0, 1, 3, 2])), g.constant(0.25)), axis=-1)
    y = g.Add("x", g.MatMul(g.Reshape(g.Transpose(g.MatMul(weights, values), perm=[0, 2, 1, 3]), g.ints(0, 0, 64)), g.weight(64, 64)))
    return g.finished({y: (T.FLOAT, 3), keys: (T.FLOAT, 4), values: (T.FLOAT, 4)}, 13)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", type=Path)
    p.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    args = p.parse_args()
    for name in args.only:
        made = MODELS[name]()
        checker.check_model(made)
        path = args.directory / name / "model.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        save(made, path)


if __name__ == "__main__":
    main()
