/* SPDX-License-Identifier: Apache-2.0 */
/* Picking and marking elements: NonZero, OneHot, Trilu, ReverseSequence, Compress. */
#include "graph/ops/moves.h"

static grt_status infer_non_zero(infer *inf)
{
    const ir_type *data = inf->in[0];
    infer_set_fresh(inf, 0, GRT_DTYPE_INT64, 2);
    if (data->rank >= 0 && inf->out[0].dims)
        ((grt_dim *)inf->out[0].dims)[0] = grt_dim_const(inf->dims, data->rank);
    return GRT_OK;
}

static grt_status select_infer_one_hot(infer *inf)
{
    const ir_type *indices = inf->in[0], *values = inf->in[2];
    const grt_dim *depth;
    int64_t n, axis = grt_attr_int(inf->desc, "axis", -1);
    double number;
    if (indices->rank < 0) {
        infer_set_unknown(inf, 0, values->dtype);
        return GRT_OK;
    }
    int32_t rank = indices->rank + 1, at;
    GRT_TRY(moves_check_rank(inf, rank));
    GRT_TRY(infer_axis(inf, "attribute axis", axis, rank, &at));
    grt_dim *dims = infer_dims(inf, rank);
    if (!dims)
        return GRT_OK;
    for (int32_t k = 0; k < rank; k++)
        dims[k] = k < at ? indices->dims[k] : k > at ? indices->dims[k - 1] : GRT_DIM_NONE;
    if (infer_elems(inf, 1, &depth, &n) && n == 1)
        dims[at] = depth[0];
    else if (infer_scalar(inf, 1, &number) && number < 0x1p62 && number > -0x1p62)
        dims[at] = grt_dim_const(inf->dims, (int64_t)number);
    else
        dims[at] = grt_dim_fresh(inf->dims);
    if (infer_const(inf, dims[at], &n) && n < 0)
        return infer_fail(inf, "depth is %lld; expected a size", (long long)n);
    infer_set(inf, 0, values->dtype, rank, dims);
    return GRT_OK;
}

static grt_status infer_trilu(infer *inf)
{
    if (inf->in[0]->rank == 0 || inf->in[0]->rank == 1)
        return infer_fail(inf, "the input must have rank 2 at least, found rank %d", inf->in[0]->rank);
    return infer_same_as_first(inf);
}

static grt_status infer_reverse_sequence(infer *inf)
{
    const ir_type *data = inf->in[0], *lens = inf->in[1];
    int64_t batch = grt_attr_int(inf->desc, "batch_axis", 1), time = grt_attr_int(inf->desc, "time_axis", 0);
    if (data->rank == 0 || data->rank == 1)
        return infer_fail(inf, "the input must have rank 2 at least, found rank %d", data->rank);
    if ((batch != 0 && batch != 1) || (time != 0 && time != 1) || batch == time)
        return infer_fail(inf, "batch_axis is %lld and time_axis %lld; they must be 0 and 1 in some order",
                          (long long)batch, (long long)time);
    if (lens->rank >= 0 && lens->rank != 1)
        return infer_fail(inf, "sequence_lens must have rank 1, found rank %d", lens->rank);
    int64_t x, y;
    if (data->rank >= 0 && lens->rank == 1 && infer_const(inf, data->dims[batch], &x) &&
        infer_const(inf, lens->dims[0], &y) && x != y)
        return infer_fail(inf, "sequence_lens has %lld entries for a batch of %lld", (long long)y,
                          (long long)x);
    return infer_same_as_first(inf);
}

static const op_attr axis_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};

static const op_attr trilu_attrs[] = {{"upper", GRT_ATTR_INT, false}, {0}};

static const op_attr reverse_attrs[] = {
    {"batch_axis", GRT_ATTR_INT, false}, {"time_axis", GRT_ATTR_INT, false}, {0}};

static grt_status infer_compress(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_attr *attr = grt_attr_find(inf->desc, "axis");
    if (!attr) {
        infer_set_fresh(inf, 0, data->dtype, 1);
        return GRT_OK;
    }
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    int32_t axis;
    GRT_TRY(infer_axis(inf, "attribute axis", attr->i, data->rank, &axis));
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = k == axis ? grt_dim_fresh(inf->dims) : data->dims[k];
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "NonZero",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .flags = OP_SELECTS,
     .infer = infer_non_zero},
    {.domain = "",
     .name = "OneHot",
     .since = 28,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = select_infer_one_hot},
    {.domain = "",
     .name = "Trilu",
     .since = 14,
     .min_in = 1,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = trilu_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_trilu},
    {.domain = "",
     .name = "ReverseSequence",
     .since = 28,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = reverse_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_reverse_sequence},
    {.domain = "",
     .name = "Compress",
     .since = 28,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .flags = OP_SELECTS,
     .infer = infer_compress},
};
OP_TABLE(select, rows);
