# SPDX-License-Identifier: Apache-2.0
"""Attention, with caches, windows and rotary positions."""
import numpy as np

from contrib_cases.common import C, case, ints, normal


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
