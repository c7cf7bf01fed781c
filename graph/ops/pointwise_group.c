/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise: a program of pointwise functions, evaluated element by element; graphrt::PointwiseParts
 * is the same with inputs that are parts of what they are read from, graphrt::PointwiseConcat with an operand
 * that is several inputs one behind the other. See pointwise.h. */
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

/* The input's type with the part's size along its axis. */
static grt_status infer_part(const infer *inf, int32_t i, ir_type *type)
{
    const pw_part part = grt_pointwise_part(inf->desc, i);
    int64_t size;
    *type = *inf->in[i];
    if (!part.axis || type->rank < 0)
        return GRT_OK;
    const int32_t axis = (int32_t)(type->rank - part.axis);
    if (axis < 0)
        return infer_fail(inf, "input %d has rank %d, but is read along axis -%lld", i, type->rank,
                          (long long)part.axis);
    if (infer_const(inf, type->dims[axis], &size) && part.start + part.size > size)
        return infer_fail(inf, "input %d is read up to %lld along axis %d, which has size %lld", i,
                          (long long)(part.start + part.size), axis, (long long)size);
    grt_dim *dims = infer_dims(inf, type->rank);
    for (int32_t k = 0; dims && k < type->rank; k++)
        dims[k] = k == axis ? grt_dim_const(inf->dims, part.size) : type->dims[k];
    if (dims)
        type->dims = dims;
    type->data = NULL;
    return GRT_OK;
}

static grt_status infer_parts(infer *inf)
{
    GRT_TRY(grt_pointwise_check_parts(inf->desc, inf->n_in));
    const size_t n = (size_t)inf->n_in;
    ir_type *types = grt_arena_alloc(inf->arena, n * sizeof *types);
    const ir_type **in = grt_arena_alloc(inf->arena, n * sizeof *in);
    infer parts = *inf;
    if (!types || !in)
        return GRT_OK; /* the caller sees that memory is out */
    parts.in = in;
    for (int32_t i = 0; i < inf->n_in; i++) {
        in[i] = infer_has(inf, i) ? &types[i] : NULL;
        if (in[i])
            GRT_TRY(infer_part(inf, i, &types[i]));
    }
    return infer_group(&parts);
}

/* The type of what the first inputs are together. */
static grt_status infer_first_operand(const infer *inf, int32_t joined, ir_type *type)
{
    *type = *inf->in[0];
    type->data = NULL;
    if (type->rank < 0)
        return GRT_OK;
    const int32_t last = type->rank - 1;
    grt_dim *dims = infer_dims(inf, type->rank);
    for (int32_t k = 0; dims && k <= last; k++)
        dims[k] = type->dims[k];
    for (int32_t i = 1; i < joined; i++) {
        const ir_type *in = inf->in[i];
        if (in->rank < 0) {
            type->rank = -1;
            return GRT_OK;
        }
        bool fits = in->rank == type->rank && last >= 0 && in->dtype == type->dtype;
        for (int32_t k = 0; fits && k < last; k++) {
            int64_t a, b;
            fits = !infer_const(inf, in->dims[k], &a) || !infer_const(inf, type->dims[k], &b) || a == b;
        }
        if (!fits)
            return infer_fail(inf, "input %d cannot be joined with the inputs before it along the last axis",
                              i);
        if (dims)
            dims[last] = grt_dim_add(inf->dims, dims[last], in->dims[last]);
    }
    if (dims)
        type->dims = dims;
    return GRT_OK;
}

static grt_status infer_concat_group(infer *inf)
{
    GRT_TRY(grt_pointwise_check_joined(inf->desc, inf->n_in));
    const int32_t joined = grt_pointwise_joined(inf->desc), n = inf->n_in - joined + 1;
    for (int32_t i = 0; i < joined; i++)
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
    ir_type *whole = grt_arena_alloc(inf->arena, sizeof *whole);
    const ir_type **in = grt_arena_alloc(inf->arena, (size_t)n * sizeof *in);
    infer operands = *inf;
    if (!whole || !in)
        return GRT_OK; /* the caller sees that memory is out */
    GRT_TRY(infer_first_operand(inf, joined, whole));
    in[0] = whole;
    for (int32_t i = 1; i < n; i++)
        in[i] = inf->in[joined + i - 1];
    operands.in = in;
    operands.n_in = n;
    return infer_group(&operands);
}

static const op_attr concat_attrs[] = {{"program", GRT_ATTR_INTS, true},
                                       {"constants", GRT_ATTR_FLOATS, false},
                                       {"to", GRT_ATTR_INT, false},
                                       {"joined", GRT_ATTR_INT, true},
                                       {0}};

static const op_attr parts_attrs[] = {{"program", GRT_ATTR_INTS, true},
                                      {"constants", GRT_ATTR_FLOATS, false},
                                      {"to", GRT_ATTR_INT, false},
                                      {"parts", GRT_ATTR_INTS, true},
                                      {0}};

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
    {.domain = "graphrt",
     .name = "PointwiseParts",
     .since = 1,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = parts_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_parts},
    {.domain = "graphrt",
     .name = "PointwiseConcat",
     .since = 1,
     .min_in = 2,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = concat_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_concat_group},
};
OP_TABLE(pointwise_group, rows);
