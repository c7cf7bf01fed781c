/* SPDX-License-Identifier: Apache-2.0 */
/* MeanVarianceNormalization: zero mean and unit variance over some axes. */
#include "graph/ir/op.h"

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

static const op_attr axes_attrs[] = {{"axes", GRT_ATTR_INTS, false}, {0}};

static const op_row rows[] = {
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
};
OP_TABLE(mvn, rows);
