#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/heads: an attention as ONNX Runtime's quantiser leaves it, rounded to bytes behind each node, with a mask for all heads, rows of
odd lengths and a Where that asks for NaN; and convolutions of signed bytes whose zero point is the least number, the second one with windows
that look outside, of as many pixels as have tiles for most of a GPU. Scales are powers of two, so that sums are exact in any order; no share
of a softmax is close to the middle of two levels. Wants numpy and onnx. usage: heads.py"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH, QUERIES, KEYS, HEADS, SIZE = 2, 21, 37, 3, 32
IMAGES, CHANNELS, PIXELS, TILES = 3, 64, 14, 4
random = np.random.default_rng(2)
nodes, constants, feeds, results = [], [], {}, {}


def constant(value):
    constants.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c{len(constants)}"))
    return constants[-1].name


def node(op, inputs, name, **attributes):
    nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
    return name


class Levels:
    """A scale and a zero point of a type of bytes."""

    def __init__(self, scale, zero):
        self.scale, self.zero = np.float32(scale), zero

    def of(self, y):
        limits = np.iinfo(self.zero.dtype)
        return np.clip(np.rint(y / np.float64(self.scale)) + int(self.zero), limits.min, limits.max).astype(self.zero.dtype)

    def numbers(self, levels):
        return (levels.astype(np.float64) - int(self.zero)) * np.float64(self.scale)

    def quantise(self, x, name):
        return node("QuantizeLinear", [x, constant(self.scale), constant(self.zero)], name)

    def dequantise(self, x, name):
        return node("DequantizeLinear", [x, constant(self.scale), constant(self.zero)], name)


def fed(name, dims, levels, of):
    limits = np.iinfo(of)
    feeds[name] = random.integers(limits.min, limits.max + 1, dims).astype(of)
    return levels.dequantise(name, f"{name}_wide"), levels.numbers(feeds[name])


def rounded(x, value, levels, name, result=False):
    """QuantizeLinear and DequantizeLinear of x, whose numbers are `value`."""
    bytes_ = levels.of(value)
    levels.quantise(x, name)
    if result:
        results[name] = bytes_
    return levels.dequantise(name, f"{name}_wide"), levels.numbers(bytes_)


def attend():
    of_q, of_k, of_v = Levels(2.0**-5, np.uint8(121)), Levels(2.0**-6, np.uint8(130)), Levels(2.0**-4, np.uint8(117))
    q, q_value = fed("q", (BATCH, QUERIES, HEADS, SIZE), of_q, np.uint8)
    k, k_value = fed("k", (BATCH, KEYS, HEADS, SIZE), of_k, np.uint8)
    v, v_value = fed("v", (BATCH, KEYS, HEADS, SIZE), of_v, np.uint8)
    mask, mask_value = fed("mask", (BATCH, 1, QUERIES, KEYS), Levels(2.0**-6, np.uint8(255)), np.uint8)
    k = node("Mul", [k, constant(np.float32(0.5))], "k_half")
    k, k_value = rounded(k, k_value * 0.5, Levels(2.0**-6, np.uint8(128)), "k_scaled")
    q, k, v = node("Transpose", [q], "q_heads", perm=[0, 2, 1, 3]), node("Transpose", [k], "k_heads", perm=[0, 2, 3, 1]), node(
        "Transpose", [v], "v_heads", perm=[0, 2, 1, 3])
    value = np.einsum("bqhd,bkhd->bhqk", q_value, k_value)
    x, value = rounded(node("MatMul", [q, k], "sums"), value, Levels(2.0**-4, np.uint8(125)), "scores", True)
    x, value = rounded(node("Add", [x, mask], "masked"), value + mask_value, Levels(2.0**-4, np.uint8(140)), "scores_masked", True)
    shares = np.exp(value - value.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    of_shares = Levels(2.0**-8, np.uint8(0))
    middle = np.abs(shares / np.float64(of_shares.scale) % 1 - 0.5).min()
    assert middle > 1e-4, middle
    x, value = rounded(node("Softmax", [x], "softmax", axis=-1), shares, of_shares, "shares", True)
    x = node("Where", [node("IsNaN", [x], "undefined"), constant(np.float32(0)), x], "defined")
    x, value = rounded(x, value, Levels(2.0**-7, np.uint8(3)), "shares_again")
    value = np.einsum("bhqk,bkhd->bqhd", value, v_value)
    x = node("Transpose", [node("MatMul", [x, v], "attended")], "joined", perm=[0, 2, 1, 3])
    rounded(x, value, Levels(2.0**-3, np.uint8(128)), "y", True)


def windows(x, taps, stride, pad):
    """[images, channels, taps * taps, lines, columns]."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    lines = (x.shape[2] - taps) // stride + 1
    return np.stack([x[:, :, a : a + stride * (lines - 1) + 1 : stride, b : b + stride * (lines - 1) + 1 : stride]
                     for a in range(taps) for b in range(taps)], 2)


def convolve(x, value, taps, stride, y_scale, name, result=False):
    of_w = Levels(2.0**-7, np.int8(0))
    w = random.integers(-127, 128, (CHANNELS, CHANNELS, taps, taps)).astype(np.int8)
    y = node("Conv", [x, of_w.dequantise(constant(w), f"{name}_w")], f"{name}_sums", kernel_shape=[taps, taps], strides=[stride, stride],
             pads=[taps // 2] * 4)
    sums = np.einsum("nctyx,fct->nfyx", windows(value, taps, stride, taps // 2), of_w.numbers(w).reshape(CHANNELS, CHANNELS, -1), optimize=True)
    return rounded(node("Relu", [y], f"{name}_relu"), np.maximum(sums, 0), Levels(y_scale, np.int8(-128)), name, result)


def convolve_signed():
    of_x = Levels(2.0**-6, np.int8(-128))
    feeds["image"] = random.integers(-128, 128, (IMAGES, CHANNELS, PIXELS, PIXELS)).astype(np.int8)
    node("Tile", ["image", constant(np.array([1, 1, TILES, TILES], np.int64))], "images")
    x, value = of_x.dequantise("images", "images_wide"), of_x.numbers(np.tile(feeds["image"], (1, 1, TILES, TILES)))
    x, value = convolve(x, value, 1, 1, 2.0**-4, "first")
    x, value = convolve(x, value, 3, 1, 2.0**-1, "second")
    convolve(x, value, 1, TILES, 2.0**1, "last", True)


def infos(values):
    return [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in values.items()]


def main():
    attend()
    convolve_signed()
    model = helper.make_model(helper.make_graph(nodes, "heads", infos(feeds), infos(results), constants), opset_imports=[helper.make_opsetid("", 21)],
                              producer_name="tests/data/heads.py")
    model.ir_version = 10
    onnx.checker.check_model(model, full_check=True)
    data = Path(__file__).parent / "cases" / "heads" / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, values in (("input", feeds), ("output", results)):
        for i, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(value), name).SerializeToString())
    for name, value in results.items():
        limits = np.iinfo(value.dtype)
        print(name, value.shape, "most", np.mean(value == limits.max), "least", np.mean(value == limits.min), "levels", len(np.unique(value)))


if __name__ == "__main__":
    main()
