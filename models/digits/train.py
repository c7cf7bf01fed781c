#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the digits model that quickstart.sh runs, and write everything that this folder ships.

Needs numpy, scikit-learn (the data set comes with it) and onnx; no deep learning framework. Usage:

    python3 train.py [OUTPUT_DIR]        # about a minute on one core

The network is written out as ONNX by hand, with BatchNormalization as separate nodes: folding them into the
convolutions is the optimiser's work, not the exporter's.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20260101
TEST_SHARE = 0.25
EPOCHS = 40
BATCH = 64
PEAK_RATE = 3e-3
WEIGHT_DECAY = 1e-4
BN_MOMENTUM = 0.9
BN_EPSILON = 1e-5


class Parameter:
    """A trained tensor with its gradient and Adam's two moments."""

    def __init__(self, value, decay=False):
        self.value = value.astype(np.float32)
        self.grad = np.zeros_like(self.value)
        self.mean = np.zeros_like(self.value)
        self.square = np.zeros_like(self.value)
        self.decay = WEIGHT_DECAY if decay else 0.0

    def update(self, step, rate):
        self.mean += 0.1 * (self.grad - self.mean)
        self.square += 0.001 * (self.grad**2 - self.square)
        mean = self.mean / (1 - 0.9**step)
        square = self.square / (1 - 0.999**step)
        self.value -= rate * (mean / (np.sqrt(square) + 1e-8) + self.decay * self.value)


class Conv:
    """3x3, stride 1, padding 1, no bias: the BatchNorm that follows has one."""

    def __init__(self, rng, c_in, c_out):
        scale = np.sqrt(2 / (9 * c_in))
        self.weight = Parameter(rng.standard_normal((c_out, c_in, 3, 3)) * scale, decay=True)
        self.parameters = [self.weight]

    @staticmethod
    def windows(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sliding_window_view(padded, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)

    def forward(self, x, training):
        n, c, h, w = x.shape
        self.columns = self.windows(x).reshape(n * h * w, c * 9)
        y = self.columns @ self.weight.value.reshape(-1, c * 9).T
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, grad):
        n, k, h, w = grad.shape
        rows = grad.transpose(0, 2, 3, 1).reshape(-1, k)
        self.weight.grad = (rows.T @ self.columns).reshape(self.weight.value.shape)
        # The gradient of a 3x3 convolution is one with the kernel turned around and the channels swapped.
        turned = self.weight.value[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
        columns = self.windows(grad).reshape(n * h * w, k * 9)
        return (columns @ turned.reshape(-1, k * 9).T).reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def export(self, graph, x, name):
        return graph.node("Conv", [x, graph.weight(f"{name}.weight", self.weight.value)], name,
                          kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])


class BatchNorm:
    def __init__(self, channels):
        self.scale = Parameter(np.ones(channels))
        self.bias = Parameter(np.zeros(channels))
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)
        self.parameters = [self.scale, self.bias]

    def forward(self, x, training):
        mean, var = self.mean, self.var
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            count = x.size / x.shape[1]
            self.mean = BN_MOMENTUM * self.mean + (1 - BN_MOMENTUM) * mean
            self.var = BN_MOMENTUM * self.var + (1 - BN_MOMENTUM) * var * count / (count - 1)
        self.inverse = 1 / np.sqrt(var + BN_EPSILON)
        self.normal = (x - mean[:, None, None]) * self.inverse[:, None, None]
        return self.normal * self.scale.value[:, None, None] + self.bias.value[:, None, None]

    def backward(self, grad):
        self.bias.grad = grad.sum((0, 2, 3))
        self.scale.grad = (grad * self.normal).sum((0, 2, 3))
        count = grad.size / grad.shape[1]
        centred = (grad - (self.bias.grad / count)[:, None, None]
                   - self.normal * (self.scale.grad / count)[:, None, None])
        return centred * (self.scale.value * self.inverse)[:, None, None]

    def export(self, graph, x, name):
        parts = {"scale": self.scale.value, "bias": self.bias.value, "mean": self.mean, "var": self.var}
        inputs = [graph.weight(f"{name}.{part}", value) for part, value in parts.items()]
        return graph.node("BatchNormalization", [x, *inputs], name, epsilon=BN_EPSILON)


class Relu:
    parameters = []

    def forward(self, x, training):
        self.positive = x > 0
        return x * self.positive

    def backward(self, grad):
        return grad * self.positive

    def export(self, graph, x, name):
        return graph.node("Relu", [x], name)


class MaxPool:
    """2x2, stride 2."""

    parameters = []

    def forward(self, x, training):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = blocks.max((3, 5), keepdims=True)
        self.winner = blocks == y
        self.winner = self.winner / self.winner.sum((3, 5), keepdims=True)
        return y.reshape(n, c, h // 2, w // 2)

    def backward(self, grad):
        n, c, h, w = grad.shape
        return (self.winner * grad[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w).astype(np.float32)

    def export(self, graph, x, name):
        return graph.node("MaxPool", [x], name, kernel_shape=[2, 2], strides=[2, 2])


class Flatten:
    parameters = []

    def forward(self, x, training):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad):
        return grad.reshape(self.shape)

    def export(self, graph, x, name):
        return graph.node("Flatten", [x], name, axis=1)


class Linear:
    def __init__(self, rng, n_in, n_out):
        self.weight = Parameter(rng.standard_normal((n_out, n_in)) * np.sqrt(1 / n_in), decay=True)
        self.bias = Parameter(np.zeros(n_out))
        self.parameters = [self.weight, self.bias]

    def forward(self, x, training):
        self.x = x
        return x @ self.weight.value.T + self.bias.value

    def backward(self, grad):
        self.weight.grad = grad.T @ self.x
        self.bias.grad = grad.sum(0)
        return grad @ self.weight.value

    def export(self, graph, x, name):
        weight = graph.weight(f"{name}.weight", self.weight.value)
        bias = graph.weight(f"{name}.bias", self.bias.value)
        return graph.node("Gemm", [x, weight, bias], name, transB=1)


class Graph:
    """Collects nodes and initializers while the layers export themselves."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
        return name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"{name}.out"], name=name, **attributes))
        return f"{name}.out"


def build(rng):
    return {
        "conv1": Conv(rng, 1, 16), "bn1": BatchNorm(16), "relu1": Relu(),
        "conv2": Conv(rng, 16, 32), "bn2": BatchNorm(32), "relu2": Relu(), "pool2": MaxPool(),
        "conv3": Conv(rng, 32, 64), "bn3": BatchNorm(64), "relu3": Relu(), "pool3": MaxPool(),
        "flatten": Flatten(), "fc": Linear(rng, 256, 10),
    }


def forward(net, x, training):
    for layer in net.values():
        x = layer.forward(x, training)
    return x


def shift(rng, images):
    """Move each image by up to one pixel in each direction: the only augmentation."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(images), 2))
    return np.stack([image[:, y:y + 8, x:x + 8] for image, (y, x) in zip(padded, moves)])


def train(net, rng, images, labels):
    parameters = [p for layer in net.values() for p in layer.parameters]
    steps_per_epoch = len(images) // BATCH
    total, step = EPOCHS * steps_per_epoch, 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        loss = 0.0
        for i in range(steps_per_epoch):
            step += 1
            rate = PEAK_RATE * min(step / (0.1 * total), 0.5 * (1 + np.cos(np.pi * step / total)) + 1e-3)
            batch = order[i * BATCH:(i + 1) * BATCH]
            logits = forward(net, shift(rng, images[batch]), training=True)
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            loss -= np.log(p[np.arange(BATCH), labels[batch]] + 1e-12).mean()
            p[np.arange(BATCH), labels[batch]] -= 1
            grad = p / BATCH
            for layer in reversed(net.values()):
                grad = layer.backward(grad)
            for parameter in parameters:
                parameter.update(step, rate)
        print(f"epoch {epoch + 1:2}/{EPOCHS}  training loss {loss / steps_per_epoch:.4f}", flush=True)


def export(net, path):
    graph = Graph()
    x = "image"
    for name, layer in net.items():
        x = layer.export(graph, x, name)
    graph.nodes[-1].output[0] = "logits"
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
            graph.initializers),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=9,
        producer_name="models/digits/train.py")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SHARE, stratify=labels, random_state=SEED)

    rng = np.random.default_rng(SEED)
    net = build(rng)
    train(net, rng, train_x, train_y)
    # The test images are looked at here for the first time, and nothing is chosen by the result.
    for name, x, y in (("training", train_x, train_y), ("test", test_x, test_y)):
        accuracy = (forward(net, x, training=False).argmax(1) == y).mean()
        print(f"{name} accuracy {100 * accuracy:.2f}% on {len(y)} images")

    export(net, out / "digits.onnx")
    np.save(out / "test_images.npy", test_x)
    np.save(out / "test_labels.npy", test_y)


if __name__ == "__main__":
    main()
