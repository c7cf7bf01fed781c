# SPDX-License-Identifier: Apache-2.0
"""Moves of elements, old operators, half precision, sampling of tokens."""
import numpy as np

from contrib_cases.attention import caches
from contrib_cases.common import C, case, erf_gelu, ints, normal
from contrib_cases.quantized import pack


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
