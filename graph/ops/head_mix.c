/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::HeadMix: heads of scores that are mixed with each other ("talking heads"), the softmax between.
 *
 *   y = after * softmax(before * x) + bias
 *
 * x: [batch, heads, queries, keys]. before and after are matrices over heads, [to, from], each may be left
 * out; bias has a number for each head of y. The softmax goes along keys, and is there if attribute softmax
 * is 1; without it there is no `after`. */
#include "graph/ir/ir.h"

enum { BEFORE = 1, AFTER, BIAS, RANK = 4, HEADS = 1 };

static grt_status head_mix_check(const infer *inf, const char *what, grt_dim found, grt_dim heads)
{
    int64_t a, b;
    if (infer_const(inf, found, &a) && infer_const(inf, heads, &b) && a != b)
        return infer_fail(inf, "%s is for %lld heads; expected %lld", what, (long long)a, (long long)b);
    return GRT_OK;
}

/* Replaces the number of heads by what the matrix makes of them. */
static grt_status head_mix_through(const infer *inf, int32_t index, const char *what, grt_dim *heads)
{
    if (!infer_has(inf, index))
        return GRT_OK;
    const ir_type *matrix = inf->in[index];
    if (matrix->rank != 2)
        return infer_fail(inf, "%s has rank %d; it must be a matrix", what, matrix->rank);
    GRT_TRY(head_mix_check(inf, what, matrix->dims[1], *heads));
    *heads = matrix->dims[0];
    return GRT_OK;
}

static grt_status infer_head_mix(infer *inf)
{
    const ir_type *x = inf->in[0];
    if (x->rank != RANK)
        return infer_fail(inf, "the input has rank %d; it must be %d", x->rank, RANK);
    if (infer_has(inf, AFTER) && !grt_attr_int(inf->desc, "softmax", 0))
        return infer_fail(inf, "there is a matrix after the softmax, but attribute softmax is 0");
    for (int32_t i = BEFORE; i <= BIAS; i++)
        GRT_TRY(infer_same_dtype(inf, 0, i));
    grt_dim *dims = infer_dims(inf, RANK);
    if (!dims)
        return GRT_OK;
    for (int32_t i = 0; i < RANK; i++)
        dims[i] = x->dims[i];
    GRT_TRY(head_mix_through(inf, BEFORE, "the matrix before the softmax", &dims[HEADS]));
    GRT_TRY(head_mix_through(inf, AFTER, "the matrix after the softmax", &dims[HEADS]));
    if (infer_has(inf, BIAS)) {
        if (inf->in[BIAS]->rank != 1)
            return infer_fail(inf, "the bias has rank %d; it must be 1", inf->in[BIAS]->rank);
        GRT_TRY(head_mix_check(inf, "the bias", inf->in[BIAS]->dims[0], dims[HEADS]));
    }
    infer_set(inf, 0, x->dtype, RANK, dims);
    return GRT_OK;
}

static const op_attr head_mix_attrs[] = {{"softmax", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.name = "HeadMix",
     .domain = "graphrt",
     .since = 1,
     .min_in = 1,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = head_mix_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .infer = infer_head_mix},
};
OP_TABLE(head_mix, rows);
