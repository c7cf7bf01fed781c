/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic of quantised models: ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul. */
#include "graph/ops/window.h"

static const op_attr conv_attrs[] = {CONV_ATTRS, {0}};

/* Conv's rule on data, weight and bias wherever this op has them; their dtypes may differ. */
static grt_status infer_conv_at(infer *inf, int32_t w_at, int32_t bias_at, grt_dtype out)
{
    ir_type x = *inf->in[0], w = *inf->in[w_at];
    const ir_type *in[] = {&x, &w, bias_at && infer_has(inf, bias_at) ? inf->in[bias_at] : NULL};
    infer plain = *inf;
    w.dtype = x.dtype;
    plain.in = in;
    plain.n_in = 3;
    GRT_TRY(infer_conv(&plain));
    inf->out[0].dtype = out;
    return GRT_OK;
}

static grt_status infer_conv_integer(infer *inf)
{
    return infer_conv_at(inf, 1, 0, GRT_DTYPE_INT32);
}

static grt_status infer_qlinear_conv(infer *inf)
{
    return infer_conv_at(inf, 3, 8, inf->in[7]->dtype);
}

/* Matrices [..., m, k] x [..., k, n] with leading dims broadcast; a vector is a row on the left, a column on
 * the right. */
static grt_status infer_matrices(infer *inf, int32_t b_at, grt_dtype dtype)
{
    const ir_type *a = inf->in[0], *b = inf->in[b_at];
    int64_t x, y;
    if (a->rank < 0 || b->rank < 0) {
        infer_set_unknown(inf, 0, dtype);
        return GRT_OK;
    }
    if (!a->rank || !b->rank)
        return infer_fail(inf, "matrices must have rank 1 or more, found %d and %d", a->rank, b->rank);
    grt_dim k_a = a->dims[a->rank - 1], k_b = b->dims[b->rank == 1 ? 0 : b->rank - 2];
    if (infer_const(inf, k_a, &x) && infer_const(inf, k_b, &y) && x != y)
        return infer_fail(inf, "the inner dims must be equal, found %lld and %lld", (long long)x,
                          (long long)y);
    ir_type lead_a = *a, lead_b = *b;
    lead_a.rank = a->rank < 2 ? 0 : a->rank - 2;
    lead_b.rank = b->rank < 2 ? 0 : b->rank - 2;
    const ir_type *leads[] = {&lead_a, &lead_b};
    infer lead = *inf;
    lead.in = leads;
    lead.n_in = 2;
    int32_t rank;
    const grt_dim *shared;
    GRT_TRY(infer_broadcast(&lead, 0, 2, &rank, &shared));
    grt_dim *dims = rank < 0 ? NULL : infer_dims(inf, rank + 2);
    for (int32_t i = 0; dims && i < rank; i++)
        dims[i] = shared[i];
    if (dims && a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (dims && b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    infer_set(inf, 0, dtype, rank, dims);
    return GRT_OK;
}

static grt_status infer_matmul_integer(infer *inf)
{
    return infer_matrices(inf, 1, GRT_DTYPE_INT32);
}

static grt_status infer_qlinear_matmul(infer *inf)
{
    return infer_matrices(inf, 3, inf->in[7]->dtype);
}

static const op_row rows[] = {
    {.domain = "",
     .name = "ConvInteger",
     .since = 10,
     .min_in = 2,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = conv_attrs,
     .ranges = window_ranges,
     .infer = infer_conv_integer},
    {.domain = "",
     .name = "MatMulInteger",
     .since = 10,
     .min_in = 2,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .infer = infer_matmul_integer},
    {.domain = "",
     .name = "QLinearConv",
     .since = 10,
     .min_in = 8,
     .max_in = 9,
     .min_out = 1,
     .max_out = 1,
     .attrs = conv_attrs,
     .ranges = window_ranges,
     .precision = OP_WIDE,
     .infer = infer_qlinear_conv},
    {.domain = "",
     .name = "QLinearMatMul",
     .since = 21,
     .min_in = 8,
     .max_in = 8,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_qlinear_matmul},
};
OP_TABLE(integer, rows);
