#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators of com.microsoft and ai.onnx.ml, and of forms that the official cases lack, one node each, with what ONNX Runtime's CPU kernels make of random inputs, or, where it has none,
NumPy. Writes contrib.tar.xz beside itself: contrib/NAME/{model.onnx,data.json,test_data_set_0/*.pb}.

usage: contrib.py    (pip install onnxruntime onnx numpy)
"""
import io
import json
import pathlib
import tarfile

import numpy as np
import onnx
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


def activations():
    x, b = normal(2, 3, 8), normal(8)
    case("gelu", "Gelu", [x])
    case("bias_gelu", "BiasGelu", [x, b])
    case("fast_gelu", "FastGelu", [x])
    case("fast_gelu_bias", "FastGelu", [x, b])
    case("quick_gelu", "QuickGelu", [x])
    case("quick_gelu_alpha", "QuickGelu", [x], alpha=0.7)
    case("gemm_fast_gelu", "GemmFastGelu", [x, normal(8, 4), normal(4)],
         reference=lambda x, w, b: (lambda y: (0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))).astype(x.dtype))(x @ w + b))
    case("bias_split_gelu", "BiasSplitGelu", [x, b],
         reference=lambda x, b: (x + b)[..., :4] * erf_gelu((x + b)[..., 4:]))
    case("bias_add", "BiasAdd", [x, b, normal(2, 3, 8)], reference=lambda x, b, s: x + b + s)
    case("bias_dropout", "BiasDropout", [x, b, normal(2, 3, 8)], outputs=[True, True],
         reference=lambda x, b, r: (x + b + r, np.ones(x.shape, bool)))


def group_norm(x, gamma, beta, groups, eps=1e-5):
    n, h, w, c = x.shape
    g = x.reshape(n, h * w, groups, c // groups)
    mean, var = g.mean((1, 3), keepdims=True), g.var((1, 3), keepdims=True)
    return (((g - mean) / np.sqrt(var + eps)).reshape(x.shape) * gamma + beta).astype(x.dtype)


def norms():
    x, s, g, b, bias = normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)
    case("simplified", "SimplifiedLayerNormalization", [x, g], domain="")
    case("simplified_axis", "SimplifiedLayerNormalization", [x, normal(3, 8)], domain="", axis=1, epsilon=0.1)
    case("skip", "SkipLayerNormalization", [x, s, g])
    case("skip_all", "SkipLayerNormalization", [x, s, g, b, bias], outputs=[True, False, False, True], epsilon=0.01)
    case("skip_no_beta", "SkipLayerNormalization", [x, s, g, None, bias])
    case("skip_broadcast", "SkipLayerNormalization", [x, normal(1, 3, 8), g, b])
    case("skip_broadcast_2d", "SkipLayerNormalization", [x, normal(3, 8), g, b])
    case("skip_simplified", "SkipSimplifiedLayerNormalization", [x, s, g])
    case("skip_simplified_all", "SkipSimplifiedLayerNormalization", [x, s, g, bias], outputs=[True, False, False, True], epsilon=0.01)
    ids, segments = ints(0, 10, 2, 4), ints(0, 2, 2, 4)
    tables = [C(normal(10, 8)), C(normal(6, 8))]
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    case("embed", "EmbedLayerNormalization", [ids, segments, *tables, C(normal(2, 8)), g, b], outputs=[True, False])
    case("embed_no_segments", "EmbedLayerNormalization", [ids, None, *tables, None, g, b], outputs=[True, True])
    case("embed_all", "EmbedLayerNormalization", [ids, segments, *tables, C(normal(2, 8)), g, b, mask, ints(0, 6, 2, 4)],
         outputs=[True, True, True], epsilon=0.01)
    image, scale, shift = normal(2, 3, 4, 8), normal(8), normal(8)
    case("group_norm", "GroupNorm", [image, scale, shift], groups=2, activation=0,
         reference=lambda x, g, b: group_norm(x, g, b, 2))
    case("group_norm_silu", "GroupNorm", [image, scale, shift], groups=4, activation=1, epsilon=0.1,
         reference=lambda x, g, b: (lambda y: y * sigmoid(y))(group_norm(x, g, b, 4, 0.1)))
    case("group_norm_first", "GroupNorm", [normal(2, 8, 3, 4), scale, shift], groups=2, activation=0, channels_last=0,
         reference=lambda x, g, b: group_norm(x.transpose(0, 2, 3, 1), g, b, 2).transpose(0, 3, 1, 2))
    case("skip_group_norm", "SkipGroupNorm", [image, scale, shift, normal(2, 8), normal(8)], outputs=2, groups=2, activation=0,
         reference=lambda x, g, b, s, c: (group_norm(x + s[:, None, None] + c, g, b, 2), x + s[:, None, None] + c))


def products():
    case("fused_matmul", "FusedMatMul", [normal(2, 3, 4), normal(2, 4, 5)], alpha=0.5)
    case("fused_matmul_trans", "FusedMatMul", [normal(2, 4, 3), normal(2, 5, 4)], transA=1, transB=1)
    case("fused_matmul_batch", "FusedMatMul", [normal(3, 2, 6, 4), normal(4, 2, 6, 5)], transBatchA=1, transBatchB=1)
    case("fused_matmul_batch_trans", "FusedMatMul", [normal(4, 2, 3), normal(2, 4, 5)], transBatchA=1, transA=1)
    case("fused_matmul_activation", "FusedMatMulActivation", [normal(3, 4), normal(4, 5)], activation="LeakyRelu", activation_alpha=0.3, alpha=2.0,
         reference=lambda a, b: np.where(a @ b > 0, 2 * (a @ b), 0.6 * (a @ b)).astype(np.float32))
    case("fused_gemm_relu", "FusedGemm", [normal(3, 4), normal(4, 5), normal(5)], activation="Relu", alpha=0.5, beta=2.0)
    case("fused_gemm_leaky", "FusedGemm", [normal(4, 3), normal(5, 4)], activation="LeakyRelu", activation_alpha=0.3, transA=1, transB=1)
    case("fused_conv", "FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)], activation="Relu", pads=[1, 1, 1, 1])
    case("fused_conv_clip", "FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)], activation="Clip",
         activation_params=[-0.5, 0.75], strides=[2, 2])
    case("fused_conv_sum", "FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4), normal(1, 4, 4, 4)], activation="HardSigmoid",
         activation_params=[0.3, 0.4])
    w = normal(5, 3, 3, 2)  # [out, height, width, in]

    def nhwc(x, w, b):
        y = np.zeros((1, 4, 4, 5), np.float32)
        for i in range(4):
            for k in range(4):
                y[0, i, k] = np.einsum("hwc,ohwc->o", x[0, i:i + 3, k:k + 3], w) + b
        return y

    case("nhwc_conv", "NhwcConv", [normal(1, 6, 6, 2), C(w), normal(5)], reference=nhwc, rtol=1e-3)


def multi_head():
    b, s, t, h, d, dv = 2, 3, 5, 2, 4, 6
    q, k, v = normal(b, s, h * d), normal(b, t, h * d), normal(b, t, h * dv)
    bias = normal(h * (2 * d + dv))
    case("mha", "MultiHeadAttention", [q, k, v], num_heads=h)
    case("mha_bias", "MultiHeadAttention", [q, k, v, bias], num_heads=h, scale=0.3)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    case("mha_mask_2d", "MultiHeadAttention", [q, k, v, bias, mask], num_heads=h)
    case("mha_mask_filter", "MultiHeadAttention", [q, k, v, None, mask], num_heads=h, mask_filter_value=-1.5)
    case("mha_mask_3d", "MultiHeadAttention", [q, k, v, None, ints(0, 2, b, s, t)], num_heads=h)
    case("mha_mask_1d", "MultiHeadAttention", [q, k, v, None, np.array([3, 5], np.int32)], num_heads=h)
    case("mha_attention_bias", "MultiHeadAttention", [q, k, v, None, None, normal(1, h, s, t)], num_heads=h)
    case("mha_mask_and_bias", "MultiHeadAttention", [q, k, v, None, mask, normal(b, h, s, t)], num_heads=h)
    x = normal(b, s, h * d)
    case("mha_unidirectional", "MultiHeadAttention", [x, normal(b, s, h * d), normal(b, s, h * d)], num_heads=h, unidirectional=1)
    past = [normal(b, h, 4, d), normal(b, h, 4, d)]
    case("mha_past", "MultiHeadAttention", [x, normal(b, s, h * d), normal(b, s, h * d), None, None, None, *past], outputs=3, num_heads=h,
         unidirectional=1)
    case("mha_present", "MultiHeadAttention", [x, normal(b, s, h * d), normal(b, s, h * d), normal(3 * h * d)], outputs=3, num_heads=h)
    case("mha_past_mask", "MultiHeadAttention",
         [x, normal(b, s, h * d), normal(b, s, h * d), None, np.array([[1] * 6 + [0], [0] * 2 + [1] * 5], np.int32), None, *past], outputs=3,
         num_heads=h)
    case("mha_packed_qkv", "MultiHeadAttention", [normal(b, s, h, 3, d)], num_heads=h,
         reference=lambda p: softmax_attention(*(p[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))))
    case("mha_packed_kv", "MultiHeadAttention", [q, normal(b, t, h, 2, d)], num_heads=h,
         reference=lambda q, p: softmax_attention(q.reshape(b, s, h, d).transpose(0, 2, 1, 3),
                                                  *(p[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))))
    case("mha_cross_cache", "MultiHeadAttention", [q, normal(b, h, t, d), normal(b, h, t, d)], num_heads=h)
    case("mha_qk", "MultiHeadAttention", [q, k, v], outputs=[True, False, False, True], float_output=3, num_heads=h)
    one = normal(b, 1, h * d)
    heads = lambda x: x.reshape(b, -1, h, d).transpose(0, 2, 1, 3)

    def decoder(q, k, v, pk, pv):
        keys, values = np.concatenate([pk, heads(k)], 2), np.concatenate([pv, heads(v)], 2)
        return softmax_attention(heads(q), keys, values), keys, values

    case("decoder_self", "DecoderMaskedMultiHeadAttention", [one, normal(b, 1, h * d), normal(b, 1, h * d), None, None, *past], outputs=3,
         num_heads=h, reference=lambda q, k, v, m, a, pk, pv: decoder(q, k, v, pk, pv))
    room = [np.concatenate([p, np.zeros((b, h, 4, d), np.float32)], 2) for p in past]
    own = [one, normal(b, 1, h * d), normal(b, 1, h * d)]
    length = np.array([4], np.int32)
    case("decoder_room", "DecoderMaskedMultiHeadAttention", [*own, None, None, *room, length], outputs=3, num_heads=h,
         past_present_share_buffer=1)
    case("decoder_room_mask", "DecoderMaskedMultiHeadAttention",
         [*own, np.array([[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]], np.int32), None, *room, length, None, None, normal(3 * h * d)], outputs=3, num_heads=h,
         past_present_share_buffer=1)
    case("decoder_beams", "DecoderMaskedMultiHeadAttention",
         [*own, None, None, *room, length, np.array([2], np.int32), ints(0, 2, 1, 2, 8)], outputs=3, num_heads=h, past_present_share_buffer=1)
    case("mha_room", "MultiHeadAttention", [*own, None, None, None, *room, length], outputs=3, num_heads=h)
    case("decoder_cross", "DecoderMaskedMultiHeadAttention", [one, normal(b, h, t, d), normal(b, h, t, d)], num_heads=h,
         reference=lambda q, k, v: softmax_attention(heads(q), k, v))


def softmax_attention(q, k, v, bias=0):
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + bias
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = (p / p.sum(-1, keepdims=True)) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype(q.dtype)


def attention():
    b, s, din, h, d = 2, 4, 6, 2, 4
    x, w, bias = normal(b, s, din), C(normal(din, 3 * h * d)), C(normal(3 * h * d))
    case("attention", "Attention", [x, w, bias], num_heads=h)
    case("attention_scale", "Attention", [x, w, bias], num_heads=h, scale=0.2)
    case("attention_no_bias", "Attention", [x, w], num_heads=h, reference=lambda x, w: softmax_attention(
        *(p.reshape(b, s, h, d).transpose(0, 2, 1, 3) for p in np.split(x @ w, 3, 2))))
    case("attention_causal", "Attention", [x, w, bias], num_heads=h, unidirectional=1)
    case("attention_lengths", "Attention", [x, w, bias, np.array([2, 4], np.int32)], num_heads=h)
    case("attention_ends_and_starts", "Attention", [x, w, bias, np.array([4, 3, 1, 0], np.int32)], num_heads=h)
    mask = np.array([[0, 1, 1, 1], [1, 1, 0, 0]], np.int32)
    case("attention_mask_2d", "Attention", [x, w, bias, mask], num_heads=h)
    case("attention_mask_2d_causal", "Attention", [x, w, bias, mask], num_heads=h, unidirectional=1)
    case("attention_mask_3d", "Attention", [x, w, bias, ints(0, 2, b, s, s)], num_heads=h)
    case("attention_mask_4d", "Attention", [x, w, bias, np.tril(np.ones((b, 1, 8, 8), np.int32))], num_heads=h,
         reference=lambda x, w, c, m: softmax_attention(
             *(p.reshape(b, s, h, d).transpose(0, 2, 1, 3) for p in np.split(x @ w + c, 3, 2)),
             np.where(m[:, :, :s, :s] > 0, 0, -10000)))
    case("attention_mask_dummy", "Attention", [x, w, bias, C(np.ones((b, 1), np.int32))], num_heads=h)
    case("attention_bias", "Attention", [x, w, bias, None, None, normal(1, h, s, s)], num_heads=h)
    case("attention_sizes", "Attention", [x, C(normal(din, 2 * h * d + h * 3)), C(normal(2 * h * d + h * 3))], num_heads=h,
         qkv_hidden_sizes=[h * d, h * d, h * 3])
    past = normal(2, b, h, 3, d)
    case("attention_past", "Attention", [x, w, bias, None, past], outputs=2, num_heads=h, unidirectional=1)
    case("attention_past_mask", "Attention", [x, w, bias, np.array([[0] + [1] * 6, [1] * 7], np.int32), past], outputs=2, num_heads=h,
         unidirectional=1)

    def room(x, w, c, _, p, __, n):
        q, k, v = (y.reshape(b, 1, h, d).transpose(0, 2, 1, 3) for y in np.split(x @ w + c, 3, 2))
        cache = p.copy()
        cache[0, :, :, 3:4], cache[1, :, :, 3:4] = k, v
        return softmax_attention(q, cache[0, :, :, :4], cache[1, :, :, :4]), cache

    case("attention_room", "Attention",
         [normal(b, 1, din), w, bias, None, np.concatenate([past, np.zeros((2, b, h, 2, d), np.float32)], 3), None, np.array([3], np.int32)], outputs=2,
         num_heads=h, unidirectional=1, past_present_share_buffer=1, reference=room)
    case("decoder_self_packed", "DecoderMaskedSelfAttention",
         [normal(b, 1, din), w, bias, None, np.concatenate([past, np.zeros((2, b, h, 2, d), np.float32)], 3), None, np.array([3], np.int32)], outputs=2,
         num_heads=h, past_present_share_buffer=1, reference=room)
    case("attention_present", "Attention", [x, w, bias], outputs=2, num_heads=h)
    qx, qw = ints(0, 256, b, s, din, dtype=np.uint8), ints(-127, 128, din, 3 * h * d, dtype=np.int8)
    scales = [np.float32(0.02), C(np.float32(0.01))]
    case("qattention", "QAttention", [qx, C(qw), bias, *scales, None, np.uint8(128), C(np.int8(0))], num_heads=h)
    case("qattention_mask", "QAttention", [qx, C(qw), bias, *scales, mask, np.uint8(120), C(np.int8(3))], num_heads=h, unidirectional=1)


def caches(length, half):
    angles = np.outer(np.arange(length), 1 / 100 ** (np.arange(half) / half))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def group_query():
    b, h, g, d = 2, 4, 2, 16
    cos, sin = (C(c) for c in caches(32, d // 2))

    def gqa(name, s, past, lens, packed=False, dim=None, extra=(), outputs=3, **attrs):
        q = normal(b, s, (h + 2 * g) * d if packed else h * d)
        kv = [None, None] if packed else [normal(b, s, g * d), normal(b, s, g * d)]
        caches = [normal(b, g, past, d), normal(b, g, past, d)] if past is not None else [None, None]
        for row in range(b):  # what is behind a row's end is not said to stay
            for cache in caches:
                if cache is not None:
                    cache[row, :, lens[row] - s:] = 0
        total = np.array(max(lens), np.int32)
        rotary = [cos, sin] if attrs.get("do_rotary") else [None, None]
        case(name, "GroupQueryAttention", [q, *kv, *caches, np.array(lens, np.int32) - 1, total, *rotary, *extra], outputs=outputs, num_heads=h,
             kv_num_heads=g, **attrs)

    gqa("gqa_first", 5, None, [5, 5])
    gqa("gqa_first_rotary", 5, None, [5, 5], do_rotary=1)
    gqa("gqa_first_packed", 5, None, [5, 5], packed=True, do_rotary=1, rotary_interleaved=1)
    gqa("gqa_empty_past", 5, 0, [5, 5], do_rotary=1)
    gqa("gqa_next", 1, 6, [7, 7], do_rotary=1)
    gqa("gqa_next_packed", 1, 6, [7, 7], packed=True, do_rotary=1, scale=0.1)
    gqa("gqa_next_ragged", 1, 6, [7, 4], do_rotary=1)
    gqa("gqa_room", 1, 12, [7, 7], do_rotary=1)
    gqa("gqa_room_ragged", 1, 12, [5, 7])
    gqa("gqa_window", 1, 9, [10, 10], do_rotary=1, local_window_size=4)
    gqa("gqa_first_window", 6, None, [6, 6], local_window_size=2)
    gqa("gqa_softcap", 1, 6, [7, 7], softcap=5.0)
    gqa("gqa_smooth", 1, 6, [7, 7], smooth_softmax=1)
    gqa("gqa_smooth_first", 5, None, [5, 5], smooth_softmax=1)
    gqa("gqa_sink", 1, 6, [7, 7], extra=[None, None, normal(h)])
    gqa("gqa_bias", 1, 6, [7, 7], extra=[None, normal(b, 1, 1, 7)])
    gqa("gqa_bias_first", 4, None, [4, 4], extra=[None, normal(1, h, 4, 4)])
    gqa("gqa_positions", 4, None, [4, 4], do_rotary=1, extra=[np.tile(np.arange(4), (b, 1)).astype(np.int64)])
    for output in (1, 2):
        gqa(f"gqa_products_{output}", 1, 6, [7, 7], outputs=4, qk_output=output)
        gqa(f"gqa_products_first_{output}", 4, None, [4, 4], outputs=4, qk_output=output, softcap=2.0, local_window_size=3)
    gqa("gqa_products_sink", 1, 6, [7, 7], outputs=4, qk_output=2, smooth_softmax=1)
    for kind, scale in (("tensor", lambda: np.array([0.02], np.float32)), ("channel", lambda: np.abs(normal(1, g, 1, d)) / 50 + 0.01)):
        types = dict(k_quant_type=f"PER_{kind.upper()}", v_quant_type=f"PER_{kind.upper()}", kv_cache_bit_width=8)
        for name, past in (("", 6), ("_room", 9), ("_first", 0)):
            q, k, v = normal(b, 1 if past else 3, h * d), normal(b, 1 if past else 3, g * d), normal(b, 1 if past else 3, g * d)
            old = [ints(-127, 128, b, g, past, d, dtype=np.int8) for _ in range(2)]
            for cache in old:
                cache[:, :, 6:] = 0
            total = 7 if past else 3
            case(f"gqa_int8_{kind}{name}", "GroupQueryAttention",
                 [q, k, v, *old, np.full(b, total - 1, np.int32), np.array(total, np.int32), cos, sin, None, None, None, scale(), scale()], outputs=3,
                 num_heads=h, kv_num_heads=g, do_rotary=1, **types)
    q, k, v = normal(1, 3, h * d), normal(1, 3, g * d), normal(1, 3, g * d)
    case("gqa_continued", "GroupQueryAttention",
         [q, k, v, normal(1, g, 6, d), normal(1, g, 6, d), np.array([8], np.int32), np.array(9, np.int32), cos, sin], outputs=3, num_heads=h,
         kv_num_heads=g, do_rotary=1)
    part = [C(c) for c in caches(32, 4)]
    wide = 2 * d
    case("gqa_partial_rotary", "GroupQueryAttention",
         [normal(b, 1, h * wide), normal(b, 1, g * wide), normal(b, 1, g * wide), normal(b, g, 6, wide), normal(b, g, 6, wide),
          np.array([6, 6], np.int32), np.array(7, np.int32), cos, sin], outputs=3, num_heads=h, kv_num_heads=g, do_rotary=1)
    ids = np.array([[3, 4, 5], [0, 1, 2]], np.int64)
    case("rotary_3d", "RotaryEmbedding", [normal(2, 3, 2 * d), ids, cos, sin])
    case("rotary_offset", "RotaryEmbedding", [normal(2, 3, 2 * d), np.array([4], np.int64), cos, sin], interleaved=1)
    case("rotary_4d", "RotaryEmbedding", [normal(2, h, 3, d), ids, cos, sin])
    case("rotary_partial", "RotaryEmbedding", [normal(2, 3, 2 * d), ids, *part], num_heads=2, rotary_embedding_dim=8)


def windowed_caches():
    """Caches that hold a window: GroupQueryAttention with sliding_window_cache. What is behind the rows held is not said, so not compared."""
    h, g, d = 4, 2, 16
    cos, sin = (C(c) for c in caches(64, d // 2))

    def windowed(name, s, capacity, totals, window=6, full=True, extra=(), **attrs):
        b = len(totals)
        case(f"gqa_cache_{name}", "GroupQueryAttention",
             [normal(b, s, h * d), normal(b, s, g * d), normal(b, s, g * d), normal(b, g, capacity, d), normal(b, g, capacity, d),
              np.array(totals, np.int32) - 1, np.array(max(totals), np.int32), cos, sin, *extra], outputs=3, compared=None if full else 1,
             num_heads=h, kv_num_heads=g, do_rotary=1, local_window_size=window, sliding_window_cache=1, **attrs)

    windowed("first", 6, 6, [6, 6])
    windowed("first_short", 3, 6, [3, 3], full=False)
    windowed("first_long", 15, 6, [15, 15])
    windowed("next", 1, 6, [7, 7])
    windowed("next_ragged", 1, 6, [20, 7])
    windowed("next_short", 1, 6, [5, 3], full=False)
    windowed("chunk", 4, 6, [14])
    windowed("long_chunk", 11, 6, [30])
    for total in range(9, 14):  # room for ten: dropped are five at a time
        windowed(f"room_{total}", 1, 10, [total, total], full=total == 10)
    windowed("room_chunk", 7, 10, [24], full=False)
    windowed("sink", 1, 6, [9, 8], extra=[None, None, normal(h)])


def pack(q, bits):
    """uint8 numbers, packed along the last axis, the first in the low bits."""
    each = 8 // bits
    rest = -q.shape[-1] % each
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, rest)]).reshape(*q.shape[:-1], -1, each)
    return (q.astype(np.uint32) << (np.arange(each) * bits)).sum(-1).astype(np.uint8)


def tensor4(q, dtype):
    return helper.make_tensor("", dtype, q.shape, pack(q.reshape(-1), 4).tobytes(), raw=True)


def weights():
    for bits in (4, 8, 2):
        for k, blocks, block in ((32, 2, 16), (40, 3, 16), (64, 1, 64)):
            n = 6
            q = ints(0, 1 << bits, n, blocks, block, dtype=np.uint8)
            b, scale = C(pack(q, bits)), C(normal(n, blocks, scale=0.1))
            zero = C(pack(ints(0, 1 << bits, n, blocks, dtype=np.uint8), bits))
            label = f"{bits}_{k}"
            tolerance = dict(rtol=1e-3, atol=1e-4)

            def product(a, b, s, z=None, g=None, c=0, q=q, bits=bits, k=k, blocks=blocks):
                if z is None:
                    z = np.full((n, blocks), 1 << (bits - 1))
                elif z.dtype == np.uint8:
                    each = 8 // bits
                    z = ((z[..., None] >> (np.arange(each, dtype=np.uint8) * bits)) & ((1 << bits) - 1)).reshape(n, -1)[:, :blocks]
                w = (q - z[..., None].astype(np.float64)) * s.reshape(n, blocks, 1)
                return (a @ w.reshape(n, -1)[:, :k].T + c).astype(np.float32)

            case(f"nbits_{label}", "MatMulNBits", [normal(2, 3, k), b, scale], K=k, N=n, bits=bits, block_size=block, reference=product, **tolerance)
            case(f"nbits_zero_{label}", "MatMulNBits", [normal(3, k), b, scale, zero], K=k, N=n, bits=bits, block_size=block, reference=product,
                 **tolerance)
            case(f"nbits_float_zero_{label}", "MatMulNBits", [normal(3, k), b, scale, C(normal(n, blocks) + 7)], K=k, N=n, bits=bits,
                 block_size=block, reference=product, **tolerance)
            if bits == 4 and k == 40:
                case("nbits_flat", "MatMulNBits", [normal(3, k), b, C(scale.value.reshape(-1)), C(zero.value.reshape(-1)), None, normal(n)], K=k, N=n,
                     bits=bits, block_size=block, **tolerance)
                case("nbits_input", "MatMulNBits", [normal(3, k), b.value, scale.value, zero.value], K=k, N=n, bits=bits, block_size=block, **tolerance)
    q, z = ints(0, 16, 10, 64, dtype=np.uint8), ints(0, 16, 10, 4, dtype=np.uint8)
    scale, at = C(normal(10, 4, scale=0.1)), ints(0, 10, 2, 3, dtype=np.int64)
    for name, dtype in (("uint4", TensorProto.UINT4), ("int4", TensorProto.INT4)):
        case(f"gather_{name}", "GatherBlockQuantized", [C(q, tensor4(q, dtype)), at, scale], block_size=16)
        case(f"gather_zero_{name}", "GatherBlockQuantized", [C(q, tensor4(q, dtype)), at, scale, C(z, tensor4(z, dtype))], block_size=16)
    case("gather_uint8", "GatherBlockQuantized", [C(pack(q, 4)), at, scale], block_size=16, bits=4)
    case("gather_uint8_zero", "GatherBlockQuantized", [C(pack(q, 4)), at, scale, C(pack(z, 4))], block_size=16, bits=4)
    q8 = ints(0, 256, 10, 64, dtype=np.uint8)
    case("gather_8_bits", "GatherBlockQuantized", [C(q8), at, scale], block_size=16, bits=8)


def quantized():
    u8 = lambda *shape: ints(0, 256, *shape, dtype=np.uint8)
    i8 = lambda *shape: ints(-128, 128, *shape, dtype=np.int8)
    f = np.float32
    x = normal(3, 4)
    case("quantize", "QuantizeLinear", [x, f(0.02), np.uint8(128)])
    case("quantize_16", "QuantizeLinear", [x, f(0.001), np.uint16(30000)])
    case("quantize_axis", "QuantizeLinear", [x, np.array([0.02, 0.05, 0.01], f), np.array([1, 2, 3], np.int8)], axis=0)
    case("dequantize", "DequantizeLinear", [u8(3, 4), f(0.02), np.uint8(128)])
    case("dequantize_16", "DequantizeLinear", [ints(0, 65536, 3, 4, dtype=np.uint16), f(0.001), np.uint16(30000)])
    case("dequantize_32", "DequantizeLinear", [ints(-1000, 1000, 3, 4), f(0.02)])
    case("dynamic_matmul", "DynamicQuantizeMatMul", [x, C(i8(4, 5)), C(f(0.02)), C(np.int8(3)), C(normal(5))])
    case("dynamic_matmul_columns", "DynamicQuantizeMatMul", [normal(2, 3, 4), C(i8(4, 5)), C(np.abs(normal(5)) * f(0.02))])
    case("matmul_to_float", "MatMulIntegerToFloat", [u8(3, 4), C(i8(4, 5)), f(0.1), C(f(0.02)), np.uint8(120), C(np.int8(0)), C(normal(5))])
    case("qgemm", "QGemm", [u8(3, 4), f(0.02), np.uint8(128), C(i8(4, 5)), C(f(0.01)), C(np.int8(0)), C(ints(-500, 500, 5)), f(0.02), np.uint8(100)], rtol=0,
         atol=1)
    case("qgemm_float", "QGemm", [u8(3, 4), f(0.02), np.uint8(128), C(i8(5, 4)), C(np.abs(normal(5)) * f(0.01)), C(np.zeros(5, np.int8))],
         transB=1, alpha=0.5)
    step = dict(rtol=0, atol=1)  # ONNX Runtime computes with integers, and rounds halves its way
    a, b, z, c = u8(2, 3, 4), u8(2, 3, 4), (f(0.05), np.uint8(100)), (f(0.07), np.uint8(120))
    out = (f(0.1), np.uint8(110))
    case("qlinear_add", "QLinearAdd", [a, *z, b, *c, *out], **step)
    case("qlinear_add_broadcast", "QLinearAdd", [i8(2, 3, 4), f(0.05), np.int8(-3), i8(4), f(0.04), np.int8(2), f(0.06), np.int8(1)], **step)
    case("qlinear_mul", "QLinearMul", [a, *z, b, *c, *out], **step)
    case("qlinear_sigmoid", "QLinearSigmoid", [a, *z, f(0.004), np.uint8(0)], **step)
    case("qlinear_leaky", "QLinearLeakyRelu", [a, *z, *out], alpha=0.2, **step)
    case("qlinear_mean", "QLinearReduceMean", [a, *z, *z], axes=[1], keepdims=1, reference=lambda a, s, q, t, r: np.clip(
        np.rint((a.astype(f) - q).mean(1, keepdims=True) * s / t) + r, 0, 255).astype(np.uint8))
    case("qlinear_where", "QLinearWhere", [ints(0, 2, 2, 3, 4, dtype=bool), a, *z, b, *c, *out], **step)
    case("qlinear_concat", "QLinearConcat", [*out, a, *z, b, *c], axis=1, **step)
    case("qlinear_softmax", "QLinearSoftmax", [a, *z, f(1 / 256), np.uint8(0)], opset=13, axis=-1, **step)
    case("qlinear_softmax_12", "QLinearSoftmax", [a, *z, f(1 / 256), np.uint8(0)], opset=12, axis=1, **step)
    image = u8(1, 3, 6, 6)
    case("qlinear_pool", "QLinearAveragePool", [image, *z, *z], kernel_shape=[2, 2], strides=[2, 2], **step)
    case("qlinear_pool_last", "QLinearAveragePool", [u8(1, 6, 6, 3), *z, *z], kernel_shape=[2, 2], channels_last=1, **step)
    case("qlinear_global_pool", "QLinearGlobalAveragePool", [image, *z, *z], **step)
    case("qlinear_global_pool_last", "QLinearGlobalAveragePool", [u8(1, 6, 6, 3), *z, *z], channels_last=1, **step)
    case("qlinear_conv_last", "QLinearConv", [u8(1, 6, 6, 2), *z, C(i8(4, 2, 3, 3)), C(f(0.01)), C(np.int8(0)), *out], channels_last=1, **step)
    case("nhwc_max_pool", "NhwcMaxPool", [u8(1, 6, 6, 3)], kernel_shape=[2, 2], strides=[2, 2])


def lstm():
    s, b, i, h = 4, 2, 3, 5
    for name, directions in (("dynamic_lstm", 1), ("dynamic_lstm_both", 2)):
        w, r = ints(-127, 128, directions, i, 4 * h, dtype=np.int8), ints(-127, 128, directions, h, 4 * h, dtype=np.int8)
        scales = np.full(directions, 0.005, np.float32), np.zeros(directions, np.int8)
        case(name, "DynamicQuantizeLSTM", [normal(s, b, i), C(w), C(r), C(normal(directions, 8 * h, scale=0.1)), None, None, None, None,
                                           C(scales[0]), C(scales[1]), C(scales[0]), C(scales[1])], outputs=3, hidden_size=h,
             direction="bidirectional" if directions == 2 else "forward")


def dynamic_lstm_reference(x, w, r, bias, lens, h0, c0, peepholes, w_scale, w_zero, r_scale, r_zero):
    """Of a batch of one. ONNX Runtime reads scales per column of a second direction from elsewhere: its results differ from session to session."""
    def rounded(a):
        low, high = min(a.min(), 0), max(a.max(), 0)
        scale = np.float32((high - low) / 255) or np.float32(1)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        return (np.clip(np.rint(a / scale) + zero, 0, 255) - zero) * scale

    directions, hidden = r.shape[:2]
    y = np.zeros((len(x), directions, 1, hidden), np.float32)
    for d in range(directions):
        weights = [(a[d].astype(np.float32) - zero[d]) * scale[d] for a, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero))]
        state, cell = h0[d], c0[d]
        inputs = rounded(x)[:, 0] @ weights[0] + bias[d, :4 * hidden] + bias[d, 4 * hidden:]
        p_i, p_o, p_f = np.split(peepholes[d], 3)
        for t in range(len(x))[:: -1 if d else 1]:
            i, o, f, c = np.split(inputs[t] + rounded(state)[0] @ weights[1], 4)
            gate = sigmoid(i + p_i * cell[0])
            cell = (sigmoid(f + p_f * cell[0]) * cell[0] + gate * np.tanh(c))[None]
            state = (sigmoid(o + p_o * cell[0]) * np.tanh(cell[0]))[None].astype(np.float32)
            y[t, d] = state
    last = [y[len(x) - 1 if d == 0 else 0, d] for d in range(directions)]
    return y, np.stack(last)


def dynamic_lstms():
    """ONNX Runtime rounds states row by row if it has more than one thread, else those of a batch together: a batch of one is the same."""
    def lstm(name, directions, s=5, i=6, h=9, kind=np.int8, each=False, constant=True, lens=None, **attrs):
        low, high = (-127, 128) if kind == np.int8 else (0, 256)
        give = C if constant else lambda x: x
        w, r = ints(low, high, directions, i, 4 * h, dtype=kind), ints(low, high, directions, h, 4 * h, dtype=kind)
        shape = (directions, 4 * h) if each else (directions,)
        scales = [C(rng.uniform(0.002, 0.008, shape).astype(np.float32)) for _ in range(2)]
        zeros = [C(np.full(directions, 0 if kind == np.int8 else 128, kind)) for _ in range(2)]
        states = [normal(directions, 1, h), normal(directions, 1, h)]
        case(f"dynamic_lstm_{name}", "DynamicQuantizeLSTM",
             [normal(s, 1, i), give(w), give(r), C(normal(directions, 8 * h, scale=0.1)), lens, *states, C(normal(directions, 3 * h)), scales[0], zeros[0], scales[1],
              zeros[1]], **{"outputs": 3, "hidden_size": h, **attrs})

    lstm("states", 1)
    lstm("unsigned", 2, kind=np.uint8, direction="bidirectional")
    lstm("columns", 1, each=True, direction="reverse")
    lstm("columns_both", 2, each=True, direction="bidirectional", outputs=2, reference=dynamic_lstm_reference)
    lstm("lengths", 1, lens=np.array([3], np.int32))
    lstm("not_constant", 1, constant=False)
    lstm("wide", 2, s=7, i=33, h=24, direction="bidirectional")


def tensors():
    case("range", "Range", [np.array([2], np.int64), np.array([9], np.int64), np.array([3], np.int64)])
    case("range_default", "Range", [np.float32(1), np.float32(4)])
    case("trilu", "Trilu", [normal(2, 4, 4), np.int64(1)], upper=0)
    case("unique", "Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3)
    case("expand_dims", "ExpandDims", [normal(2, 3), np.int32(-1)])
    case("pad", "Pad", [normal(2, 3), np.array([[1, 0, 0, 2]], np.int64), np.array([1.5], np.float32)])
    case("pad_reflect", "Pad", [normal(3, 4), np.array([1, 2, 1, 0], np.int64)], mode="reflect")
    case("gather_nd", "GatherND", [normal(2, 3, 4), np.array([[0, 1], [1, 2]], np.int64)])
    case("grid_sample", "GridSample", [normal(1, 2, 4, 4), normal(1, 3, 3, 2, scale=0.5)])
    case("grid_sample_cubic", "GridSample", [normal(1, 2, 4, 4), normal(1, 3, 3, 2, scale=0.5)], mode="bicubic", align_corners=1)
    case("cdist", "CDist", [normal(3, 4), normal(5, 4)], metric="sqeuclidean", rtol=1e-2, atol=1e-4)
    case("cdist_root", "CDist", [normal(3, 4), normal(5, 4)], metric="euclidean", rtol=1e-2, atol=1e-4)
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [-0.3, 0.1, 1.4, 0.6]], np.float32)
    size = np.array([3, 4], np.int32)
    case("crop_and_resize", "CropAndResize", [normal(2, 3, 6, 5), boxes, np.array([1, 0, 1], np.int32), size], extrapolation_value=7.0)
    case("crop_and_resize_one", "CropAndResize", [normal(2, 3, 6, 5), boxes, np.array([0, 0, 1], np.int32), np.array([1, 2], np.int32)])


def old():
    x = normal(1, 3, 6, 5)
    case("affine", "Affine", [x], domain="", onnx_opset=9, alpha=2.0, beta=0.5)
    case("image_scaler", "ImageScaler", [x], domain="", onnx_opset=9, scale=0.5, bias=[1.0, 2.0, 3.0])
    case("crop", "Crop", [x], domain="", onnx_opset=9, border=[1, 2, 1, 1])
    case("crop_scale", "Crop", [x], domain="", onnx_opset=9, border=[1, 2, 0, 0], scale=[3, 2])
    case("scaled_tanh", "ScaledTanh", [x], domain="", onnx_opset=9, alpha=0.5, beta=2.0)
    case("parametric_softplus", "ParametricSoftplus", [x], domain="", onnx_opset=9, alpha=0.5, beta=2.0)


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


def moe():
    t, e, h, f = 5, 4, 32, 16
    x, router = normal(1, t, h), normal(t, e)
    softmax = lambda r: np.exp(r) / np.exp(r).sum(-1, keepdims=True)

    def mixture(act, k, normalize=False, fuse=0):
        def run(x, r, w1, b1, w2, b2=None, w3=None, b3=None):
            p, y = softmax(r.astype(np.float64)), np.zeros((t, h))
            for i in range(t):
                best = np.argsort(-p[i])[:k]
                share = p[i, best] / (p[i, best].sum() if normalize else 1)
                for n, s in zip(best, share):
                    z = x.reshape(t, h)[i] @ w1[n].T + (b1[n] if b1 is not None else 0)
                    y[i] += s * (act(z, x.reshape(t, h)[i] @ w3[n].T + (b3[n] if b3 is not None else 0) if w3 is not None else None) @ w2[n].T
                                 + (b2[n] if b2 is not None else 0))
            return y.reshape(x.shape).astype(np.float32)
        return run

    glu = lambda g, l, limit=7.0: (lambda G, L: G * sigmoid(1.702 * G) * (L + 1))(np.minimum(g, limit), np.clip(l, -limit, limit))
    w1, w2, b1, b2 = C(normal(e, f, h)), C(normal(e, h, f)), C(normal(e, f)), C(normal(e, h))
    case("moe", "MoE", [x, router, w1, b1, w2, b2], k=2, reference=mixture(lambda z, _: np.maximum(z, 0), 2))
    case("moe_normal", "MoE", [x, router, w1, None, w2], k=2, normalize_routing_weights=1, activation_type="silu",
         reference=mixture(lambda z, _: z * sigmoid(z), 2, True))
    case("moe_gated", "MoE", [x, router, w1, None, w2, None, C(normal(e, f, h))], k=1, activation_type="silu",
         reference=mixture(lambda z, l: z * sigmoid(z) * l, 1))
    wide, wide_bias = C(normal(e, 2 * f, h)), C(normal(e, 2 * f))
    options = dict(k=2, activation_type="swiglu", activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    case("moe_swiglu", "MoE", [x, router, wide, wide_bias, w2, b2], swiglu_fusion=1, **options,
         reference=mixture(lambda z, _: glu(z[0::2], z[1::2]), 2))
    case("moe_swiglu_halves", "MoE", [x, router, wide, wide_bias, w2, b2], swiglu_fusion=2, **options,
         reference=mixture(lambda z, _: glu(z[:f], z[f:]), 2))
    for bits in (4, 8):
        for block in (0, 16):
            q1, q2 = ints(0, 1 << bits, e, 2 * f, h, dtype=np.uint8), ints(0, 1 << bits, e, h, f, dtype=np.uint8)
            scale = lambda n, k: C(np.abs(normal(e, n, k // block, scale=0.05)) if block else np.abs(normal(e, n, scale=0.05)))
            s1, s2 = scale(2 * f, h), scale(h, f)

            case(f"qmoe_{bits}_{block}", "QMoE", [x, router, C(pack(q1, bits)), s1, wide_bias, C(pack(q2, bits)), s2, b2], swiglu_fusion=1,
                 expert_weight_bits=bits, normalize_routing_weights=1, **options, **({"block_size": block} if block else {}),
                 atol=40 if bits == 8 and block else 1e-3)  # 8-bit blocks: ONNX Runtime rounds activations to 8 bits, too


def halves():
    """Float16: ONNX Runtime computes in float32 in many places, and rounds at other ones."""
    h16, wide = np.float16, dict(rtol=0.02, atol=0.02)
    x, s, g = normal(2, 3, 16, dtype=h16), normal(2, 3, 16, dtype=h16), normal(16, dtype=h16)
    case("skip_half", "SkipLayerNormalization", [x, s, g, g], **wide)
    case("bias_gelu_half", "BiasGelu", [x, g], **wide, reference=lambda x, b: erf_gelu((x + b).astype(np.float32)).astype(h16))
    case("quick_gelu_half", "QuickGelu", [x], **wide)
    case("fused_matmul_half", "FusedMatMul", [x, normal(2, 16, 4, dtype=h16)], alpha=0.25, **wide)
    b, heads, kv, d = 2, 4, 2, 16
    cos, sin = (C(c.astype(h16)) for c in caches(32, d // 2))
    case("gqa_half", "GroupQueryAttention",
         [normal(b, 1, heads * d, dtype=h16), normal(b, 1, kv * d, dtype=h16), normal(b, 1, kv * d, dtype=h16), normal(b, kv, 6, d, dtype=h16),
          normal(b, kv, 6, d, dtype=h16), np.array([6, 6], np.int32), np.array(7, np.int32), cos, sin], outputs=3, num_heads=heads, kv_num_heads=kv,
         do_rotary=1, **wide)
    case("gqa_sink_half", "GroupQueryAttention",
         [normal(b, 3, heads * d, dtype=h16), normal(b, 3, kv * d, dtype=h16), normal(b, 3, kv * d, dtype=h16), None, None, np.array([2, 2], np.int32),
          np.array(3, np.int32), None, None, None, None, normal(heads, dtype=h16)], outputs=3, num_heads=heads, kv_num_heads=kv, **wide)
    q = ints(0, 16, 6, 2, 16, dtype=np.uint8)
    case("nbits_half", "MatMulNBits", [normal(3, 32, dtype=h16), C(pack(q, 4)), C(normal(6, 2, scale=0.1, dtype=h16))], K=32, N=6, bits=4,
         block_size=16, **wide)


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


def tokens():
    """ONNX Runtime's matches are the longest, its separators work one after another, and empty matches skip a character."""
    def case_of(name, x, **attrs):
        case(f"tokenizer_{name}", "Tokenizer", [np.array(x, object)], **{"mark": 0, "mincharnum": 1, "pad_value": "#", **attrs})

    case_of("words", ["hello world  foo", "a", ""], separators=[" "])
    case_of("marks", [["a b", "c"], ["d e f", ""]], separators=[" "], mark=1)
    case_of("nothing", ["  ", ""], separators=[" "], mark=1)
    case_of("separators", ["ab,cd;ef g", "xabx"], separators=[",", ";| ", "a|ab"], mincharnum=2)
    case_of("longest", ["xabx abb"], tokenexp="a|ab|abb")
    case_of("begin", ["abcab"], tokenexp="^a|b")
    case_of("words_by_expression", ["The quick, brown fox", "n\u00e4chste Stra\u00dfe 12"], tokenexp="[a-zA-Z0-9_]+")
    case_of("characters", ["a\u00f1b \u4e2d", ""], separators=[""])
    case_of("characters_by_expression", ["a\u00f1b", "d"], tokenexp=".")
    case_of("empty_matches", ["axbxx", "abc"], separators=["x*"])
    case_of("short", ["a bc def", "\u00f1 \u00f1\u00f1"], tokenexp="[^ ]+", mincharnum=2)


def states():
    """Parts of decoders with recurrent state."""
    b, t, h, d, dv = 2, 4, 2, 8, 6
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    q, k, v = normal(b, t, h * d), unit(normal(b, t, h, d)).reshape(b, t, h * d), normal(b, t, h * dv)
    decay, beta, past = -np.abs(normal(b, t, h)), sigmoid(normal(b, t, h)), normal(b, h, d, dv)
    heads = dict(q_num_heads=h, kv_num_heads=h)
    case("linear_attention", "LinearAttention", [q, k, v], outputs=2, update_rule="linear", **heads)
    case("linear_attention_gated", "LinearAttention", [q, k, v, past, -np.abs(normal(b, t, h * d))], outputs=2, update_rule="gated", **heads)
    case("linear_attention_delta", "LinearAttention", [q, k, v, past, None, beta], outputs=2, update_rule="delta", scale=0.3, **heads)
    case("linear_attention_gated_delta", "LinearAttention", [q, k, v, past, decay, beta], outputs=2, **heads)
    case("linear_attention_groups", "LinearAttention", [normal(b, t, 2 * h * d), k, v, past, decay, beta], outputs=2, q_num_heads=2 * h, kv_num_heads=h)
    x, w, bias, state = normal(b, 6, 5), normal(6, 1, 4), normal(6), normal(b, 6, 3)
    case("causal_conv", "CausalConvWithState", [x, w], outputs=2)
    case("causal_conv_state", "CausalConvWithState", [x, w, bias, state], outputs=2, activation="silu")
    case("causal_conv_last", "CausalConvWithState", [normal(b, 5, 6), w, bias, normal(b, 3, 6)], outputs=2, activation="silu", channels_last=1)
    case("gated_norm", "GatedRMSNorm", [normal(b, t, h * d), normal(d), normal(b, t, h * d)], epsilon=1e-3)
    case("gated_norm_sigmoid", "GatedRMSNorm", [normal(b, t, d), normal(d), normal(b, t, d)], activation="sigmoid", epsilon=1e-6)
    for name, scale in (("", None), ("_each", normal(3, d)), ("_all", normal(3 * d)), ("_one", normal(d))):
        case(f"branch_norm{name}", "BranchwiseRMSNorm", [normal(b, t, 3, d), scale], epsilon=0.01)
        case(f"branch_norm_flat{name}", "BranchwiseRMSNorm", [normal(b, t, 3 * d), scale], num_branches=3, epsilon=0.01)
    case("linear_gate", "LinearAttentionGate", [normal(b, t, h), normal(h), -np.abs(normal(h)), normal(b, t, h)], outputs=2)
    case("linear_gate_decay", "LinearAttentionGate", [normal(b, t, h), normal(h), -np.abs(normal(h))])
    case("scaled_silu", "ScaledSiLU", [normal(b, t, d)], alpha=1.5)
    case("scaled_silu_input", "ScaledSiLU", [normal(b, t, d), np.float32(0.3)], alpha=1.5)
    case("gated_add", "GatedAdd", [normal(b, t, d), normal(b, t, d), normal(b, t, 1)])


def positions():
    b, s, heads, d = 2, 3, 2, 16
    cos, sin = (C(c) for c in caches(32, d // 2))
    ids = ints(0, 32, 3, b, s, dtype=np.int64)
    for layout, section in ((0, [3, 3, 2]), (1, [4, 2, 2]), (1, [2, 3, 3])):
        name = f"mrotary_{layout}_{section[0]}"
        case(name, "MRotaryEmbedding", [normal(b, s, heads * d), ids, cos, sin], mrope_section=section, mrope_layout=layout, num_heads=heads)
        case(f"{name}_heads", "MRotaryEmbedding", [normal(b, heads, s, d), ids, cos, sin], mrope_section=section, mrope_layout=layout, interleaved=1)
    wide = 2 * d
    case("mrotary_partial", "MRotaryEmbedding", [normal(b, s, heads * wide), ids, cos, sin], mrope_section=[3, 3, 2], num_heads=heads,
         rotary_embedding_dim=d)
    angles = normal(b, s, d)
    case("gemma_rotary", "GemmaRotaryEmbedding", [angles, *(normal(b, heads, s, d, dtype=np.float16) for _ in range(4))], outputs=2, rtol=0.01, atol=0.005,
         reference=lambda e, q, qr, k, kr: tuple((x * np.cos(e)[:, None].astype(np.float16) + y * np.sin(e)[:, None].astype(np.float16)) for x, y in
                                                 ((q, qr), (k, kr))))


def softmax(x, axis=-1):
    p = np.exp(x - x.max(axis, keepdims=True))
    return p / p.sum(axis, keepdims=True)


def simple():
    x = normal(2, 3, 4, 5)
    case("bias_softmax", "BiasSoftmax", [x, normal(2, 1, 1, 5)], axis=3, is_inner_broadcast=1, reference=lambda x, b: softmax(x + b))
    case("bias_softmax_flat", "BiasSoftmax", [x, normal(1, 1, 4, 5)], axis=2, is_inner_broadcast=0,
         reference=lambda x, b: softmax((x + b).reshape(2, 3, 20)).reshape(x.shape))
    odd = np.array([1, np.inf, 3], np.float32), np.array([1, np.nan], np.float32), np.array([1, 2], np.float32)
    for name, inputs, attrs, result in (("", odd[2:], {}, True), ("_inf", odd[:1], {}, False), ("_nan", odd[1:], {}, False),
                                        ("_nan_only", odd[::2], {"isnan_only": 1}, True), ("_inf_only", odd[1:], {"isinf_only": 1}, True)):
        case(f"all_finite{name}", "IsAllFinite", list(inputs), reference=lambda *_, result=result: np.array(result), **attrs)
    pairs = lambda z: np.stack([z.real, z.imag], -1).astype(np.float32)
    a, b = normal(3, 4) + 1j * normal(3, 4), normal(4) + 1j * normal(4)
    case("complex_mul", "ComplexMul", [pairs(a), pairs(b)], reference=lambda *_: pairs(a * b))
    case("complex_mul_conj", "ComplexMulConj", [pairs(a), pairs(b)], reference=lambda *_: pairs(a * b.conj()))
    case("matmul_integer16", "MatMulInteger16", [ints(-900, 900, 3, 4, dtype=np.int16), ints(-900, 900, 4, 5, dtype=np.int16)])
    q = ints(-128, 128, 2, 3, dtype=np.int8), ints(-128, 128, 3, dtype=np.int8)
    case("mul_integer", "MulInteger", [q[0], np.int8(3), q[1], np.int8(-5)],
         reference=lambda a, z, b, y: (a.astype(np.int32) - z) * (b.astype(np.int32) - y))
    case("sum_integer", "ReduceSumInteger", [q[0]], axes=[1], keepdims=0, reference=lambda a: a.sum(1, dtype=np.int32))
    case("inverse", "Inverse", [normal(2, 3, 4, 4)])
    case("inverse_exchange", "Inverse", [np.array([[0, 2, 0], [1, 0, 0], [0, 0, 4]], np.float64)])
    case("inverse_half", "Inverse", [np.array([[2, 1], [1, 1]], np.float16)])
    words = np.array(["", "a", "ab", "abc", "abcd", "na\u00efve", "the quick brown fox"], object)
    case("murmur_text", "MurmurHash3", [words])
    case("murmur_seed", "MurmurHash3", [words], positive=0, seed=42)
    case("murmur_ints", "MurmurHash3", [ints(-1000, 1000, 5)], positive=0)
    case("murmur_longs", "MurmurHash3", [ints(-1000, 1000, 2, 3, dtype=np.int64)])
    case("murmur_doubles", "MurmurHash3", [normal(3, dtype=np.float64)])
    for quant_type, k, n in ((0, 32, 6), (1, 32, 6), (1, 40, 3), (0, 5, 7)):
        blocks = -(-k * n // 16)
        case(f"bnb4_{quant_type}_{k}", "MatMulBnb4", [normal(2, 3, k), C(ints(0, 256, -(-k * n // 2), dtype=np.uint8)), C(np.abs(normal(blocks)))], K=k, N=n,
             block_size=16, quant_type=quant_type)
    ids, segments, mask = ints(0, 10, 2, 4), ints(0, 2, 2, 4), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    table = lambda *shape: C(ints(0, 256, *shape, dtype=np.uint8))
    scale, zero = (lambda: C(np.array([0.02 + rng.random() / 50], np.float32))), (lambda: C(ints(100, 156, 1, dtype=np.uint8)))
    case("quantised_embed", "QEmbedLayerNormalization",
         [ids, segments, table(10, 8), table(6, 8), table(2, 8), table(8), table(8), mask, *(scale() for _ in range(5)), *(zero() for _ in range(5))], outputs=2)
    case("quantised_embed_plain", "QEmbedLayerNormalization",
         [ids, None, table(10, 8), table(6, 8), None, table(8), table(8), None, scale(), scale(), None, scale(), scale(), zero(), zero(), None, zero(),
          zero()], outputs=2, epsilon=0.01)


def standard():
    """Forms of standard operators that the official cases lack."""
    q = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    for dtype in (np.int64, np.int16, np.uint8):
        case(f"attention_mask_{np.dtype(dtype).name}", "Attention", [*q, ints(0, 3, 3, 5, dtype=dtype)], domain="", onnx_opset=23)
    case("pool_window_longer", "AveragePool", [normal(1, 2, 2, 5)], domain="", onnx_opset=19, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    text = helper.make_tensor("k", TensorProto.STRING, [2], [b"a", b"b"])
    case("label_no_default", "LabelEncoder", [np.array(["b", "c", "a"], object)], domain=ML, ml_opset=4, keys_tensor=text,
         values_tensor=numpy_helper.from_array(np.array([3, 4], np.int16)))
    case("label_no_default_double", "LabelEncoder", [np.array(["b", "c", "a"], object)], domain=ML, ml_opset=4, keys_tensor=text,
         values_tensor=numpy_helper.from_array(np.array([3, 4], np.float64)))


def fused():
    k, n, kv = 32, 6, 4
    x, skip, scale = normal(2, 3, k), normal(2, 3, k), normal(k)

    def weight(rows):
        return [C(ints(0, 256, rows, 2, 8, dtype=np.uint8)), C(normal(rows, 2, scale=0.1)), C(normal(rows))]

    def product(x, w, s, b):
        q = np.stack([w & 15, w >> 4], -1).reshape(w.shape[0], 2, 16).astype(np.float64) - 8
        return x @ (q * s[..., None]).reshape(w.shape[0], -1).T + (0 if b is None else b)

    norm = lambda x, g: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * g
    f = lambda *values: tuple(v.astype(np.float32) for v in values)
    gate, up = weight(n), weight(n)
    sizes = dict(K=k, bits=4, block_size=16)
    case("nbits_mlp", "MatMulNBitsMlp", [x, None, None, *gate, *up], N=n, activation="silu", **sizes,
         reference=lambda x, s, g, *w: f((lambda a, b: a * sigmoid(a) * b)(product(x, *w[:3]), product(x, *w[3:]))))
    case("nbits_mlp_skip", "MatMulNBitsMlp", [x, skip, scale, *gate[:2], None, *up], outputs=2, N=n, activation="silu", **sizes,
         reference=lambda x, s, g, *w: f((lambda y: (lambda a, b: a * sigmoid(a) * b)(product(y, *w[:3]), product(y, *w[3:])))(norm(x + s, g)), x + s))
    case("nbits_qkv", "MatMulNBitsQkv", [x, skip, scale, *weight(n), *weight(kv), *weight(kv)], outputs=4, Nq=n, Nkv=kv, **sizes,
         reference=lambda x, s, g, *w: f(*(product(norm(x + s, g), *w[i:i + 3]) for i in (0, 3, 6)), x + s))
    case("unfold", "UnfoldTensor", [normal(2, 7, 3)], dim=1, size=3, step=2)
    case("unfold_last", "UnfoldTensor", [normal(2, 7)], size=4)
    image, kernel = normal(1, 2, 4, 4), normal(2, 3, 3, 3)
    case("dynamic_pads", "ConvTransposeWithDynamicPads", [image, kernel, C(np.array([1, 0, 1, 2], np.int64)), normal(3)], strides=[2, 2], kernel_shape=[3, 3])
    b, t, c, h = 2, 3, 4, 5
    for name, streams in (("", normal(b, t, c, h)), ("_flat", normal(b, t, c * h))):
        more = dict(num_branches=c) if name else {}
        case(f"pre_mix{name}", "HyperConnectionPreMix", [streams, normal(b, t, c)], reduction_scale=0.5, **more)
        case(f"pre_mix_full{name}", "HyperConnectionPreMix", [streams, normal(b, t, c, h)], **more)
        case(f"post_mix{name}", "HyperConnectionPostMix", [streams, normal(b, t, h), normal(b, t, c), normal(b, t, c, c)], **more)
        case(f"post_mix_gates{name}", "HyperConnectionPostMix", [streams, normal(b, t, h), normal(b, t, c, 1)], **more)


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


for group in (svm, halves, moe, activations, norms, products, multi_head, attention, group_query, weights, quantized, lstm, tensors, old, maps,
              probabilities, tokens, states, positions, simple, standard, fused, transforms, windowed_caches, dynamic_lstms):
    group()
with tarfile.open(pathlib.Path(__file__).with_name("contrib.tar.xz"), "w:xz") as archive:
    for name, data in sorted(files.items()):
        info = tarfile.TarInfo(f"contrib/{name}")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
