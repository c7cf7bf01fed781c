/* SPDX-License-Identifier: Apache-2.0 */
/* Picking by index: Gather, GatherElements, GatherND, Compress. */
#include "graph/ops/moves.h"

static grt_status gather_elems(infer *inf)
{
    const grt_dim *elems;
    const int64_t *at;
    int64_t n, count;
    if (!moves_elems(inf, 0, &elems, &n) || inf->in[0]->rank != 1 || inf->out[0].rank > 1 ||
        !infer_ints(inf, 1, &at, &count) || count > MOVES_MAX_ELEMS)
        return GRT_OK;
    grt_dim *taken = infer_dims(inf, (int32_t)count);
    for (int64_t k = 0; taken && k < count; k++) {
        if (at[k] < -n || at[k] >= n)
            return infer_fail(inf, "index %lld at position %lld is out of range for an axis of size %lld",
                              (long long)at[k], (long long)k, (long long)n);
        taken[k] = elems[at[k] < 0 ? at[k] + n : at[k]];
    }
    moves_set_elems(inf, 0, taken, count);
    return GRT_OK;
}

/* Output `out` is what the indices pick of the data. */
static grt_status infer_picked(infer *inf, const ir_type *data, const ir_type *indices, int32_t out)
{
    if (data->rank < 0 || indices->rank < 0) {
        infer_set_unknown(inf, out, data->dtype);
        return GRT_OK;
    }
    int32_t axis, rank = data->rank + indices->rank - 1;
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), data->rank, &axis));
    GRT_TRY(moves_check_rank(inf, rank));
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0; dims && k < rank; k++)
        dims[k] = k < axis                   ? data->dims[k]
                  : k < axis + indices->rank ? indices->dims[k - axis]
                                             : data->dims[k - indices->rank + 1];
    infer_set(inf, out, data->dtype, rank, dims);
    return GRT_OK;
}

static grt_status infer_gather(infer *inf)
{
    GRT_TRY(infer_picked(inf, inf->in[0], inf->in[1], 0));
    return inf->in[0]->rank >= 0 && inf->out[0].rank >= 0 ? gather_elems(inf) : GRT_OK;
}

/* As many data as outputs, then their indices. */
static grt_status infer_gather_each(infer *inf)
{
    if (inf->n_in != 2 * inf->n_out)
        return infer_fail(inf, "%d inputs; %d outputs take %d", inf->n_in, inf->n_out, 2 * inf->n_out);
    for (int32_t i = 0; i < inf->n_out; i++) {
        GRT_TRY(infer_same_dtype(inf, 0, i));
        GRT_TRY(infer_picked(inf, inf->in[i], inf->in[inf->n_out + i], i));
    }
    return GRT_OK;
}

static grt_status infer_gather_elements(infer *inf)
{
    const ir_type *data = inf->in[0], *indices = inf->in[1];
    int32_t axis;
    if (data->rank >= 0) {
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), data->rank, &axis));
        if (indices->rank >= 0 && indices->rank != data->rank)
            return infer_fail(inf, "indices has rank %d; data has rank %d", indices->rank, data->rank);
        for (int32_t k = 0; k < indices->rank; k++) {
            int64_t x, y;
            if (k != axis && infer_const(inf, data->dims[k], &x) && infer_const(inf, indices->dims[k], &y) &&
                y > x)
                return infer_fail(inf, "indices has size %lld in dim %d, more than data's %lld", (long long)y,
                                  k, (long long)x);
        }
    }
    infer_set_like(inf, 0, data->dtype, indices);
    return GRT_OK;
}

static grt_status infer_gather_nd(infer *inf)
{
    const ir_type *data = inf->in[0], *indices = inf->in[1];
    int64_t batch = grt_attr_int(inf->desc, "batch_dims", 0), depth;
    if (data->rank < 0 || indices->rank < 0 ||
        (indices->rank > 0 && !infer_const(inf, indices->dims[indices->rank - 1], &depth))) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (indices->rank < 1 || data->rank < 1)
        return infer_fail(inf, "data and indices must have rank 1 at least, found ranks %d and %d",
                          data->rank, indices->rank);
    int32_t least = data->rank < indices->rank ? data->rank : indices->rank;
    if (batch < 0 || batch >= least)
        return infer_fail(inf, "attribute batch_dims is %lld; it must be in [0, %d]", (long long)batch,
                          least - 1);
    if (depth < 1 || depth > data->rank - batch)
        return infer_fail(inf, "the last dim of indices is %lld; data of rank %d allows 1 to %lld",
                          (long long)depth, data->rank, (long long)(data->rank - batch));
    int32_t lead = indices->rank - 1, skip = (int32_t)(batch + depth), rank = lead + data->rank - skip;
    GRT_TRY(moves_check_rank(inf, rank));
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0; dims && k < rank; k++)
        dims[k] = k < lead ? indices->dims[k] : data->dims[k - lead + skip];
    for (int32_t k = 0; k < batch; k++) {
        int64_t x, y;
        if (infer_const(inf, data->dims[k], &x) && infer_const(inf, indices->dims[k], &y) && x != y)
            return infer_fail(inf, "batch dim %d is %lld in data and %lld in indices", k, (long long)x,
                              (long long)y);
    }
    infer_set(inf, 0, data->dtype, rank, dims);
    return GRT_OK;
}

static const op_attr axis_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};

static const op_attr batch_attrs[] = {{"batch_dims", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Gather",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .flags = OP_SMALL_INTS | OP_PICKS,
     .precision = OP_NARROW_TABLE,
     .cost = OP_COST_MOVE,
     .infer = infer_gather},
    {.domain = "graphrt",
     .name = "GatherEach",
     .since = 1,
     .min_in = 2,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = axis_attrs,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .infer = infer_gather_each},
    {.domain = "",
     .name = "GatherElements",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .infer = infer_gather_elements},
    {.domain = "",
     .name = "GatherND",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = batch_attrs,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .infer = infer_gather_nd},
};
OP_TABLE(gather, rows);
