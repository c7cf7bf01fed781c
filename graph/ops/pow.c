/* SPDX-License-Identifier: Apache-2.0 */
/* Pow, whose exponent may have a type of its own. */
#include "graph/ops/pointwise_rules.h"
#include <string.h>

static grt_status infer_float_or_int_power(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64)));
    GRT_TRY(pw_infer_dtype(inf, 1, GRT_SET_NUMBERS));
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(infer_broadcast(inf, 0, 2, &rank, &dims));
    infer_set(inf, 0, inf->in[0]->dtype, rank, dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Pow",
     .since = 15,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_POINTWISE,
     .precision = OP_WIDE,
     .infer = infer_float_or_int_power,
     .upgrade = pw_upgrade},
};
OP_TABLE(pow, rows);
