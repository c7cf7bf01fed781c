/* SPDX-License-Identifier: Apache-2.0 */
/* Where. */
#include "graph/ops/pointwise_rules.h"
#include <string.h>

/* The branch that is known to be taken, element by element. */
static void where_elems(infer *inf)
{
    const grt_dim *from[3];
    int64_t n[3], length = 1, taken;
    ir_type *out = &inf->out[0];
    if (!grt_dtype_in(out->dtype, GRT_BIT(INT64) | GRT_BIT(INT32)) || out->rank < 0 || out->rank > 1)
        return;
    if (out->rank == 1 && !infer_const(inf, out->dims[0], &length))
        return;
    for (int32_t i = 0; i < 3; i++)
        if (!infer_elems(inf, i, &from[i], &n[i]))
            return;
    grt_dim *elems = infer_dims(inf, (int32_t)length);
    for (int64_t k = 0; elems && k < length; k++) {
        if (!infer_const(inf, from[0][n[0] == 1 ? 0 : k], &taken))
            return;
        int b = taken ? 1 : 2;
        elems[k] = from[b][n[b] == 1 ? 0 : k];
    }
    out->elems = elems;
    out->n_elems = length;
}

static grt_status infer_where(infer *inf)
{
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_BIT(BOOL)));
    GRT_TRY(infer_same_dtype(inf, 1, 2));
    GRT_TRY(infer_broadcast(inf, 0, 3, &rank, &dims));
    infer_set(inf, 0, inf->in[1]->dtype ? inf->in[1]->dtype : inf->in[2]->dtype, rank, dims);
    where_elems(inf);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Where",
     .since = 16,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_POINTWISE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE,
     .precision = OP_FOLLOWS,
     .infer = infer_where},
};
OP_TABLE(where, rows);
