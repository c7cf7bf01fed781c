/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences over a sequence: LinearAttention, CausalConvWithState. */
#include "graph/ops/heads.h"

#include <string.h>

static const op_attr linear_attrs[] = {
    {"chunk_size", GRT_ATTR_INT, false},     {"kv_num_heads", GRT_ATTR_INT, true},
    {"q_num_heads", GRT_ATTR_INT, true},     {"scale", GRT_ATTR_FLOAT, false},
    {"update_rule", GRT_ATTR_STRING, false}, {0},
};

static const op_attr causal_conv_attrs[] = {{"activation", GRT_ATTR_STRING, false}, {0}};

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
    GRT_TRY(heads_split(inf, 0, "q_num_heads", &q));
    GRT_TRY(heads_split(inf, 1, "kv_num_heads", &k));
    GRT_TRY(heads_split(inf, 2, "kv_num_heads", &v));
    GRT_TRY(heads_check(inf, &q, &k, &v));
    heads_set_3d(inf, 0, dtype, q.batch, q.sequence, grt_dim_mul(inf->dims, q.n, v.size));
    heads_set_4d(inf, 1, state, k.batch, k.n, k.size, v.size);
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
    GRT_TRY(heads_same(inf, "channels of input and weight", x->dims[1], w->dims[0]));
    if (infer_const(inf, w->dims[2], &width) && width < 1)
        return infer_fail(inf, "the kernel's width is %lld; it must be positive", (long long)width);
    heads_set_3d(inf, 1, x->dtype, x->dims[0], x->dims[1], grt_dim_addc(inf->dims, w->dims[2], -1));
    return GRT_OK;
}

static const op_row rows[] = {
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
OP_TABLE(recurrent, rows);
