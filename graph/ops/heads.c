/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/heads.h"

grt_status heads_split(const infer *inf, int32_t i, const char *attr, heads *out)
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

grt_status heads_same(const infer *inf, const char *what, grt_dim a, grt_dim b)
{
    int64_t x, y;
    if (infer_const(inf, a, &x) && infer_const(inf, b, &y) && x != y)
        return infer_fail(inf, "%s must be equal, found %lld and %lld", what, (long long)x, (long long)y);
    return GRT_OK;
}

grt_status heads_check(const infer *inf, const heads *q, const heads *k, const heads *v)
{
    int64_t n_q, n_kv;
    GRT_TRY(heads_same(inf, "batch sizes of Q and K", q->batch, k->batch));
    GRT_TRY(heads_same(inf, "batch sizes of Q and V", q->batch, v->batch));
    GRT_TRY(heads_same(inf, "head sizes of Q and K", q->size, k->size));
    GRT_TRY(heads_same(inf, "head counts of K and V", k->n, v->n));
    GRT_TRY(heads_same(inf, "sequence lengths of K and V", k->sequence, v->sequence));
    if (infer_const(inf, q->n, &n_q) && infer_const(inf, k->n, &n_kv) && (!n_kv ? n_q != 0 : n_q % n_kv))
        return infer_fail(inf, "Q has %lld heads, which is no multiple of the %lld heads of K and V",
                          (long long)n_q, (long long)n_kv);
    return GRT_OK;
}

void heads_set_4d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c, grt_dim d)
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

void heads_set_3d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c)
{
    grt_dim *dims = infer_dims(inf, 3);
    if (!dims)
        return;
    dims[0] = a;
    dims[1] = b;
    dims[2] = c;
    infer_set(inf, i, dtype, 3, dims);
}
