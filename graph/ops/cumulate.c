/* SPDX-License-Identifier: Apache-2.0 */
/* Along one axis, shape unchanged: CumSum, CumProd, LpNormalization; and MeanVarianceNormalization, Det. */
#include "graph/ops/moves.h"

static grt_status infer_cumulate(infer *inf)
{
    const int64_t *axis;
    int64_t n;
    int32_t normal;
    if (inf->in[0]->rank >= 0 && infer_ints(inf, 1, &axis, &n)) {
        if (n != 1)
            return infer_fail(inf, "axis must have one element, found %lld", (long long)n);
        GRT_TRY(infer_axis(inf, "axis", axis[0], inf->in[0]->rank, &normal));
    }
    return infer_same_as_first(inf);
}

static grt_status infer_mvn(infer *inf)
{
    static const int64_t usual[] = {0, 2, 3};
    size_t n;
    const int64_t *axes = grt_attr_ints(inf->desc, "axes", &n);
    if (!axes)
        axes = usual, n = 3;
    int32_t axis;
    for (size_t k = 0; inf->in[0]->rank >= 0 && k < n; k++)
        GRT_TRY(infer_axis(inf, "an entry of axes", axes[k], inf->in[0]->rank, &axis));
    return infer_same_as_first(inf);
}

static grt_status infer_det(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t rows, cols;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (data->rank < 2)
        return infer_fail(inf, "the input must have rank 2 at least, found rank %d", data->rank);
    if (infer_const(inf, data->dims[data->rank - 2], &rows) &&
        infer_const(inf, data->dims[data->rank - 1], &cols) && rows != cols)
        return infer_fail(inf, "matrices must be square, found %lld x %lld", (long long)rows,
                          (long long)cols);
    infer_set(inf, 0, data->dtype, data->rank - 2, data->dims);
    return GRT_OK;
}

static const op_attr cumulate_attrs[] = {
    {"exclusive", GRT_ATTR_INT, false}, {"reverse", GRT_ATTR_INT, false}, {0}};

static const op_attr norm_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"p", GRT_ATTR_INT, false}, {0}};

static const op_attr axes_attrs[] = {{"axes", GRT_ATTR_INTS, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "CumSum",
     .since = 14,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = cumulate_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_cumulate},
    {.domain = "",
     .name = "CumProd",
     .since = 26,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = cumulate_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_cumulate},
    {.domain = "",
     .name = "LpNormalization",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = norm_attrs,
     .precision = OP_FOLLOWS,
     .infer = moves_along_axis},
    {.domain = "",
     .name = "MeanVarianceNormalization",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = axes_attrs,
     .precision = OP_WIDE,
     .infer = infer_mvn},
    {.domain = "",
     .name = "Det",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_det},
};
OP_TABLE(cumulate, rows);
