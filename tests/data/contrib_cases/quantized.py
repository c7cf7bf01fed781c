# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits, integer products, quantised layers."""
import numpy as np
from onnx import TensorProto, helper

from contrib_cases.common import C, case, ints, normal, sigmoid, softmax


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
