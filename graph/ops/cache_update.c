/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::CacheUpdate(past, update, pads, write_indices): TensorScatter of Pad(past, pads). The border of
 * zeros lies behind the entries of `axis`; negative pads cut them off. */
#include "graph/ops/moves.h"

#include <string.h>

enum { PAST, UPDATE, PADS };

/* All pads but the one behind the axis are 0. */
static grt_status cache_update_check_pads(const infer *inf, const grt_dim *pads, int64_t n, int32_t axis)
{
    const int32_t rank = inf->in[PAST]->rank;
    int64_t pad;
    if (n != 2 * (int64_t)rank)
        return infer_fail(inf, "pads has %lld entries; past of rank %d needs %d", (long long)n, rank,
                          2 * rank);
    for (int32_t k = 0; k < 2 * rank; k++)
        if (k != rank + axis && (!infer_const(inf, pads[k], &pad) || pad != 0))
            return infer_fail(inf, "entry %d of pads is not 0: past is only padded behind axis %d", k, axis);
    return GRT_OK;
}

static grt_status cache_update_check_entries(const infer *inf, const grt_dim *dims, int32_t axis)
{
    const ir_type *past = inf->in[PAST], *update = inf->in[UPDATE];
    int64_t x, y;
    if (update->rank >= 0 && update->rank != past->rank)
        return infer_fail(inf, "update has rank %d; past has rank %d", update->rank, past->rank);
    for (int32_t k = 0; k < update->rank; k++)
        if (infer_const(inf, dims[k], &x) && infer_const(inf, update->dims[k], &y) &&
            (k == axis ? y > x : x != y))
            return infer_fail(inf, "dim %d is %lld in update and %lld in the result", k, (long long)y,
                              (long long)x);
    return GRT_OK;
}

static grt_status infer_cache_update(infer *inf)
{
    const ir_type *past = inf->in[PAST];
    const char *mode = grt_attr_string(inf->desc, "mode", "linear");
    const grt_dim *pads;
    int64_t n;
    int32_t axis;
    GRT_TRY(infer_same_dtype(inf, PAST, UPDATE));
    if (strcmp(mode, "linear") && strcmp(mode, "circular"))
        return infer_fail(inf, "attribute mode is '%s'; expected linear or circular", mode);
    if (past->rank < 0) {
        infer_set_unknown(inf, 0, past->dtype);
        return GRT_OK;
    }
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -2), past->rank, &axis));
    if (axis == 0)
        return infer_fail(inf, "attribute axis names the batch axis");
    if (!infer_elems(inf, PADS, &pads, &n)) {
        infer_set_fresh(inf, 0, past->dtype, past->rank);
        return GRT_OK;
    }
    GRT_TRY(cache_update_check_pads(inf, pads, n, axis));
    grt_dim *dims = infer_dims(inf, past->rank);
    if (!dims)
        return grt_fail_memory(0);
    memcpy(dims, past->dims, (size_t)past->rank * sizeof *dims);
    dims[axis] = grt_dim_add(inf->dims, dims[axis], pads[past->rank + axis]);
    GRT_TRY(cache_update_check_entries(inf, dims, axis));
    infer_set(inf, 0, past->dtype, past->rank, dims);
    return GRT_OK;
}

static const op_attr cache_update_attrs[] = {
    {"axis", GRT_ATTR_INT, false}, {"mode", GRT_ATTR_STRING, false}, {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "CacheUpdate",
     .since = 1,
     .min_in = 3,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = cache_update_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .infer = infer_cache_update},
};
OP_TABLE(cache_update, rows);
