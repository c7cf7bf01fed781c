/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Roll: elements move along axes, and those that leave at one end come in at the other. */
#include "graph/ops/moves.h"

static grt_status infer_roll(infer *inf)
{
    const ir_type *data = inf->in[0];
    size_t n;
    const int64_t *shifts = grt_attr_ints(inf->desc, "shifts", &n);
    infer_set_like(inf, 0, data->dtype, data);
    if (data->rank >= 0 && (size_t)data->rank != n)
        return infer_fail(inf, "data has rank %d, and there are %zu shifts", data->rank, n);
    for (int32_t k = 0; k < (int32_t)n; k++) {
        int64_t size;
        const bool known = data->rank >= 0 && infer_const(inf, data->dims[k], &size);
        if (shifts[k] < 0 || (known && shifts[k] > 0 && shifts[k] >= size))
            return infer_fail(inf, "dim %d is shifted by %lld; expected 0 to its size, which is %lld", k,
                              (long long)shifts[k], known ? (long long)size : -1LL);
    }
    return GRT_OK;
}

/* out[i] = data[(i + shift) mod size] in each dim. */
static const op_attr attrs[] = {{"shifts", GRT_ATTR_INTS, true}, {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Roll",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .precision = OP_FOLLOWS,
     .layout = OP_LAYOUT_ROLL,
     .cost = OP_COST_MOVE,
     .infer = infer_roll},
};
OP_TABLE(roll, rows);
