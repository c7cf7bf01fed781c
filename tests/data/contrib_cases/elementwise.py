# SPDX-License-Identifier: Apache-2.0
"""Activations, norms and what is fused around them."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from contrib_cases.common import C, ML, case, erf_gelu, ints, normal, rng, sigmoid, softmax


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
