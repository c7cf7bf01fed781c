#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/relus: convolutions of signed bytes in QDQ form with Relu, whose limit is the middle of their type: a first one of
three channels, one with a residual, a pool and one without Relu, of as many pixels as have tiles for most of a GPU. Scales are powers
of two and sums below 2^24, so that results are exact in any order. Wants numpy and onnx. usage: relus.py"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGES, TILES, SIZE, FILTERS = 3, 4, 28, 64
random = np.random.default_rng(1)
nodes, constants = [], []


def constant(value):
    constants.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c{len(constants)}"))
    return constants[-1].name


def node(op, inputs, name, **attributes):
    nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
    return name


def quantised(op, x, scale, name):
    return node(op, [x, constant(np.float32(scale)), constant(np.int8(0))], name)


def rounded(x, scale):
    return np.clip(np.rint(x / scale), -128, 127).astype(np.int8)


def windows(x, taps, stride, pad, fill):
    """[images, channels, taps * taps, lines, columns]."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    lines = (x.shape[2] - taps) // stride + 1
    return np.stack([x[:, :, a : a + stride * (lines - 1) + 1 : stride, b : b + stride * (lines - 1) + 1 : stride]
                     for a in range(taps) for b in range(taps)], 2)


def convolve(name, x, value, x_scale, taps, stride, relu, y_scale, residual=None):
    """x: a name; value: its bytes; residual: name, bytes and scale of what is added. Returns the result's bytes."""
    w_scale, channels = 2.0**-7, value.shape[1]
    w = random.integers(-127, 128, (FILTERS, channels, taps, taps)).astype(np.int8)
    bias = (random.integers(-(2**15), 2**15, FILTERS) * x_scale * w_scale).astype(np.float32)
    inputs = [quantised("DequantizeLinear", x, x_scale, f"{name}_x"), quantised("DequantizeLinear", constant(w), w_scale, f"{name}_w")]
    y = node("Conv", [*inputs, constant(bias)], f"{name}_sums", kernel_shape=[taps, taps], strides=[stride, stride], pads=[taps // 2] * 4)
    seen = windows(value.astype(np.float64), taps, stride, taps // 2, 0)
    sums = np.einsum("nctyx,fct->nfyx", seen, w.reshape(FILTERS, channels, -1).astype(np.float64)) * x_scale * w_scale
    sums += bias.astype(np.float64)[:, None, None]
    if residual:
        y = node("Add", [y, quantised("DequantizeLinear", residual[0], residual[2], f"{name}_r")], f"{name}_added")
        sums += residual[1].astype(np.float64) * residual[2]
    if relu:
        y, sums = node("Relu", [y], f"{name}_relu"), np.maximum(sums, 0)
    quantised("QuantizeLinear", y, y_scale, name)
    return rounded(sums, y_scale)


def main():
    x = random.integers(-128, 128, (IMAGES, 3, SIZE, SIZE)).astype(np.int8)
    node("Tile", ["x", constant(np.array([1, 1, TILES, TILES], np.int64))], "image")
    first = convolve("first", "image", np.tile(x, (1, 1, TILES, TILES)), 2.0**-6, 7, 2, True, 2.0**-3)
    second = convolve("second", "first", first, 2.0**-3, 1, 1, True, 2.0**-1, ("first", first, 2.0**-3))
    node("MaxPool", ["second"], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    pool = windows(second, 3, 2, 1, -128).max(2)
    last = convolve("last", "pool", pool, 2.0**-1, 1, 4, False, 2.0)
    feeds, results = {"x": x}, {"last": last}

    def infos(values):
        return [helper.make_tensor_value_info(name, TensorProto.INT8, value.shape) for name, value in values.items()]

    model = helper.make_model(helper.make_graph(nodes, "relus", infos(feeds), infos(results), constants),
                              opset_imports=[helper.make_opsetid("", 21)], producer_name="tests/data/relus.py")
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    data = Path(__file__).parent / "cases" / "relus" / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, values in (("input", feeds), ("output", results)):
        for i, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    for name, value in {"first": first, "second": second, "last": last}.items():
        print(name, value.shape, "zeros", np.mean(value == 0), "most", np.mean(value == 127), "least", np.mean(value == -128))


if __name__ == "__main__":
    main()
