/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons and tests that take more than numbers, or have attributes: Equal, IsNaN, IsInf. */
#include "graph/ops/pointwise_rules.h"
#include <string.h>

static grt_status infer_equal(infer *inf)
{
    GRT_TRY(pw_infer_broadcast(inf, GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_BIT(STRING), GRT_DTYPE_BOOL));
    pw_infer_elems(inf);
    return GRT_OK;
}

static grt_status infer_test(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_FLOATS | (GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0))));
    infer_set_like(inf, 0, GRT_DTYPE_BOOL, inf->in[0]);
    return GRT_OK;
}

static const op_attr inf_attrs[] = {
    {"detect_negative", GRT_ATTR_INT, false}, {"detect_positive", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Equal",
     .since = 19,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_POINTWISE | OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE,
     .precision = OP_WIDE,
     .infer = infer_equal,
     .upgrade = pw_upgrade},
    {.domain = "",
     .name = "IsNaN",
     .since = 20,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_POINTWISE,
     .precision = OP_WIDE,
     .infer = infer_test},
    {.domain = "",
     .name = "IsInf",
     .since = 20,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_POINTWISE,
     .precision = OP_WIDE,
     .infer = infer_test,
     .attrs = inf_attrs},
};
OP_TABLE(compare, rows);
