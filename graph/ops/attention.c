/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, RotaryEmbedding, LinearAttention, CausalConvWithState. */
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"

#include <string.h>

static const op_attr attention_attrs[] = {
    {"is_causal", GRT_ATTR_INT, false},
    {"kv_num_heads", GRT_ATTR_INT, false},
    {"left_window_size", GRT_ATTR_INT, false},
    {"q_num_heads", GRT_ATTR_INT, false},
    {"qk_matmul_output_mode", GRT_ATTR_INT, false},
    {"right_window_size", GRT_ATTR_INT, false},
    {"scale", GRT_ATTR_FLOAT, false},
    {"softcap", GRT_ATTR_FLOAT, false},
    {"softmax_precision", GRT_ATTR_INT, false},
    {0},
};
static const op_attr rotary_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false},
    {"num_heads", GRT_ATTR_INT, false},
    {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {0},
};
static const op_attr linear_attrs[] = {
    {"chunk_size", GRT_ATTR_INT, false},     {"kv_num_heads", GRT_ATTR_INT, true},
    {"q_num_heads", GRT_ATTR_INT, true},     {"scale", GRT_ATTR_FLOAT, false},
    {"update_rule", GRT_ATTR_STRING, false}, {0},
};
static const op_attr causal_conv_attrs[] = {{"activation", GRT_ATTR_STRING, false}, {0}};

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };

/* What the shapes of queries, keys and values say: [batch, heads, sequence, head size] each. */
typedef struct heads {
    grt_dim batch, n, sequence, size;
} heads;

/* Split a packed [batch, sequence, heads * size] or take a [batch, heads, sequence, size] apart. */
static grt_status split_heads(const infer *inf, int32_t i, const char *attr, heads *out)
{
    const ir_type *type = inf->in[i];
    if (type->rank == 4) {
        *out = (heads){type->dims[0], type->dims[1], type->dims[2], type->dims[3]};
        return GRT_OK;
    }
    int64_t n = grt_attr_int(inf->desc, attr, 0), hidden;
    if (type->rank != 3)
        return infer_fail(inf, "input %d has rank %d; it must be 3 (batch x sequence x hidden) or 4", i,
                          type->rank);
    if (n <= 0)
        return infer_fail(inf, "attribute %s is %lld; inputs of rank 3 need it, positive", attr,
                          (long long)n);
    if (infer_const(inf, type->dims[2], &hidden) && hidden % n)
        return infer_fail(inf, "input %d has hidden size %lld, which %s = %lld does not divide", i,
                          (long long)hidden, attr, (long long)n);
    grt_dim heads_dim = grt_dim_const(inf->dims, n);
    *out = (heads){type->dims[0], heads_dim, type->dims[1],
                   grt_dim_divide_exact(inf->dims, type->dims[2], heads_dim)};
    return GRT_OK;
}

static grt_status same_dim(const infer *inf, const char *what, grt_dim a, grt_dim b)
{
    int64_t x, y;
    if (infer_const(inf, a, &x) && infer_const(inf, b, &y) && x != y)
        return infer_fail(inf, "%s must be equal, found %lld and %lld", what, (long long)x, (long long)y);
    return GRT_OK;
}

static grt_status check_heads(const infer *inf, const heads *q, const heads *k, const heads *v)
{
    int64_t n_q, n_kv;
    GRT_TRY(same_dim(inf, "batch sizes of Q and K", q->batch, k->batch));
    GRT_TRY(same_dim(inf, "batch sizes of Q and V", q->batch, v->batch));
    GRT_TRY(same_dim(inf, "head sizes of Q and K", q->size, k->size));
    GRT_TRY(same_dim(inf, "head counts of K and V", k->n, v->n));
    GRT_TRY(same_dim(inf, "sequence lengths of K and V", k->sequence, v->sequence));
    if (infer_const(inf, q->n, &n_q) && infer_const(inf, k->n, &n_kv) && (!n_kv ? n_q != 0 : n_q % n_kv))
        return infer_fail(inf, "Q has %lld heads, which is no multiple of the %lld heads of K and V",
                          (long long)n_q, (long long)n_kv);
    return GRT_OK;
}

static void set_4d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c, grt_dim d)
{
    grt_dim *dims = infer_dims(inf, 4);
    if (!dims)
        return;
    dims[0] = a;
    dims[1] = b;
    dims[2] = c;
    dims[3] = d;
    infer_set(inf, i, dtype, 4, dims);
}

static void set_3d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c)
{
    grt_dim *dims = infer_dims(inf, 3);
    if (!dims)
        return;
    dims[0] = a;
    dims[1] = b;
    dims[2] = c;
    infer_set(inf, i, dtype, 3, dims);
}

static grt_status check_attention(const infer *inf)
{
    int64_t mode = grt_attr_int(inf->desc, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        return infer_fail(inf, "attribute qk_matmul_output_mode is %lld; it must be 0, 1, 2 or 3",
                          (long long)mode);
    grt_dtype precision;
    GRT_TRY(infer_dtype_attr(inf, "softmax_precision", GRT_SET_FLOATS, GRT_DTYPE_NONE, &precision));
    if (grt_attr_int(inf->desc, "left_window_size", -1) < -1 ||
        grt_attr_int(inf->desc, "right_window_size", -1) < -1)
        return infer_fail(inf, "window sizes must be -1 (no bound) or more");
    if (infer_has(inf, PAST_KEY) != infer_has(inf, PAST_VALUE))
        return infer_fail(inf, "past_key and past_value must be given together");
    if (infer_has(inf, PAST_KEY) && infer_has(inf, NONPAD))
        return infer_fail(inf, "nonpad_kv_seqlen cannot be combined with past_key and past_value");
    for (int32_t i = PAST_KEY; i <= PAST_VALUE; i++)
        if (infer_has(inf, i) && inf->in[i]->rank >= 0 && inf->in[i]->rank != 4)
            return infer_fail(inf,
                              "input %d has rank %d; a past must be batch x heads x sequence x head size", i,
                              inf->in[i]->rank);
    return GRT_OK;
}

static grt_status infer_attention(infer *inf)
{
    grt_dtype t1 = inf->in[Q]->dtype, t2 = inf->in[V]->dtype;
    int32_t rank = inf->in[Q]->rank;
    heads q, k, v;
    GRT_TRY(check_attention(inf));
    GRT_TRY(infer_same_dtype(inf, Q, K));
    GRT_TRY(infer_same_dtype(inf, K, PAST_KEY));
    GRT_TRY(infer_same_dtype(inf, V, PAST_VALUE));
    for (int32_t i = 0; i < inf->n_out; i++)
        infer_set_fresh(inf, i, i == 2 ? t2 : t1, 4);
    if (rank < 0 || inf->in[K]->rank < 0 || inf->in[V]->rank < 0) {
        infer_set_unknown(inf, 0, t1);
        return GRT_OK;
    }
    if (inf->in[K]->rank != rank || inf->in[V]->rank != rank)
        return infer_fail(inf, "Q, K and V must have one rank, found %d, %d and %d", rank, inf->in[K]->rank,
                          inf->in[V]->rank);
    GRT_TRY(split_heads(inf, Q, "q_num_heads", &q));
    GRT_TRY(split_heads(inf, K, "kv_num_heads", &k));
    GRT_TRY(split_heads(inf, V, "kv_num_heads", &v));
    GRT_TRY(check_heads(inf, &q, &k, &v));
    grt_dim total = k.sequence;
    if (infer_has(inf, PAST_KEY))
        total = inf->in[PAST_KEY]->rank == 4 ? grt_dim_add(inf->dims, inf->in[PAST_KEY]->dims[2], total)
                                             : grt_dim_fresh(inf->dims);
    if (rank == 4)
        set_4d(inf, 0, t1, q.batch, q.n, q.sequence, v.size);
    else
        set_3d(inf, 0, t1, q.batch, q.sequence, grt_dim_mul(inf->dims, q.n, v.size));
    set_4d(inf, 1, t1, k.batch, k.n, total, k.size);
    set_4d(inf, 2, t2, v.batch, v.n, total, v.size);
    set_4d(inf, 3, t1, q.batch, q.n, q.sequence, total);
    return GRT_OK;
}

/* graphrt::Attention(qkv, -, -, mask): queries, keys and values of all heads side by side in the last dim of
 * one tensor [batch, sequence, (q_num_heads + 2 * kv_num_heads) * size]. */
static grt_status infer_joined(infer *inf)
{
    const ir_type *x = inf->in[0];
    const int64_t n_q = grt_attr_int(inf->desc, "q_num_heads", 0),
                  n_kv = grt_attr_int(inf->desc, "kv_num_heads", 0);
    int64_t width;
    if (x->rank != 3 || n_q <= 0 || n_kv <= 0)
        return infer_fail(
            inf,
            "input 0 has rank %d, q_num_heads is %lld, kv_num_heads %lld; it must be 3 and both positive",
            x->rank, (long long)n_q, (long long)n_kv);
    const grt_dim parts = grt_dim_const(inf->dims, n_q + 2 * n_kv);
    if (infer_const(inf, x->dims[2], &width) && width % (n_q + 2 * n_kv))
        return infer_fail(inf, "input 0 has hidden size %lld, which its %lld heads do not divide",
                          (long long)width, (long long)(n_q + 2 * n_kv));
    set_3d(inf, 0, x->dtype, x->dims[0], x->dims[1],
           grt_dim_mul(inf->dims, grt_dim_divide_exact(inf->dims, x->dims[2], parts),
                       grt_dim_const(inf->dims, n_q)));
    return GRT_OK;
}

static grt_status infer_rotary(infer *inf)
{
    const ir_type *x = inf->in[0];
    heads split;
    int64_t size, rotated = grt_attr_int(inf->desc, "rotary_embedding_dim", 0);
    if (x->rank >= 0) {
        GRT_TRY(split_heads(inf, 0, "num_heads", &split));
        if (infer_const(inf, split.size, &size) &&
            (rotated < 0 || rotated > size || (rotated ? rotated : size) % 2))
            return infer_fail(
                inf, "attribute rotary_embedding_dim is %lld; it must be even and at most the head size %lld",
                (long long)rotated, (long long)size);
    }
    int32_t want = infer_has(inf, 3) ? 2 : 3;
    for (int32_t i = 1; i <= 2; i++)
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != want)
            return infer_fail(inf, "input %d has rank %d; it must be %d (%s position_ids)", i,
                              inf->in[i]->rank, want, want == 2 ? "with" : "without");
    return infer_same_as_first(inf);
}

/* [batch, 1, 1], batch as in x. */
static ir_value *batch_shape(ir_node *node)
{
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    ir_value *ones = ir_constant_ints(graph, name, (int64_t[]){1, 1}, 2);
    ir_node *batch = ir_node_create(graph, node, "", "Shape", name, 1, &node->in[0].value, 1);
    if (!ones || !batch)
        return NULL;
    ir_attr_set_int(batch, "start", 0);
    ir_attr_set_int(batch, "end", 1);
    ir_node *shape =
        ir_node_create(graph, node, "", "Concat", name, 2, (ir_value *[]){batch->out[0], ones}, 1);
    if (shape)
        ir_attr_set_int(shape, "axis", 0);
    return shape ? shape->out[0] : NULL;
}

/* Exporters give one row of angles for all of a batch, as ONNX's function body would take it; kernels want a
 * row for each. */
static grt_status expand_rotary(ir_node *node, bool *out_done)
{
    const grt_dims *dims = node->graph->module->dims;
    const ir_type *x = &node->in[0].value->type;
    *out_done = false;
    for (int32_t i = 1; i <= 2 && !ir_in(node, 3) && x->rank > 0; i++) {
        const ir_type *cache = &node->in[i].value->type;
        if (cache->rank != 3 || !grt_dim_equals(dims, cache->dims[0], 1) ||
            grt_dim_equals(dims, x->dims[0], 1))
            continue;
        ir_value *shape = batch_shape(node);
        ir_node *wide = shape ? ir_node_create(node->graph, node, "", "Expand", node->desc.name, 2,
                                               (ir_value *[]){node->in[i].value, shape}, 1)
                              : NULL;
        if (!wide)
            return grt_fail_memory(0);
        ir_node_set_input(node, i, wide->out[0]);
        *out_done = true;
    }
    return GRT_OK;
}

static grt_status infer_linear(infer *inf)
{
    const char *rule = grt_attr_string(inf->desc, "update_rule", "gated_delta");
    bool gated = !strcmp(rule, "gated") || !strcmp(rule, "gated_delta");
    bool delta = !strcmp(rule, "delta") || !strcmp(rule, "gated_delta");
    heads q, k, v;
    if (!gated && !delta && strcmp(rule, "linear"))
        return infer_fail(
            inf, "attribute update_rule is '%s'; it must be linear, gated, delta or gated_delta", rule);
    if (gated != infer_has(inf, 4) || delta != infer_has(inf, 5))
        return infer_fail(inf, "update_rule %s %s decay and %s beta", rule, gated ? "needs" : "forbids",
                          delta ? "needs" : "forbids");
    grt_dtype dtype = inf->in[0]->dtype, state = infer_has(inf, 3) ? inf->in[3]->dtype : dtype;
    infer_set_fresh(inf, 0, dtype, 3);
    infer_set_fresh(inf, 1, state, 4);
    for (int32_t i = 0; i < 3; i++) {
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != 3)
            return infer_fail(inf, "input %d has rank %d; it must be batch x sequence x hidden", i,
                              inf->in[i]->rank);
        if (inf->in[i]->rank < 0)
            return GRT_OK;
    }
    GRT_TRY(split_heads(inf, 0, "q_num_heads", &q));
    GRT_TRY(split_heads(inf, 1, "kv_num_heads", &k));
    GRT_TRY(split_heads(inf, 2, "kv_num_heads", &v));
    GRT_TRY(check_heads(inf, &q, &k, &v));
    set_3d(inf, 0, dtype, q.batch, q.sequence, grt_dim_mul(inf->dims, q.n, v.size));
    set_4d(inf, 1, state, k.batch, k.n, k.size, v.size);
    return GRT_OK;
}

static grt_status infer_causal_conv(infer *inf)
{
    const ir_type *x = inf->in[0], *w = inf->in[1];
    const char *activation = grt_attr_string(inf->desc, "activation", "none");
    if (strcmp(activation, "none") && strcmp(activation, "silu") && strcmp(activation, "swish"))
        return infer_fail(inf, "attribute activation is '%s'; it must be none, silu or swish", activation);
    for (int32_t i = 0; i < 2; i++)
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != 3)
            return infer_fail(inf, "input %d has rank %d; it must be 3", i, inf->in[i]->rank);
    infer_set_like(inf, 0, x->dtype, x);
    infer_set_fresh(inf, 1, x->dtype, 3);
    if (x->rank < 0 || w->rank < 0)
        return GRT_OK;
    int64_t width;
    GRT_TRY(same_dim(inf, "channels of input and weight", x->dims[1], w->dims[0]));
    if (infer_const(inf, w->dims[2], &width) && width < 1)
        return infer_fail(inf, "the kernel's width is %lld; it must be positive", (long long)width);
    set_3d(inf, 1, x->dtype, x->dims[0], x->dims[1], grt_dim_addc(inf->dims, w->dims[2], -1));
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Attention",
     .since = 25,
     .min_in = 3,
     .max_in = 7,
     .min_out = 1,
     .max_out = 4,
     .attrs = attention_attrs,
     .precision = OP_NARROW,
     .flags = OP_TF32,
     .flops = flops_attention,
     .infer = infer_attention},
    {.domain = "graphrt",
     .name = "Attention",
     .since = 1,
     .min_in = 1,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = attention_attrs,
     .precision = OP_NARROW,
     .flags = OP_TF32,
     .flops = flops_attention,
     .infer = infer_joined},
    {.domain = "",
     .name = "RotaryEmbedding",
     .since = 23,
     .min_in = 3,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = rotary_attrs,
     .flags = OP_EXPANDS_ALWAYS,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .infer = infer_rotary,
     .expand = expand_rotary},
    {.domain = "",
     .name = "LinearAttention",
     .since = 27,
     .min_in = 3,
     .max_in = 6,
     .min_out = 2,
     .max_out = 2,
     .attrs = linear_attrs,
     .precision = OP_WIDE,
     .infer = infer_linear},
    {.domain = "",
     .name = "CausalConvWithState",
     .since = 27,
     .min_in = 2,
     .max_in = 4,
     .min_out = 2,
     .max_out = 2,
     .attrs = causal_conv_attrs,
     .precision = OP_WIDE,
     .infer = infer_causal_conv},
};
OP_TABLE(attention, rows);
