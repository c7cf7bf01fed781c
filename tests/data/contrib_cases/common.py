# SPDX-License-Identifier: Apache-2.0
"""What the cases share: random inputs, and case(), which makes a model of one node with what ONNX Runtime or a reference computes."""
import json

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
ML = "ai.onnx.ml"
rng = np.random.default_rng(7)
files = {}


def normal(*shape, dtype=np.float32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def ints(low, high, *shape, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


class C:
    """A constant: an initializer instead of an input. bits: packed, of a type that NumPy lacks."""

    def __init__(self, value, tensor=None):
        self.value, self.tensor = np.asarray(value), tensor


def value_of(x):
    return x.value if isinstance(x, C) else x


def case(name, op, inputs, outputs=1, reference=None, float_output=None, domain=MS, onnx_opset=21, ml_opset=3, rtol=1e-3, atol=1e-5, compared=None, **attrs):
    """inputs: arrays and scalars; C for constants; None where left out. outputs: how many, or which (a list of bools). compared: how many of them are
    the model's (None: all)."""
    inputs = [np.asarray(x) if isinstance(x, np.generic) else x for x in inputs]
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    out_names = [f"y{i}" if w else "" for i, w in enumerate(wanted)]
    graph_inputs, initializers, feeds = [], [], {}
    for n, x in zip(names, inputs):
        if x is None:
            continue
        if isinstance(x, C):
            tensor = x.tensor or numpy_helper.from_array(x.value)
            tensor.name = n
            initializers.append(tensor)
        else:
            graph_inputs.append(helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
            feeds[n] = x
    node = helper.make_node(op, names, out_names, name=f"the_{op}", domain=domain, **attrs)
    graph_outputs = [helper.make_empty_tensor_value_info(o) if i != float_output else helper.make_tensor_value_info(o, TensorProto.FLOAT, None)
                     for i, o in enumerate(out_names[:compared]) if o]
    graph = helper.make_graph([node], name, graph_inputs, graph_outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", onnx_opset), helper.make_opsetid(MS, 1), helper.make_opsetid(ML, ml_opset)], ir_version=10)
    if reference is None:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, feeds)
    else:
        results = reference(*[value_of(x) for x in inputs])
        results = list(results) if isinstance(results, tuple) else [results]
    for o, r in zip(model.graph.output, results):
        o.CopyFrom(helper.make_tensor_value_info(o.name, helper.np_dtype_to_tensor_dtype(r.dtype), [None] * r.ndim))
    for i in model.graph.input:  # a batch of any size
        if len(i.type.tensor_type.shape.dim) > 1:
            dim = i.type.tensor_type.shape.dim[0]
            dim.dim_param = f"n{dim.dim_value}"
    files[f"{name}/model.onnx"] = model.SerializeToString()
    files[f"{name}/data.json"] = json.dumps({"rtol": rtol, "atol": atol}).encode()
    for i, x in enumerate(feeds.values()):
        files[f"{name}/test_data_set_0/input_{i}.pb"] = numpy_helper.from_array(x).SerializeToString()
    for i, r in enumerate(results):
        files[f"{name}/test_data_set_0/output_{i}.pb"] = numpy_helper.from_array(r).SerializeToString()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf_gelu(x):
    erf = np.vectorize(__import__("math").erf)
    return (0.5 * x * (1 + erf(x / np.sqrt(2)))).astype(x.dtype)


def softmax(x, axis=-1):
    p = np.exp(x - x.max(axis, keepdims=True))
    return p / p.sum(axis, keepdims=True)
