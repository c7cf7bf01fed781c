/* SPDX-License-Identifier: Apache-2.0 */
// See transformer.h.
#include "transformer.h"
#include <math.h>

gen_value tf_linear(struct gen *g, gen_value x, const char *name, int64_t in, int64_t out, bool bias)
{
    gen_value w = gen_weight_scaled(g, gen_format(g, "%s.weight", name), 2, (int64_t[]){in, out}, 1.0f, in);
    x = GEN_NODE(g, "MatMul", x, w);
    if (bias)
        x = GEN_NODE(g, "Add", x, gen_weight(g, gen_format(g, "%s.bias", name), 1, &out, -0.1f, 0.1f));
    return x;
}

gen_value tf_layer_norm(struct gen *g, gen_value x, const char *name, int64_t size, float epsilon)
{
    gen_value scale = gen_weight(g, gen_format(g, "%s.weight", name), 1, &size, 0.8f, 1.2f);
    gen_value bias = gen_weight(g, gen_format(g, "%s.bias", name), 1, &size, -0.1f, 0.1f);
    x = GEN_NODE(g, "LayerNormalization", x, scale, bias);
    gen_attr_int(g, "axis", -1);
    gen_attr_float(g, "epsilon", epsilon);
    gen_attr_int(g, "stash_type", 1);
    return x;
}

// A symbolic dim in a Reshape's target is 0: copied from the input, where it has the same place.
static gen_value view(struct gen *g, gen_value x, size_t rank, const int64_t *dims)
{
    int64_t target[8];
    bool symbolic = false;
    for (size_t i = 0; i < rank; i++) {
        target[i] = dims[i] < 0 ? 0 : dims[i];
        symbolic |= dims[i] < 0;
    }
    x = GEN_NODE(g, "Reshape", x, gen_ints(g, rank, target));
    gen_attr_int(g, "allowzero", !symbolic);
    return x;
}

static gen_value transpose(struct gen *g, gen_value x, size_t rank, const int64_t *perm)
{
    x = GEN_NODE(g, "Transpose", x);
    gen_attr_ints(g, "perm", rank, perm);
    return x;
}

gen_value tf_split_heads(struct gen *g, gen_value x, struct tf_shape s)
{
    x = view(g, x, 4, (int64_t[]){s.batch, s.sequence, s.heads, s.head_size});
    return transpose(g, x, 4, (int64_t[]){0, 2, 1, 3});
}

gen_value tf_merge_heads(struct gen *g, gen_value x, struct tf_shape s)
{
    x = transpose(g, x, 4, (int64_t[]){0, 2, 1, 3});
    return view(g, x, 3, (int64_t[]){s.batch, s.sequence, s.heads * s.head_size});
}

// With static shapes the exporter goes through rank 3; with symbolic ones it transposes directly.
static gen_value transpose_key(struct gen *g, gen_value k, struct tf_shape s)
{
    if (s.batch < 0 || s.sequence < 0)
        return transpose(g, k, 4, (int64_t[]){0, 1, 3, 2});
    k = view(g, k, 3, (int64_t[]){s.batch * s.heads, s.sequence, s.head_size});
    k = transpose(g, k, 3, (int64_t[]){0, 2, 1});
    return view(g, k, 4, (int64_t[]){s.batch, s.heads, s.head_size, s.sequence});
}

gen_value tf_attention(struct gen *g, gen_value q, gen_value k, gen_value v, gen_value mask,
                       struct tf_shape s)
{
    // Both operands carry half of the scale, which keeps fp16 products small.
    gen_value scale = gen_scalar(g, powf((float)s.head_size, -0.25f));
    k = transpose_key(g, k, s);
    q = GEN_NODE(g, "Mul", q, scale);
    k = GEN_NODE(g, "Mul", k, scale);
    gen_value scores = GEN_NODE(g, "MatMul", q, k);
    if (mask)
        scores = GEN_NODE(g, "Add", scores, mask);
    gen_value p = GEN_NODE(g, "Softmax", scores);
    gen_attr_int(g, "axis", -1);
    if (mask) // a row that is masked out entirely gives zeros
        p = GEN_NODE(g, "Where", GEN_NODE(g, "IsNaN", p), gen_scalar(g, 0.0f), p);
    return GEN_NODE(g, "MatMul", p, v);
}

gen_value tf_self_attention(struct gen *g, gen_value x, const char *prefix, gen_value mask, struct tf_shape s)
{
    static const char *const names[] = {"query", "key", "value"};
    int64_t size = s.heads * s.head_size;
    gen_value parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = tf_linear(g, x, gen_format(g, "%s.%s", prefix, names[i]), size, size, true);
        parts[i] = tf_split_heads(g, parts[i], s);
    }
    x = tf_attention(g, parts[0], parts[1], parts[2], mask, s);
    return tf_linear(g, tf_merge_heads(g, x, s), gen_format(g, "%s.output", prefix), size, size, true);
}

gen_value tf_mlp(struct gen *g, gen_value x, const char *prefix, int64_t size, int64_t inner)
{
    x = tf_linear(g, x, gen_format(g, "%s.intermediate", prefix), size, inner, true);
    x = GEN_NODE(g, "Gelu", x);
    return tf_linear(g, x, gen_format(g, "%s.output", prefix), inner, size, true);
}
