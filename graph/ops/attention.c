/* SPDX-License-Identifier: Apache-2.0 */
/* Attention. */
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"
#include "graph/ops/heads.h"

#include <string.h>

#define ATTENTION_ATTRS                                                                             \
    {"is_causal", GRT_ATTR_INT, false}, {"kv_num_heads", GRT_ATTR_INT, false},                      \
        {"left_window_size", GRT_ATTR_INT, false}, {"q_num_heads", GRT_ATTR_INT, false},            \
        {"qk_matmul_output_mode", GRT_ATTR_INT, false}, {"right_window_size", GRT_ATTR_INT, false}, \
        {"scale", GRT_ATTR_FLOAT, false}, {"softcap", GRT_ATTR_FLOAT, false},                       \
    {                                                                                               \
        "softmax_precision", GRT_ATTR_INT, false                                                    \
    }
static const op_attr attention_attrs[] = {ATTENTION_ATTRS, {0}};
static const op_attr quantised_attrs[] = {ATTENTION_ATTRS, {"joined", GRT_ATTR_INT, false}, {0}};

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };

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
    GRT_TRY(heads_split(inf, Q, "q_num_heads", &q));
    GRT_TRY(heads_split(inf, K, "kv_num_heads", &k));
    GRT_TRY(heads_split(inf, V, "kv_num_heads", &v));
    GRT_TRY(heads_check(inf, &q, &k, &v));
    grt_dim total = k.sequence;
    if (infer_has(inf, PAST_KEY))
        total = inf->in[PAST_KEY]->rank == 4 ? grt_dim_add(inf->dims, inf->in[PAST_KEY]->dims[2], total)
                                             : grt_dim_fresh(inf->dims);
    if (rank == 4)
        heads_set_4d(inf, 0, t1, q.batch, q.n, q.sequence, v.size);
    else
        heads_set_3d(inf, 0, t1, q.batch, q.sequence, grt_dim_mul(inf->dims, q.n, v.size));
    heads_set_4d(inf, 1, t1, k.batch, k.n, total, k.size);
    heads_set_4d(inf, 2, t2, v.batch, v.n, total, v.size);
    heads_set_4d(inf, 3, t1, q.batch, q.n, q.sequence, total);
    return GRT_OK;
}

/* A mask of integers is added to the scores like one of floats. Kernels know floats and bool. Beside queries
 * that are not floats, which no kernel has, a Cast to their dtype would leave it as it is. */
static grt_status expand_integer_mask(ir_node *node, bool *out_done)
{
    ir_value *mask = ir_in(node, MASK);
    const grt_dtype floating = ir_in(node, Q)->type.dtype;
    if (!mask || !grt_dtype_in(mask->type.dtype, GRT_SET_INTS) || !grt_dtype_in(floating, GRT_SET_FLOATS))
        return GRT_OK;
    ir_value *floats =
        ir_node_out(ir_node_create(node->graph, node, "", "Cast", node->desc.name, 1, &mask, 1));
    if (!floats)
        return grt_fail_memory(0);
    ir_attr_set_int(floats->producer, "to", floating);
    ir_node_set_input(node, MASK, floats);
    *out_done = true;
    return GRT_OK;
}

/* graphrt::Attention(qkv, -, -, mask, past_key, past_value): queries, keys and values of all heads side by
 * side in the last dim of one tensor [batch, sequence, (q_num_heads + 2 * kv_num_heads) * size]. */
static grt_status infer_joined(infer *inf)
{
    const ir_type *x = inf->in[0], *past = infer_has(inf, PAST_KEY) ? inf->in[PAST_KEY] : NULL;
    const int64_t n_q = grt_attr_int(inf->desc, "q_num_heads", 0),
                  n_kv = grt_attr_int(inf->desc, "kv_num_heads", 0);
    int64_t width;
    if (x->rank != 3 || n_q <= 0 || n_kv <= 0 || n_q > INT32_MAX || n_kv > INT32_MAX)
        return infer_fail(
            inf,
            "input 0 has rank %d, q_num_heads is %lld, kv_num_heads %lld; it must be 3 and both "
            "positive and below 2^31",
            x->rank, (long long)n_q, (long long)n_kv);
    GRT_TRY(check_attention(inf));
    GRT_TRY(infer_same_dtype(inf, Q, PAST_KEY));
    GRT_TRY(infer_same_dtype(inf, Q, PAST_VALUE));
    const grt_dim parts = grt_dim_const(inf->dims, n_q + 2 * n_kv);
    if (infer_const(inf, x->dims[2], &width) && width % (n_q + 2 * n_kv))
        return infer_fail(inf, "input 0 has hidden size %lld, which its %lld heads do not divide",
                          (long long)width, (long long)(n_q + 2 * n_kv));
    const grt_dim size = grt_dim_divide_exact(inf->dims, x->dims[2], parts);
    heads_set_3d(inf, 0, x->dtype, x->dims[0], x->dims[1],
                 grt_dim_mul(inf->dims, size, grt_dim_const(inf->dims, n_q)));
    grt_dim total = x->dims[1];
    if (past)
        total = past->rank == 4 ? grt_dim_add(inf->dims, past->dims[2], total) : grt_dim_fresh(inf->dims);
    for (int32_t i = 1; i < inf->n_out; i++)
        heads_set_4d(inf, i, x->dtype, x->dims[0], grt_dim_const(inf->dims, n_kv), total, size);
    return GRT_OK;
}

/* graphrt::QAttention, which pass `quantised_attention` makes: the inputs of either form, without omitted
 * ones at the end, as ONNX numbers them, then y's scale and zero point. joined: the form with one tensor. */
static grt_status infer_quantised(infer *inf)
{
    enum { Y_SCALE = 7, Y_ZERO };
    if (!infer_has(inf, Y_SCALE) || !infer_has(inf, Y_ZERO))
        return infer_fail(inf, "inputs %d and %d, the result's scale and zero point, must be given", Y_SCALE,
                          Y_ZERO);
    if (grt_attr_int(inf->desc, "joined", 0))
        GRT_TRY(infer_joined(inf));
    else if (!infer_has(inf, K) || !infer_has(inf, V))
        return infer_fail(inf, "inputs 1 and 2, K and V, are missing; only joined attention omits them");
    else
        GRT_TRY(infer_attention(inf));
    if (inf->n_out > 0)
        inf->out[0].dtype = inf->in[Y_ZERO]->dtype;
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "QAttention",
     .since = 1,
     .min_in = 1,
     .max_in = 9,
     .min_out = 1,
     .max_out = 1,
     .attrs = quantised_attrs,
     .cost = OP_COST_COMPUTE,
     .flops = flops_attention,
     .infer = infer_quantised},
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
     .infer = infer_attention,
     .expand = expand_integer_mask},
    {.domain = "graphrt",
     .name = "Attention",
     .since = 1,
     .min_in = 1,
     .max_in = 6,
     .min_out = 1,
     .max_out = 3,
     .attrs = attention_attrs,
     .precision = OP_NARROW,
     .flags = OP_TF32,
     .flops = flops_attention,
     .infer = infer_joined},
};
OP_TABLE(attention, rows);
