# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

TOP = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def top():
    return TOP


@pytest.fixture(scope="session")
def digits():
    return str(TOP / "models/digits/digits.onnx")


@pytest.fixture(scope="session")
def images():
    return np.load(TOP / "models/digits/test_images.npy")


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), opset=20, ir=10, name="graph"):
    """Bytes of a model of these nodes."""
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir,
                             producer_name="tests").SerializeToString()


def identity(dtype, shape):
    """A model whose output y is its input x, computed (Identity of Concat), so that memory is not passed through."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [info("x", dtype, shape)], [info("y", dtype, shape)], opset=23, ir=11)


def linear():
    """y = x w for x of [N, 4]."""
    w = onnx.numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "w")
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", TensorProto.FLOAT, ["N", 4])],
                 [info("y", TensorProto.FLOAT, ["N", 3])], [w])
