/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulated along one axis, shape unchanged: CumSum, CumProd. */
#include "graph/ir/op.h"

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

static const op_attr cumulate_attrs[] = {
    {"exclusive", GRT_ATTR_INT, false}, {"reverse", GRT_ATTR_INT, false}, {0}};

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
};
OP_TABLE(cumulate, rows);
