# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and state-space models."""
import numpy as np

from contrib_cases.common import C, case, ints, normal, rng, sigmoid


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
