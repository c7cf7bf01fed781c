# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml: support vectors, maps, tokens, transforms of scores."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from contrib_cases.common import ML, case, files, normal, rng


def svm():
    x, flat = normal(6, 3), lambda *shape, **k: normal(*shape, **k).reshape(-1).tolist()
    params = [0.3, 0.5, 2.0]
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        case(f"svr_{kernel.lower()}", "SVMRegressor", [x], domain=ML, coefficients=flat(4), support_vectors=flat(4, 3), n_supports=4, rho=[0.25],
             kernel_type=kernel, kernel_params=params)
        case(f"svc_{kernel.lower()}", "SVMClassifier", [x], outputs=2, domain=ML, coefficients=flat(2, 6), support_vectors=flat(6, 3),
             vectors_per_class=[2, 3, 1], rho=flat(3), kernel_type=kernel, kernel_params=params, classlabels_ints=[7, 8, 9])
    case("svr_features", "SVMRegressor", [x], domain=ML, coefficients=flat(3), rho=[0.25], kernel_type="LINEAR", kernel_params=params)
    case("svr_one_class", "SVMRegressor", [x], domain=ML, coefficients=flat(4), support_vectors=flat(4, 3), n_supports=4, rho=[-0.1], one_class=1,
         kernel_type="RBF", kernel_params=params)
    two = dict(coefficients=flat(5), support_vectors=flat(5, 3), vectors_per_class=[2, 3], rho=[0.1], kernel_type="RBF", kernel_params=params)
    case("svc_two", "SVMClassifier", [x], outputs=2, domain=ML, classlabels_strings=["no", "yes"], **two)
    case("svc_two_probabilities", "SVMClassifier", [x], outputs=2, domain=ML, classlabels_ints=[0, 1], prob_a=[-1.5], prob_b=[0.2], **two)


def dictionary(values, keys, dtype):
    """A MapProto, and its type."""
    proto = onnx.MapProto(key_type=keys)
    getattr(proto, "string_keys" if keys == TensorProto.STRING else "keys").extend(k.encode() if keys == TensorProto.STRING else k for k in values)
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    proto.values.tensor_values.extend(numpy_helper.from_array(np.array(v, helper.tensor_dtype_to_np_dtype(dtype))) for v in values.values())
    return proto, helper.make_map_type_proto(keys, helper.make_tensor_type_proto(dtype, []))


def sequence(*maps):
    proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
    proto.map_values.extend(m for m, _ in maps)
    return proto, helper.make_sequence_type_proto(maps[0][1])


def array(value, dtype):
    return numpy_helper.from_array(np.array(value, helper.tensor_dtype_to_np_dtype(dtype))), helper.make_tensor_type_proto(dtype, None)


def maps():
    """Maps as values, by the standard's text; where that is silent (the rank of a dictionary's vector, the order of CastMap), as ONNX Runtime has it."""
    text, whole, real = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT

    def case(name, op, x, y, **attrs):
        node = helper.make_node(op, ["x"], ["y"], name=f"the_{op}", domain=ML, **attrs)
        graph = helper.make_graph([node], name, [helper.make_value_info("x", x[1])], [helper.make_value_info("y", y[1])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)], ir_version=10)
        files[f"{name}/model.onnx"] = model.SerializeToString()
        files[f"{name}/data.json"] = json.dumps({"rtol": 1e-6, "atol": 0}).encode()
        for which, value in (("input", x), ("output", y)):
            files[f"{name}/test_data_set_0/{which}_0.pb"] = value[0].SerializeToString()

    case("zip_map_strings", "ZipMap", array([[1, 2], [3, 4]], real),
         sequence(dictionary({"b": 1, "a": 2}, text, real), dictionary({"b": 3, "a": 4}, text, real)), classlabels_strings=["b", "a"])
    case("zip_map_ints", "ZipMap", array([1, 2], real), sequence(dictionary({7: 1, -3: 2}, whole, real)), classlabels_int64s=[7, -3])
    case("dict_vectorizer", "DictVectorizer", dictionary({"a": 1, "c": 3}, text, real), array([[3, 0, 1, 1]], real),
         string_vocabulary=["c", "b", "a", "a"])
    case("dict_vectorizer_text", "DictVectorizer", dictionary({1: "u", 7: "v"}, whole, text), array([["v", "", "u"]], text), int64_vocabulary=[7, 2, 1])
    case("cast_map", "CastMap", dictionary({3: 1.5, 1: -2.5, 9: 1e10}, whole, real), array([[-2.5, 1.5, 1e10]], real))
    case("cast_map_sparse", "CastMap", dictionary({3: 1.5, 1: -2.5}, whole, real), array([[0, -2.5, 0, 1.5, 0]], real), map_form="SPARSE", max_map=5)
    case("cast_map_whole", "CastMap", dictionary({3: 1.5, 1: -2.5}, whole, real), array([[-2, 1]], whole), cast_to="TO_INT64")
    case("cast_map_text", "CastMap", dictionary({3: "1.5", 1: "-2.5"}, whole, text), array([[-2.5, 1.5]], real))
    pairs = dict(cats_strings=["x", "y"], cats_int64s=[5, 6])
    case("category", "CategoryMapper", array(["x", "q", "y"], text), array([5, -1, 6], whole), **pairs)
    case("category_back", "CategoryMapper", array([6, 9], whole), array(["y", "none"], text), default_string="none", **pairs)


def probabilities():
    for classes in (3, 5):
        pairs, vectors = classes * (classes - 1) // 2, 2 * classes
        case(f"svc_probabilities_{classes}", "SVMClassifier", [normal(20, 3)], outputs=2, domain=ML, classlabels_ints=list(range(classes)), kernel_type="RBF",
             kernel_params=[0.3, 0.0, 3.0], coefficients=normal((classes - 1) * vectors).tolist(), support_vectors=normal(vectors * 3).tolist(),
             vectors_per_class=[2] * classes, rho=normal(pairs).tolist(), prob_a=(-1 - rng.random(pairs)).tolist(), prob_b=normal(pairs).tolist())


def transforms():
    """post_transform of ai.onnx.ml: of several scores, each; a single score of two classes."""
    x, flat = normal(6, 3), lambda *shape: normal(*shape).reshape(-1).tolist()
    trees = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0], nodes_values=[0.1, 0.0, 0.0],
                 nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
    weights = lambda kind, ids: {f"{kind}_treeids": [0] * 2 * len(ids), f"{kind}_nodeids": [1] * len(ids) + [2] * len(ids), f"{kind}_ids": list(ids) * 2,
                                 f"{kind}_weights": (0.1 + rng.random(2 * len(ids)) / 2).tolist()}
    three = dict(classlabels_int64s=[4, 5, 6], **weights("class", [0, 1, 2]))
    one = dict(classlabels_int64s=[0, 1], **{k: v if k != "class_weights" else [0.8, -0.7] for k, v in weights("class", [0]).items()})
    for how in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        low = how.lower()
        linear = dict(coefficients=(np.abs(normal(9)) / 20).tolist(), intercepts=[0.4, 0.5, 0.6], post_transform=how)
        case(f"linear_classifier_{low}", "LinearClassifier", [np.abs(x)], outputs=2, domain=ML, classlabels_ints=[1, 2, 3], **linear)
        case(f"linear_regressor_{low}", "LinearRegressor", [np.abs(x)], domain=ML, targets=3, **linear)
        case(f"trees_{low}", "TreeEnsembleClassifier", [x], outputs=2, domain=ML, post_transform=how, **trees, **three)
        case(f"trees_regressor_{low}", "TreeEnsembleRegressor", [x], domain=ML, post_transform=how, n_targets=2, **trees, **weights("target", [0, 1]))
        case(f"svc_three_{low}", "SVMClassifier", [x], outputs=2, domain=ML, coefficients=flat(2, 6), support_vectors=flat(6, 3), vectors_per_class=[2, 3, 1],
             rho=flat(3), kernel_type="LINEAR", kernel_params=[0.3, 0.5, 2.0], classlabels_ints=[7, 8, 9], post_transform=how, prob_a=[-1.0, -2.0, -1.5],
             prob_b=flat(3))
        if how != "PROBIT":  # ONNX Runtime writes one of the two scores
            case(f"trees_single_{low}", "TreeEnsembleClassifier", [x], outputs=2, domain=ML, post_transform=how, **trees, **one)
            case(f"svc_single_{low}", "SVMClassifier", [x], outputs=2, domain=ML, classlabels_strings=["no", "yes"], coefficients=[-0.5, 1.0, 0.3, -0.4, 0.2],
                 support_vectors=flat(5, 3), vectors_per_class=[2, 3], rho=[0.1], kernel_type="RBF", kernel_params=[0.3, 0.5, 2.0], post_transform=how)
    zero = normal(2, 3)
    zero[0] = 0  # SOFTMAX_ZERO leaves zeros
    case("softmax_zero_zeros", "LinearClassifier", [zero], outputs=2, domain=ML, classlabels_ints=[1, 2, 3], coefficients=[1.0, 0, 0, 0, 1, 0, 0, 0, 0],
         intercepts=[0.5, 0.0, 0.0], post_transform="SOFTMAX_ZERO")
    case("trees_most_two", "TreeEnsembleRegressor", [x], domain=ML, aggregate_function="MAX", n_targets=2, base_values=[0.25, -1.0], **trees,
         **weights("target", [0, 1]))
    case("trees_least", "TreeEnsembleRegressor", [x], domain=ML, aggregate_function="MIN", n_targets=1, base_values=[0.25], **trees, **weights("target", [0]))
