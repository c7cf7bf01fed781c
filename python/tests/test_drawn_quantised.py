# SPDX-License-Identifier: Apache-2.0
"""Quantised graphs that are drawn at random, in the forms that exporters and quantisers write, against onnx's reference implementation: results may differ by one
step of their quantisation, and behind several layers by one a layer. Every instruction set of this processor is run.

python test_drawn_quantised.py SEED COUNT draws others, and prints those that are wrong."""
import os
import pathlib
import subprocess
import sys
import tempfile

import graphrt
import numpy as np
import onnx
import pytest
from conftest import info, model
from drawing import Drawing
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

COUNT = 140
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16, "int16": TensorProto.INT16,
         "uint4": TensorProto.UINT4, "int4": TensorProto.INT4, "float8e4m3fn": TensorProto.FLOAT8E4M3FN, "float8e5m2": TensorProto.FLOAT8E5M2}
LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15), "int4": (-8, 7),
          "float8e4m3fn": (-448, 448), "float8e5m2": (-1000, 1000)}
PACKED = ("int4", "uint4", "float8e4m3fn", "float8e5m2")  # numpy has no such types


class Quantised(Drawing):
    """`value` is the name of the float32 tensor that the next layer reads, `shape` its dims."""

    def __init__(self, seed):
        super().__init__(seed)
        self.layers = 0

    def constant(self, array, dtype=None):
        if dtype not in PACKED:
            return super().constant(np.asarray(array).astype(dtype) if dtype else array)
        array = np.asarray(array)
        name = self.name("c")
        self.constants.append(helper.make_tensor(name, TYPES[dtype], array.shape, array.ravel().tolist()))
        return name

    def zero(self, dtype):
        low, high = LIMITS[dtype]
        return 0 if dtype[0] == "i" and self.chance(0.7) else int(self.random.integers(low + (high - low) // 4, high - (high - low) // 4))

    def pair(self, value, dtype, reach):
        """QuantizeLinear and DequantizeLinear of values up to about `reach`; the quantised tensor's name, and the float one's. Scales have no simple ratios: sums
        that lie between two steps would be rounded by the last bit of float32."""
        low, high = LIMITS[dtype]
        scale, zero = self.constant(np.float32(2 * reach * self.random.uniform(0.9, 1.1) / (high - low))), self.constant(self.zero(dtype), dtype)
        quantised = self.node("QuantizeLinear", [value, scale, zero])
        return quantised, self.node("DequantizeLinear", [quantised, scale, zero])

    def weights(self, shape, axis):
        """Dequantised weights with values up to about 1, a scale for each index of `axis` or one."""
        dtype, channels = self.pick("int8", "int8", "uint8"), self.chance()
        low, high = LIMITS[dtype]
        numbers = self.constant(self.random.integers(low, high + 1, shape), dtype)
        count = (shape[axis],) if channels else ()
        scale = self.constant(self.random.uniform(0.4, 1, count).astype(np.float32) / 128)
        if dtype == "int8" and self.chance(0.8):
            zero = self.constant(np.zeros(count), dtype)
        else:
            zero = self.constant(self.random.integers(low // 2 + high // 4, high // 2 + 10, count), dtype)
        return self.node("DequantizeLinear", [numbers, scale, zero], **({"axis": axis} if channels else {}))

    def activation(self, value, reach):
        kind = self.pick(None, None, "Relu", "Clip")
        if kind == "Clip":
            return self.node("Clip", [value, self.constant(np.float32(0)), self.constant(np.float32(reach * self.random.uniform(0.3, 1)))])
        return self.node(kind, [value]) if kind else value

    def product(self, value, shape):
        inner = shape[-1]
        outer = inner if self.chance(0.4) else int(self.random.integers(1, 40))
        if len(shape) == 2 and self.chance():
            turned = self.chance()
            weights = self.weights((outer, inner) if turned else (inner, outer), 0 if turned else 1)
            bias = [self.constant(self.random.standard_normal(outer).astype(np.float32))] if self.chance() else []
            return self.node("Gemm", [value, weights, *bias], transB=int(turned)), [*shape[:-1], outer], inner
        made = self.node("MatMul", [value, self.weights((inner, outer), 1)])
        if self.chance():
            made = self.node("Add", [made, self.constant(self.random.standard_normal(outer).astype(np.float32))])
        return made, [*shape[:-1], outer], inner

    def convolution(self, value, shape):
        batch, channels, height, width = shape
        groups = self.pick(1, 1, channels)
        outputs = groups * int(self.random.integers(1, 3)) if groups > 1 else int(self.random.integers(1, 24))
        taps = [int(self.random.integers(1, min(4, side) + 1)) for side in (height, width)]
        strides, pads = [self.pick(1, 1, 2) for _ in taps], [int(self.random.integers(0, tap)) for tap in [*taps, *taps]]
        if self.chance(0.4):  # a result of the input's shape, so that both may be added
            outputs, taps, strides, pads = channels, [1, 1], [1, 1], [0, 0, 0, 0]
            if min(height, width) > 2:
                taps, pads = [3, 3], [1, 1, 1, 1]
        inner = channels // groups * taps[0] * taps[1]
        bias = []
        if self.chance():
            scale = self.constant(np.float32(0.01))
            bias = [self.node("DequantizeLinear", [self.constant(self.random.integers(-100, 100, outputs), "int32"), scale])]
        made = self.node("Conv", [value, self.weights((outputs, channels // groups, *taps), 0), *bias], group=groups, kernel_shape=taps, strides=strides, pads=pads)
        sides = [(side + pads[i] + pads[i + 2] - taps[i]) // strides[i] + 1 for i, side in enumerate((height, width))]
        return made, [batch, outputs, *sides], inner

    def move(self, value, shape):
        """A layer that moves numbers or takes the greatest of them."""
        if len(shape) == 4:
            if self.chance() and min(shape[2:]) > 1:
                return self.node("MaxPool", [value], kernel_shape=[2, 2]), [*shape[:2], shape[2] - 1, shape[3] - 1]
            return self.node("Transpose", [value], perm=[0, 1, 3, 2]), [*shape[:2], shape[3], shape[2]]
        if self.chance() and len(shape) == 2:
            return self.node("Transpose", [value], perm=[1, 0]), shape[::-1]
        return self.node("Reshape", [value, self.constant(np.array([-1, shape[-1]]), "int64")]), [int(np.prod(shape[:-1])), shape[-1]]


def qdq(draw):
    """One to three layers between pairs; the result is quantised, so that a step of it is 1."""
    dims = draw.pick(2, 3, 4, 4)
    shape = [int(draw.random.integers(1, 4)), *[int(draw.random.integers(1, 24)) for _ in range(dims - 1)]]
    first = list(shape)
    dtype = draw.pick("uint8", "uint8", "int8", "int8", "int16", "uint16")
    reach = 3.0  # it grows from layer to layer: a step of a layer's input is less than a step of its output
    quantised, value = draw.pair("x", dtype, reach)
    for _ in range(int(draw.random.integers(1, 4))):
        if draw.chance(0.3):
            value, shape = draw.move(value, shape)
            quantised, value = draw.pair(value, dtype, reach)
        made, after, inner = (draw.convolution if len(shape) == 4 else draw.product)(value, shape)
        reach = 0.8 * reach * float(np.sqrt(inner)) + 1
        if after == shape and draw.chance(0.6):
            rounded = draw.chance()
            made = draw.node("Add", [draw.pair(made, dtype, reach)[1] if rounded else made, value])
            draw.layers += rounded
        quantised, value = draw.pair(draw.activation(made, reach), dtype, reach)
        shape = after
        draw.layers += 1
    return quantised, TYPES[dtype], first, shape


def mixed(draw):
    """Two to four layers of what lies between products: means, Softmax, functions of one tensor, channels' weights, joins and moves."""
    channels = int(draw.random.integers(1, 40))
    shape = [int(draw.random.integers(1, 3)), channels, int(draw.random.integers(2, 12)), int(draw.random.integers(2, 12))]
    first, dtype, reach = list(shape), draw.pick("uint8", "int8"), 3.0
    quantised, value = draw.pair("x", dtype, reach)
    if draw.chance(0.3):  # of exact numbers: it makes several steps of one
        draw.layers = 1
        return draw.pair(draw.node("Softmax", [value], axis=draw.pick(-1, 1)), dtype, 1.0)[0], TYPES[dtype], first, None
    for _ in range(int(draw.random.integers(2, 5))):
        kind = draw.pick("function", "join", "move", "window", "weights", "weights")
        if kind == "function":
            made = draw.node(draw.pick("Sigmoid", "HardSwish", "LeakyRelu", "Elu", "HardSigmoid", "Gelu"), [value])
        elif kind == "join":
            made, shape = draw.node("Concat", [value, draw.pair(value, dtype, reach * draw.random.uniform(1, 1.5))[1]], axis=1), [shape[0], 2 * shape[1], *shape[2:]]
        elif kind == "window":
            made = draw.node("AveragePool", [value], kernel_shape=[2, 2], pads=[0, 1, 1, 0], count_include_pad=int(draw.chance()))
        elif kind == "weights":
            mean = draw.node("GlobalAveragePool", [value]) if draw.chance() else draw.node("ReduceMean", [value, draw.constant([2, 3], "int64")])
            weight = draw.pair(draw.node("Sigmoid", [draw.pair(mean, dtype, reach)[1]]), dtype, 1.0)[1]
            made = draw.node("Mul", [value, weight] if draw.chance() else [weight, value])
            draw.layers += 2
        else:
            made, shape = further_move(draw, value, shape)
        quantised, value = draw.pair(made, dtype, reach)
        draw.layers += 1
    if draw.chance():
        whole = draw.pick([2, 3], [2, 3], [1, 2])
        quantised, value = draw.pair(draw.node("ReduceMean", [value, draw.constant(whole, "int64")], keepdims=int(draw.chance())), dtype, reach)
        draw.layers += 1
    return quantised, TYPES[dtype], first, None


def further_move(draw, value, shape):
    kind = draw.pick("Pad", "Split", "Tile", "Resize")
    if kind == "Pad":
        return draw.node("Pad", [value, draw.constant([0, 0, 1, 0, 0, 0, 0, 2], "int64")]), [*shape[:2], shape[2] + 1, shape[3] + 2]
    if kind == "Split" and shape[1] > 1:
        parts = [draw.name("part") for _ in range(2)]
        draw.nodes.append(helper.make_node("Split", [value, draw.constant([1, shape[1] - 1], "int64")], parts, axis=1))
        return draw.node("Concat", parts[::-1], axis=1), shape
    if kind == "Tile":
        return draw.node("Tile", [value, draw.constant([1, 1, 2, 1], "int64")]), [*shape[:2], 2 * shape[2], shape[3]]
    sizes = [*shape[:2], shape[2] + 1, 2 * shape[3]]
    return draw.node("Resize", [value, "", "", draw.constant(sizes, "int64")], mode="nearest"), sizes


def operators(draw):
    """QLinearMatMul and QLinearConv."""
    dtype = draw.pick("uint8", "int8")
    quantised, _ = draw.pair("x", dtype, 3)
    scale, zero = draw.nodes[0].input[1], draw.nodes[0].input[2]
    draw.nodes.pop()
    matrix = draw.chance()
    shape = [int(draw.random.integers(1, 20)) for _ in range(2)] if matrix else [2, *[int(draw.random.integers(3, 20)) for _ in range(3)]]
    outer = int(draw.random.integers(1, 30))
    w_type = draw.pick("int8", dtype)
    low, high = LIMITS[w_type]
    w_shape = (shape[1], outer) if matrix else (outer, shape[1], 3, 2)
    channels = draw.chance()
    w = draw.constant(draw.random.integers(low, high + 1, w_shape), w_type)
    w_scale = draw.constant(draw.random.uniform(0.4, 1, (outer,) if channels else ()).astype(np.float32) / 128)
    w_zero = draw.constant(np.zeros((outer,) if channels else ()), w_type) if w_type == "int8" else draw.constant(np.full((outer,) if channels else (), 120), w_type)
    y_scale, y_zero = draw.constant(np.float32(np.sqrt(np.prod(w_shape) / outer) * 6 / 255)), draw.constant(draw.zero(dtype), dtype)
    args = [quantised, scale, zero, w, w_scale, w_zero, y_scale, y_zero]
    draw.layers = 1
    if matrix:
        return draw.node("QLinearMatMul", args), TYPES[dtype], shape, [shape[0], outer]
    if draw.chance():
        args.append(draw.constant(draw.random.integers(-2000, 2000, outer), "int32"))
    return draw.node("QLinearConv", args, pads=[1, 0, 1, 1]), TYPES[dtype], shape, None


def dynamic(draw):
    """DynamicQuantizeLinear, a product of integers, scales."""
    shape = [int(draw.random.integers(1, 6)) for _ in range(draw.pick(1, 2))] + [int(draw.random.integers(1, 70))]
    outer = int(draw.random.integers(1, 40))
    names = [draw.name("d") for _ in range(3)]
    draw.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], names))
    kind = draw.pick("int8", "uint8")
    low, high = LIMITS[kind]
    numbers = draw.constant(draw.random.integers(low, high + 1, (shape[-1], outer)), kind)
    zero = draw.constant(0 if kind == "int8" else 128, kind)
    total = draw.node("Cast", [draw.node("MatMulInteger", [names[0], numbers, names[2], zero])], to=TensorProto.FLOAT)
    scale = draw.constant(draw.random.uniform(0.4, 1, (outer,) if draw.chance() else ()).astype(np.float32) / 128)
    made = draw.node("Mul", [total, draw.node("Mul", [names[1], scale])])
    if draw.chance():
        made = draw.node("Add", [made, draw.constant(draw.random.standard_normal(outer).astype(np.float32))])
    return made, TensorProto.FLOAT, shape, [*shape[:-1], outer]


def weights_alone(draw):
    """Weights of 4 or 8 bits with a scale for each block, an activation in float32."""
    kind, block = draw.pick("int4", "uint4", "int8", "uint8", "float8e4m3fn", "float8e5m2"), draw.pick(16, 32)
    inner, outer, rows = block * int(draw.random.integers(1, 5)), int(draw.random.integers(1, 40)), draw.pick(1, 1, 3, 20)
    low, high = LIMITS[kind]
    turned = draw.chance()
    shape = (outer, inner) if turned else (inner, outer)
    blocks = (outer, inner // block) if turned else (inner // block, outer)
    inputs = [draw.constant(draw.random.integers(low, high + 1, shape), kind), draw.constant(draw.random.uniform(0.4, 1, blocks).astype(np.float32) / high)]
    if kind[0] != "f" and draw.chance():
        inputs.append(draw.constant(draw.random.integers(low // 2, high // 2 + 1, blocks), kind))
    made = draw.node("DequantizeLinear", inputs, axis=1 if turned else 0, block_size=block)
    if turned:
        made = draw.node("Gemm", ["x", made], transB=1)
    else:
        made = draw.node("MatMul", ["x", made])
    return made, TensorProto.FLOAT, [rows, inner], [rows, outer]


def drawn(seed):
    """Bytes of a model, its input, and by how many steps (None: it is float32) its result may differ."""
    draw = Quantised(seed)
    form = (qdq, qdq, qdq, mixed, mixed, operators, dynamic, weights_alone)[seed % 8]
    result, dtype, shape, _ = form(draw)
    draw.nodes[-1 if draw.nodes[-1].output[0] == result else [n.output[0] for n in draw.nodes].index(result)].output[0] = "y"
    used = {name for node in draw.nodes for name in node.input} | {"y"}
    for node in draw.nodes:
        for k, name in enumerate(node.input):
            node.input[k] = "y" if name == result else name
    kept = [node for node in draw.nodes if used & set(node.output)]
    made = model(kept, [info("x", TensorProto.FLOAT, shape)], [info("y", dtype, None)], draw.constants, opset=21)
    return made, draw.random.standard_normal(shape).astype(np.float32), None if dtype == TensorProto.FLOAT else draw.layers


def draw_all(directory, seeds):
    """Writes models and inputs; returns what is expected of each."""
    expected = []
    for number, seed in enumerate(seeds):
        made, x, steps = drawn(seed)
        (directory / f"{number}.onnx").write_bytes(made)
        np.save(directory / f"{number}.npy", x)
        expected.append((ReferenceEvaluator(onnx.load_from_string(made)).run(None, {"x": x})[0], steps))
    return expected


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    directory = tmp_path_factory.mktemp("drawn")
    return directory, draw_all(directory, range(COUNT))


def test_most_become_integer_steps(cases):
    integer = [any(step["op"] in ("QConv", "QMatMul") for step in graphrt.inspect(cases[0] / f"{seed}.onnx")["steps"]) for seed in range(COUNT)]
    assert np.mean(integer) > 0.5


RUN = """
import sys, numpy, graphrt
for seed in range(int(sys.argv[2])):
    name = f"{sys.argv[1]}/{seed}"
    numpy.save(f"{name}.{sys.argv[3]}.npy", graphrt.Session(f"{name}.onnx", level=int(sys.argv[4]))(numpy.load(f"{name}.npy")))
"""


LEVELS = [("", 0), ("", 2), ("avx2", 2), ("base", 2)]


def wrong_ones(directory, expected, isa, level):
    """Numbers, errors and what is allowed of cases that differ by more."""
    environment = {**os.environ, **({"GRAPHRT_CPU_ISA": isa} if isa else {})}
    subprocess.run([sys.executable, "-c", RUN, str(directory), str(len(expected)), f"{isa}{level}", str(level)], check=True, env=environment)
    wrong = []
    for number, (right, steps) in enumerate(expected):
        found = np.load(directory / f"{number}.{isa}{level}.npy")
        assert found.shape == right.shape and found.dtype == right.dtype, number
        if found.size == 0:
            continue
        off = np.abs(found.astype(np.float64) - right.astype(np.float64))
        allowed = steps if steps else 1e-5 * (1 + np.abs(right).max()) * 10
        if off.max() > allowed or (steps and np.mean(off > 0) > 0.02 * steps and np.sum(off > 0) > 2):
            wrong.append((number, float(off.max()), float(np.mean(off > 0)), allowed))
    return wrong


@pytest.mark.parametrize("isa, level", LEVELS)
def test_quantised_graphs_within_a_step(cases, isa, level):
    assert not wrong_ones(*cases, isa, level)


def main(seed, count):
    found = 0
    with tempfile.TemporaryDirectory() as name:
        expected = draw_all(pathlib.Path(name), range(seed, seed + count))
        for isa, level in LEVELS:
            for number, most, share, allowed in wrong_ones(pathlib.Path(name), expected, isa, level):
                print(f"seed {seed + number}, {isa or 'best'}, level {level}: off by up to {most:g} ({allowed:g} allowed), {share:.3%} of the elements")
                found += 1
    print(f"{count} graphs from seed {seed} on: {found} results wrong")
    return found > 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
