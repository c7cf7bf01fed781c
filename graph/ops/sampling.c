/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of other kinds: DeformConv, LpPool, MaxUnpool. */
#include "graph/ir/ir.h"
#include "graph/ops/window.h"

#include <math.h>

static const op_attr deform_attrs[] = {
    {"dilations", GRT_ATTR_INTS, false},
    {"group", GRT_ATTR_INT, false},
    {"kernel_shape", GRT_ATTR_INTS, false},
    {"offset_group", GRT_ATTR_INT, false},
    {"pads", GRT_ATTR_INTS, false},
    {"strides", GRT_ATTR_INTS, false},
    {0},
};
static const op_attr lp_attrs[] = {
    {"auto_pad", GRT_ATTR_STRING, false}, {"ceil_mode", GRT_ATTR_INT, false},
    {"dilations", GRT_ATTR_INTS, false},  {"kernel_shape", GRT_ATTR_INTS, true},
    {"p", GRT_ATTR_INT, false},           {"pads", GRT_ATTR_INTS, false},
    {"strides", GRT_ATTR_INTS, false},    {0},
};
static const op_attr unpool_attrs[] = {
    {"kernel_shape", GRT_ATTR_INTS, true},
    {"pads", GRT_ATTR_INTS, false},
    {"strides", GRT_ATTR_INTS, false},
    {0},
};

/* What a pool left out is not put back: its padding cannot be negative. */
static const op_range unpool_ranges[] = {
    {"kernel_shape", 1, INT32_MAX}, {"pads", 0, INT32_MAX}, {"strides", 1, INT32_MAX}, {0}};

/* Inputs x, w, offset, bias, mask. */
static grt_status infer_deform(infer *inf)
{
    const ir_type *in[] = {inf->in[0], inf->in[1], infer_has(inf, 3) ? inf->in[3] : NULL};
    infer plain = *inf;
    plain.in = in;
    plain.n_in = 3;
    for (int32_t i = 1; i < inf->n_in; i++)
        GRT_TRY(infer_same_dtype(inf, 0, i));
    return infer_conv(&plain);
}

static grt_status spatial_rank(const infer *inf, const ir_type *x)
{
    if (x->rank >= 0 && x->rank < 3)
        return infer_fail(
            inf, "the input has rank %d; it must be batch, channels and at least one spatial dim", x->rank);
    return GRT_OK;
}

static grt_status infer_lp_pool(infer *inf)
{
    const ir_type *x = inf->in[0];
    const int64_t *shape;
    GRT_TRY(spatial_rank(inf, x));
    if (grt_attr_int(inf->desc, "p", 2) < 1)
        return infer_fail(inf, "attribute p is %lld; it must be positive",
                          (long long)grt_attr_int(inf->desc, "p", 2));
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    GRT_TRY(window_attr(inf, "kernel_shape", x->rank - 2, &shape));
    grt_dim *dims = infer_dims(inf, x->rank), *kernel = infer_dims(inf, x->rank - 2);
    if (!shape)
        return infer_fail(inf, "attribute kernel_shape is missing");
    if (!dims || !kernel)
        return GRT_OK;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int32_t i = 0; i < x->rank - 2; i++)
        kernel[i] = grt_dim_const(inf->dims, shape[i]);
    GRT_TRY(window_sizes(inf, x->rank - 2, x->dims + 2, kernel, dims + 2));
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

/* Before opset 2, p was a float. */
static grt_status upgrade_lp_pool(ir_node *node, int32_t opset)
{
    const grt_attr *p = grt_attr_find(&node->desc, "p");
    if (opset < 2 && p && p->kind == GRT_ATTR_FLOAT)
        ir_attr_set_int(node, "p", (int64_t)lrintf(p->f));
    return GRT_OK;
}

/* The given shape, or the sizes that a pool with these attributes would turn into x's. */
static grt_status infer_unpool(infer *inf)
{
    const ir_type *x = inf->in[0];
    const int64_t *kernel, *strides, *pads;
    const grt_dim *given;
    int64_t n_given;
    GRT_TRY(spatial_rank(inf, x));
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    int32_t spatial = x->rank - 2;
    if (infer_has(inf, 2)) {
        infer_set_fresh(inf, 0, x->dtype, x->rank);
        if (!infer_elems(inf, 2, &given, &n_given))
            return GRT_OK;
        if (n_given != x->rank)
            return infer_fail(inf, "output_shape has %lld elements; the input has rank %d",
                              (long long)n_given, x->rank);
        infer_set(inf, 0, x->dtype, x->rank, given);
        return GRT_OK;
    }
    GRT_TRY(window_attr(inf, "kernel_shape", spatial, &kernel));
    GRT_TRY(window_attr(inf, "strides", spatial, &strides));
    GRT_TRY(window_attr(inf, "pads", 2 * spatial, &pads));
    grt_dim *dims = infer_dims(inf, x->rank);
    if (!kernel)
        return infer_fail(inf, "attribute kernel_shape is missing");
    if (!dims)
        return GRT_OK;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int32_t i = 0; i < spatial; i++) {
        grt_dim last =
            grt_dim_mulc(inf->dims, grt_dim_addc(inf->dims, x->dims[2 + i], -1), strides ? strides[i] : 1);
        dims[2 + i] = grt_dim_addc(inf->dims, last, kernel[i] - (pads ? pads[i] + pads[spatial + i] : 0));
    }
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "DeformConv",
     .since = 22,
     .min_in = 3,
     .max_in = 5,
     .min_out = 1,
     .max_out = 1,
     .attrs = deform_attrs,
     .ranges = window_ranges,
     .precision = OP_WIDE,
     .infer = infer_deform},
    {.domain = "",
     .name = "LpPool",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = lp_attrs,
     .ranges = window_ranges,
     .precision = OP_WIDE,
     .infer = infer_lp_pool,
     .upgrade = upgrade_lp_pool},
    {.domain = "",
     .name = "MaxUnpool",
     .since = 22,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = unpool_attrs,
     .ranges = unpool_ranges,
     .precision = OP_WIDE,
     .infer = infer_unpool},
};
OP_TABLE(sampling, rows);
