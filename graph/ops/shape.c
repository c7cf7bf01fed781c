/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as data, and data from shapes: Shape, Size, ConstantOfShape, Range, EyeLike. */
#include "graph/ops/moves.h"

#include <math.h>

static int32_t clamp_axis(int64_t axis, int32_t rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 ? 0 : axis > rank ? rank : (int32_t)axis;
}

static grt_status infer_shape(infer *inf)
{
    const ir_type *data = inf->in[0];
    if (data->rank < 0) {
        infer_set_fresh(inf, 0, GRT_DTYPE_INT64, 1);
        return GRT_OK;
    }
    int32_t from = clamp_axis(grt_attr_int(inf->desc, "start", 0), data->rank);
    int32_t to = clamp_axis(grt_attr_int(inf->desc, "end", data->rank), data->rank);
    int32_t n = to > from ? to - from : 0;
    grt_dim *dims = infer_dims(inf, 1), *elems = infer_dims(inf, n);
    if (!dims || !elems)
        return GRT_OK;
    dims[0] = grt_dim_const(inf->dims, n);
    for (int32_t k = 0; k < n; k++)
        elems[k] = data->dims[from + k];
    infer_set(inf, 0, GRT_DTYPE_INT64, 1, dims);
    moves_set_elems(inf, 0, elems, n);
    return GRT_OK;
}

static grt_status infer_size(infer *inf)
{
    const ir_type *data = inf->in[0];
    infer_set(inf, 0, GRT_DTYPE_INT64, 0, infer_dims(inf, 0));
    grt_dim *elems = data->rank < 0 ? NULL : infer_dims(inf, 1);
    if (elems) {
        elems[0] = infer_product(inf, data->dims, 0, data->rank);
        moves_set_elems(inf, 0, elems, 1);
    }
    return GRT_OK;
}

/* A list of one number repeated: content of output 0 if that is short. */
static void set_repeated(infer *inf, grt_dim elem)
{
    int64_t n = 1;
    const ir_type *out = &inf->out[0];
    if (out->rank < 0 || out->rank > 1 || (out->rank == 1 && !infer_const(inf, out->dims[0], &n)) || n < 0 ||
        n > MOVES_MAX_ELEMS)
        return;
    grt_dim *elems = infer_dims(inf, (int32_t)n);
    for (int64_t k = 0; elems && k < n; k++)
        elems[k] = elem;
    moves_set_elems(inf, 0, elems, n);
}

static grt_status infer_constant_of_shape(infer *inf)
{
    const grt_tensor *value = grt_attr_tensor(inf->desc, "value");
    grt_dtype dtype = value ? value->dtype : GRT_DTYPE_FLOAT;
    if (value && grt_tensor_elements(value) != 1)
        return infer_fail(inf, "attribute value must have one element, found %lld",
                          (long long)grt_tensor_elements(value));
    const grt_dim *shape;
    int64_t n;
    if (!infer_elems(inf, 0, &shape, &n)) {
        moves_set_fresh_by(inf, dtype, 0);
        return GRT_OK;
    }
    GRT_TRY(moves_check_rank(inf, n));
    grt_dim *dims = infer_dims(inf, (int32_t)n);
    for (int64_t k = 0; dims && k < n; k++) {
        int64_t v;
        if (infer_const(inf, shape[k], &v) && v < 0)
            return infer_fail(inf, "dim %lld of the wanted shape is %lld; expected a size", (long long)k,
                              (long long)v);
        dims[k] = shape[k];
    }
    infer_set(inf, 0, dtype, (int32_t)n, dims);
    if (value && (dtype == GRT_DTYPE_INT64 || dtype == GRT_DTYPE_INT32))
        set_repeated(inf, grt_dim_const(inf->dims, grt_tensor_int(value, 0)));
    return GRT_OK;
}

/* Number of steps for integers, symbolic ones too; NONE if not known. */
static grt_status range_count_ints(infer *inf, const grt_dim *part[3], grt_dim *out_count)
{
    grt_dims *dims = inf->dims;
    int64_t start, limit, delta;
    *out_count = GRT_DIM_NONE;
    if (!infer_const(inf, part[2][0], &delta))
        return GRT_OK;
    if (delta == 0)
        return infer_fail(inf, "delta is 0; a range needs a step that is not");
    if (infer_const(inf, part[0][0], &start) && infer_const(inf, part[1][0], &limit)) {
        /* unsigned: the distance of two int64 always fits */
        uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
        bool any = delta > 0 ? limit > start : limit < start;
        uint64_t count = any ? (distance - 1) / step + 1 : 0;
        if (count > INT64_MAX)
            return infer_fail(inf, "the range has more than 2^63 elements");
        *out_count = grt_dim_const(dims, (int64_t)count);
        return GRT_OK;
    }
    grt_dim distance =
        delta > 0 ? grt_dim_sub(dims, part[1][0], part[0][0]) : grt_dim_sub(dims, part[0][0], part[1][0]);
    if (delta == INT64_MIN)
        return GRT_OK;
    *out_count =
        grt_dim_ceildiv(dims, moves_clamp(dims, distance), grt_dim_const(dims, delta > 0 ? delta : -delta));
    return GRT_OK;
}

static grt_status infer_range(infer *inf)
{
    grt_dtype dtype = inf->in[0]->dtype;
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    grt_dim *dims = infer_dims(inf, 1);
    if (!dims)
        return GRT_OK;
    dims[0] = GRT_DIM_NONE;
    const grt_dim *part[3];
    double value[3];
    int64_t n[3];
    bool ints = true, scalars = true;
    for (int32_t i = 0; i < 3; i++) {
        ints = ints && infer_elems(inf, i, &part[i], &n[i]) && n[i] == 1;
        scalars = scalars && infer_scalar(inf, i, &value[i]);
    }
    if (ints) {
        GRT_TRY(range_count_ints(inf, part, &dims[0]));
    } else if (scalars) {
        double count = ceil((value[1] - value[0]) / value[2]);
        if (!(fabs(count) < 0x1p62))
            return infer_fail(inf, "from %g to %g in steps of %g is no finite number of elements", value[0],
                              value[1], value[2]);
        dims[0] = grt_dim_const(inf->dims, count > 0 ? (int64_t)count : 0);
    }
    if (dims[0] == GRT_DIM_NONE)
        dims[0] = grt_dim_fresh(inf->dims);
    infer_set(inf, 0, dtype, 1, dims);
    int64_t count;
    if (ints && infer_const(inf, dims[0], &count) && count <= MOVES_MAX_ELEMS) {
        grt_dim *elems = infer_dims(inf, (int32_t)count);
        for (int64_t k = 0; elems && k < count; k++)
            elems[k] = k ? grt_dim_add(inf->dims, elems[k - 1], part[2][0]) : part[0][0];
        moves_set_elems(inf, 0, elems, count);
    }
    return GRT_OK;
}

static grt_status infer_eye_like(infer *inf)
{
    const ir_type *like = inf->in[0];
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "dtype", GRT_SET_NUMBERS | GRT_BIT(BOOL), like->dtype, &dtype));
    if (like->rank >= 0 && like->rank != 2)
        return infer_fail(inf, "the input must have rank 2, found rank %d", like->rank);
    if (like->rank < 0)
        infer_set_fresh(inf, 0, dtype, 2);
    else
        infer_set_like(inf, 0, dtype, like);
    return GRT_OK;
}

static const op_attr shape_attrs[] = {{"start", GRT_ATTR_INT, false}, {"end", GRT_ATTR_INT, false}, {0}};
static const op_attr fill_attrs[] = {{"value", GRT_ATTR_TENSOR, false}, {0}};
static const op_attr range_attrs[] = {{"stash_type", GRT_ATTR_INT, false}, {0}};
static const op_attr eye_attrs[] = {{"dtype", GRT_ATTR_INT, false}, {"k", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Shape",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = shape_attrs,
     .flags = OP_SMALL_INTS | OP_READS_DIMS,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_shape},
    {.domain = "",
     .name = "Size",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_SMALL_INTS | OP_READS_DIMS,
     .precision = OP_WIDE,
     .infer = infer_size},
    {.domain = "",
     .name = "ConstantOfShape",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = fill_attrs,
     .flags = OP_SMALL_INTS | OP_FILLS,
     .cost = OP_COST_MOVE,
     .infer = infer_constant_of_shape},
    {.domain = "",
     .name = "Range",
     .since = 27,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = range_attrs,
     .flags = OP_SMALL_INTS,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_range},
    {.domain = "",
     .name = "EyeLike",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = eye_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_eye_like},
};
OP_TABLE(shape, rows);
