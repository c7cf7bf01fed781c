/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: sums of products by labelled axes. */
#include "graph/ir/flops.h"
#include "graph/ops/einsum_pairs.h"
#include "graph/ops/moves.h"

#include "src/base/einsum.h"

/* Give label `label` the size `dim`; sizes must agree, 1 stretches. */
static grt_status einsum_size(const infer *inf, grt_dim *size, grt_dim dim, int32_t i, int32_t k)
{
    int64_t x, y;
    if (*size == GRT_DIM_NONE) {
        *size = dim;
        return GRT_OK;
    }
    if (infer_const(inf, *size, &x) && infer_const(inf, dim, &y) && x != y && x != 1 && y != 1)
        return infer_fail(inf, "equation '%s': dim %d of input %d is %lld where the same letter had %lld",
                          grt_attr_string(inf->desc, "equation", ""), k, i, (long long)y, (long long)x);
    *size = grt_dim_make(inf->dims, GRT_DIM_BROADCAST, *size, dim);
    return GRT_OK;
}

static grt_status infer_einsum(infer *inf)
{
    grt_dim sizes[GRT_EINSUM_LABELS];
    int8_t labels[GRT_MAX_RANK];
    int32_t ellipsis = 0, wide, rank;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        sizes[k] = GRT_DIM_NONE;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!inf->in[i])
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(infer_same_dtype(inf, 0, i));
        if (inf->in[i]->rank < 0) {
            infer_set_unknown(inf, 0, inf->in[0]->dtype);
            return GRT_OK;
        }
        GRT_TRY(grt_einsum_input(inf->desc, i, inf->n_in, inf->in[i]->rank, labels, &wide));
        ellipsis = wide > ellipsis ? wide : ellipsis;
        for (int32_t k = 0; k < inf->in[i]->rank; k++)
            GRT_TRY(einsum_size(inf, &sizes[labels[k]], inf->in[i]->dims[k], i, k));
    }
    GRT_TRY(grt_einsum_output(inf->desc, ellipsis, labels, &rank));
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0; dims && k < rank; k++)
        dims[k] = sizes[labels[k]];
    infer_set(inf, 0, inf->in[0]->dtype, rank, dims);
    return GRT_OK;
}

static const op_attr einsum_attrs[] = {{"equation", GRT_ATTR_STRING, true}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Einsum",
     .since = 28,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = einsum_attrs,
     .flags = OP_EXPANDS_ALWAYS | OP_TF32,
     .precision = OP_WIDE,
     .work = flops_einsum,
     .infer = infer_einsum,
     .expand = einsum_expand},
};
OP_TABLE(einsum, rows);
