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


ML = "ai.onnx.ml"


def model(nodes, inputs, outputs, initializers=(), opset=20, ir=10, name="graph"):
    """Bytes of a model of these nodes."""
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)], ir_version=ir,
                             producer_name="tests").SerializeToString()


def identity(dtype, shape):
    """A model whose output y is its input x, computed (Identity of Concat), so that memory is not passed through."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [info("x", dtype, shape)], [info("y", dtype, shape)], opset=23, ir=11)


def linear():
    """y = x w for x of [N, 4]."""
    w = onnx.numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "w")
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", TensorProto.FLOAT, ["N", 4])],
                 [info("y", TensorProto.FLOAT, ["N", 3])], [w])


def dictionary(name, key, value):
    """A map from keys to scalars; the package onnx makes no such type."""
    kind = onnx.TypeProto()
    kind.map_type.key_type = key
    kind.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(value, []))
    return helper.make_value_info(name, kind)


def zip_map(labels):
    """y: a sequence of maps, from labels to the columns of each row of x."""
    names = {"classlabels_int64s" if isinstance(labels[0], int) else "classlabels_strings": labels}
    row = dictionary("y", TensorProto.INT64 if isinstance(labels[0], int) else TensorProto.STRING, TensorProto.FLOAT)
    return model([helper.make_node("ZipMap", ["x"], ["y"], domain=ML, **names)], [info("x", TensorProto.FLOAT, ["N", len(labels)])],
                 [helper.make_value_info("y", helper.make_sequence_type_proto(row.type))])


def told():
    """linear(), with all that a model may say of itself."""
    made = onnx.load_from_string(linear())
    made.producer_version, made.domain, made.doc_string, made.model_version = "1.2", "org.example", "first line\nsecond", 7
    made.graph.name, made.graph.doc_string = "products", "of matrices"
    helper.set_model_props(made, {"author": "Ada", "note": "caf\u00e9"})
    return made.SerializeToString()


def endless():
    """A Loop of as many trips as its input says: y counts them."""
    body = helper.make_graph([helper.make_node("Add", ["before", "one"], ["after"]), helper.make_node("Identity", ["go_in"], ["go"])], "body",
                             [info("trip", TensorProto.INT64, []), info("go_in", TensorProto.BOOL, []), info("before", TensorProto.INT64, [])],
                             [info("go", TensorProto.BOOL, []), info("after", TensorProto.INT64, [])])
    constants = [helper.make_tensor("one", TensorProto.INT64, [], [1]), helper.make_tensor("zero", TensorProto.INT64, [], [0])]
    return model([helper.make_node("Loop", ["n", "", "zero"], ["y"], body=body)], [info("n", TensorProto.INT64, [])],
                 [info("y", TensorProto.INT64, [])], constants)
