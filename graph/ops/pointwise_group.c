/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise: a program of pointwise functions, evaluated element by element. See pointwise.h. */
#include "graph/ops/pointwise.h"

#include "graph/ops/pointwise_rules.h"

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

static grt_status infer_group(infer *inf)
{
    size_t n;
    grt_dtype to, dtype = GRT_DTYPE_NONE;
    GRT_TRY(grt_pointwise_check(inf->desc, inf->n_in));
    GRT_TRY(infer_dtype_attr(inf, "to", FLOATS | GRT_BIT(BOOL), GRT_DTYPE_NONE, &to));
    const int64_t *program = grt_attr_ints(inf->desc, "program", &n);
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(pw_infer_dtype(inf, i, FLOATS | GRT_BIT(BOOL)));
        grt_dtype found = inf->in[i]->dtype;
        if (found == GRT_DTYPE_BOOL || !found)
            continue;
        if (dtype && found != dtype && !to)
            return infer_fail(inf, "input %d is %s, but an input before it is %s", i, grt_dtype_name(found),
                              grt_dtype_name(dtype));
        dtype = found;
    }
    if (to)
        dtype = to;
    else if (grt_pointwise_info((int32_t)program[n - 4])->truth)
        dtype = GRT_DTYPE_BOOL;
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(infer_broadcast(inf, 0, inf->n_in, &rank, &dims));
    infer_set(inf, 0, dtype ? dtype : GRT_DTYPE_FLOAT, rank, dims);
    return GRT_OK;
}

static const op_attr group_attrs[] = {{"program", GRT_ATTR_INTS, true},
                                      {"constants", GRT_ATTR_FLOATS, false},
                                      {"to", GRT_ATTR_INT, false},
                                      {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Pointwise",
     .since = 1,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = group_attrs,
     .flags = OP_POINTWISE,
     .precision = OP_WIDE,
     .infer = infer_group},
};
OP_TABLE(pointwise_group, rows);
