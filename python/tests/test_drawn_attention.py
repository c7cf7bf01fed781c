# SPDX-License-Identifier: Apache-2.0
"""Attention and what stands around it, drawn at random in the forms that exporters write, against ONNX Runtime: masks of several conditions, rotations of some
tokens only, projections that are cut out of one product. Passes rewrite all of these; a form that looks alike but means another thing must stay.

python test_drawn_attention.py SEED COUNT draws others, and prints those that are wrong."""
import sys

import numpy as np
import pytest
from fed import wrong

COUNT = 100


def draw_mask(drawing):
    """Attention with a mask of conditions, one of which may be causality, that are joined by And, or hide and are joined by Or."""
    batch, heads, queries, size = drawing.pick(1, 2, 3), drawing.pick(1, 2), drawing.pick(1, 2, 5, 8), 4
    keys, hides = queries + drawing.pick(0, 0, 0, 1, 2), drawing.chance(0.4)

    def condition(kept):
        return ~kept if hides else kept
    triangle = np.tril(np.ones((queries, keys), bool), drawing.pick(0, 0, 0, 1, -1))
    parts = [drawing.constant(condition(triangle.reshape(*drawing.pick((), (1,), (1, 1)), queries, keys)))]
    padding = drawing.random.random(drawing.pick((keys,), (1, keys), (queries, keys), (batch, 1, 1, keys), (batch, 1, queries, keys), (1, heads, 1, keys),
                                                 (batch, heads, queries, keys), (1, 1, queries, 1))) < 0.6
    if drawing.chance(0.8):
        padding[..., 0] = True
    parts.append(drawing.input("padding", condition(padding)))
    if drawing.chance(0.3):
        parts.append(drawing.constant(condition(np.arange(keys) < max(1, keys - 1))))
    mask = parts.pop(drawing.random.integers(2))
    for part in parts:
        mask = drawing.node("Or" if hides else "And", [mask, part] if drawing.chance() else [part, mask])
    if hides or drawing.chance(0.6):
        zero, low = drawing.constant(np.float32(0)), drawing.constant(np.float32(drawing.pick(-np.inf, -3.4e38)))
        mask = drawing.node("Where", [mask, low, zero] if hides else [mask, zero, low])
    joined = drawing.chance(0.4)  # heads side by side

    def rows(name, n):
        return drawing.input(name, drawing.normal(batch, n, heads * size) if joined else drawing.normal(batch, heads, n, size))
    counts = {"q_num_heads": heads, "kv_num_heads": heads} if joined else {}
    return drawing.model(drawing.node("Attention", [rows("q", queries), rows("k", keys), rows("v", keys), mask], is_causal=int(drawing.chance(0.2)), **counts))


def draw_rotation(drawing):
    """Some tokens are cut off, those between them are rotated, and all are joined again, now and then in another order."""
    batch, heads, size = drawing.pick(1, 2, 3), drawing.pick(1, 2, 3), drawing.pick(4, 8)
    counts = [drawing.pick(0, 1, 1, 2, 5), drawing.pick(1, 3, 4, 9), drawing.pick(0, 0, 1, 2)]
    n, layout = sum(counts), drawing.pick("tokens", "heads", "heads inside")
    shape = {"tokens": (batch, n, heads * size), "heads": (batch, heads, n, size), "heads inside": (batch, n, heads, size)}[layout]
    axis, is_open = 2 if layout == "heads" else 1, drawing.chance(0.4)
    x = drawing.input("x", drawing.normal(*shape), is_open)
    ends = np.cumsum(counts)
    if drawing.chance() and all(counts):
        parts = drawing.node("Split", [x, drawing.constant(np.array(counts))], 3, axis=axis)
    else:
        parts = [drawing.slice(x, int(end - count), int(end), n, axis) if count else None for count, end in zip(counts, ends)]
    partial = size // 2 if size == 8 and drawing.chance(0.3) else 0
    angles = drawing.normal(1, counts[1], (partial or size) // 2)
    tables = [drawing.constant(angle) for angle in (np.cos(angles), np.sin(angles))]
    if batch > 1 or is_open:
        dims = drawing.node("Concat", [drawing.node("Shape", [x], start=0, end=1), drawing.constant(np.array([1, 1]))], axis=0)
        tables = [drawing.node("Expand", [table, dims]) for table in tables]
    turned = drawing.node("Transpose", [parts[1]], perm=[0, 2, 1, 3]) if layout == "heads inside" else parts[1]
    attributes = {"num_heads": heads} if layout == "tokens" else {}
    turned = drawing.node("RotaryEmbedding", [turned, *tables], interleaved=int(drawing.chance()), rotary_embedding_dim=partial, **attributes)
    parts[1] = drawing.node("Transpose", [turned], perm=[0, 2, 1, 3]) if layout == "heads inside" else turned
    if drawing.chance(0.1):
        parts.reverse()
    return drawing.model(drawing.node("Concat", [part for part in parts if part], axis=axis - len(shape) * drawing.chance()))


def draw_projections(drawing):
    """Queries, keys and values by products of their own, with biases or not, or as ranges of the columns of one."""
    batch, n, heads, size, width = drawing.pick(1, 2), drawing.pick(1, 3, 6), drawing.pick(2, 4), drawing.pick(4, 8), 16
    key_heads = drawing.pick(heads, heads, heads // 2)
    widths, is_open = [heads * size, key_heads * size, key_heads * size], drawing.chance(0.3)
    x = drawing.input("x", drawing.normal(batch, n, width), is_open)

    def product(columns, biased):
        made = drawing.node("MatMul", [x, drawing.constant(drawing.normal(width, columns))])
        return drawing.node("Add", [made, drawing.constant(drawing.normal(columns))]) if biased else made
    if drawing.chance():
        parts = [product(columns, drawing.chance(0.6)) for columns in widths]
    else:
        gap = drawing.pick(0, 0, 4)
        whole, at, parts = product(sum(widths) + gap, drawing.chance()), gap * drawing.chance(), [None] * 3
        for k in drawing.random.permutation(3) if drawing.chance(0.4) else range(3):
            at -= 2 * (at > 1 and drawing.chance(0.1))  # two parts overlap
            parts[k] = drawing.slice(whole, at, at + widths[k], sum(widths) + gap, drawing.pick(2, -1))
            at += widths[k]
    results = [drawing.pick(*parts)] if drawing.chance(0.15) else []
    causal = {"is_causal": int(drawing.chance())}
    if drawing.chance(0.4):
        made = drawing.node("Attention", parts, q_num_heads=heads, kv_num_heads=key_heads, **causal)
    else:
        apart = [drawing.node("Transpose", [drawing.node("Reshape", [part, drawing.constant(np.array([0, 0, count, size]))])], perm=[0, 2, 1, 3])
                 for part, count in zip(parts, (heads, key_heads, key_heads))]
        made = drawing.node("Transpose", [drawing.node("Attention", apart, **causal)], perm=[0, 2, 1, 3])
        made = drawing.node("Reshape", [made, drawing.constant(np.array([0, 0, heads * size]))])
    return drawing.model(drawing.node("MatMul", [made, drawing.constant(drawing.normal(heads * size, width))]), *results)


@pytest.mark.parametrize("draw, left, most", [
    (draw_mask, ("And", "Or", "Pointwise"), 90),
    (draw_rotation, ("Concat",), 20),
    (draw_projections, ("Transpose",), 5),
])
def test_drawn(draw, left, most):
    results = [wrong(draw, seed) for seed in range(COUNT)]
    assert not [text for text, _ in results if text]
    assert sum(any(op in steps for op in left) for _, steps in results) <= most  # in all others the form was seen


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failures = [(draw.__name__, text) for draw in (draw_mask, draw_rotation, draw_projections) for seed in range(first, first + count)
                for text, _ in [wrong(draw, seed)] if text]
    for name, text in failures:
        print(name, text)
    print(f"{3 * count - len(failures)} passed, {len(failures)} failed")
    sys.exit(bool(failures))
