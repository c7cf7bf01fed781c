/* SPDX-License-Identifier: Apache-2.0 */
/* Pools over windows and over whole images; and the forms with channels last that the layout pass makes. */
#include "graph/ir/ir.h"
#include "graph/ops/window.h"

#include <math.h>

static grt_status pool_check_rank(const infer *inf)
{
    const ir_type *x = inf->in[0];
    if (x->rank >= 0 && x->rank < 3)
        return infer_fail(
            inf, "the input has rank %d; it must be batch, channels and at least one spatial dim", x->rank);
    return GRT_OK;
}

static grt_status infer_pool(infer *inf)
{
    const ir_type *x = inf->in[0];
    GRT_TRY(pool_check_rank(inf));
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        infer_set_unknown(inf, 1, GRT_DTYPE_INT64);
        return GRT_OK;
    }
    const int32_t spatial = x->rank - 2, at = grt_channels_last(inf->desc) ? 1 : 2;
    const int64_t *shape;
    GRT_TRY(window_attr(inf, "kernel_shape", spatial, &shape));
    if (!shape)
        return infer_fail(inf, "attribute kernel_shape is missing");
    grt_dim *dims = infer_dims(inf, x->rank), *kernel = infer_dims(inf, spatial);
    if (!dims || !kernel)
        return GRT_OK;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int32_t i = 0; i < spatial; i++)
        kernel[i] = grt_dim_const(inf->dims, shape[i]);
    GRT_TRY(window_sizes(inf, spatial, x->dims + at, kernel, dims + at));
    infer_set(inf, 0, x->dtype, x->rank, dims);
    infer_set(inf, 1, GRT_DTYPE_INT64, x->rank, dims);
    return GRT_OK;
}

static grt_status infer_global(infer *inf)
{
    const ir_type *x = inf->in[0];
    GRT_TRY(pool_check_rank(inf));
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    const int32_t at = grt_channels_last(inf->desc) ? 1 : 2;
    grt_dim *dims = infer_dims(inf, x->rank);
    for (int32_t i = 0; dims && i < x->rank; i++)
        dims[i] = i >= at && i < at + x->rank - 2 ? grt_dim_const(inf->dims, 1) : x->dims[i];
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

/* Version 1 had p as a float. */
static grt_status upgrade_global_lp(ir_node *node, int32_t opset)
{
    (void)opset;
    const grt_attr *p = grt_attr_find(&node->desc, "p");
    if (p && p->kind == GRT_ATTR_FLOAT)
        ir_attr_set_int(node, "p", (int64_t)lrintf(p->f));
    return GRT_OK;
}

#define POOL_ATTRS                                                                  \
    {"auto_pad", GRT_ATTR_STRING, false}, {"ceil_mode", GRT_ATTR_INT, false},       \
        {"dilations", GRT_ATTR_INTS, false}, {"kernel_shape", GRT_ATTR_INTS, true}, \
        {"pads", GRT_ATTR_INTS, false},                                             \
    {                                                                               \
        "strides", GRT_ATTR_INTS, false                                             \
    }
#define LAYOUT                           \
    {                                    \
        "layout", GRT_ATTR_STRING, false \
    }
#define END            \
    {                  \
        NULL, 0, false \
    }

static const op_attr max_attrs[] = {POOL_ATTRS, {"storage_order", GRT_ATTR_INT, false}, END};
static const op_attr average_attrs[] = {POOL_ATTRS, {"count_include_pad", GRT_ATTR_INT, false}, END};
static const op_attr lp_attrs[] = {{"p", GRT_ATTR_INT, false}, END};
static const op_attr max_last_attrs[] = {POOL_ATTRS, LAYOUT, END};
static const op_attr average_last_attrs[] = {
    POOL_ATTRS, {"count_include_pad", GRT_ATTR_INT, false}, LAYOUT, END};
static const op_attr global_last_attrs[] = {LAYOUT, END};

#define ONE_TO_ONE .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1

static const op_row rows[] = {
    {.domain = "",
     .name = "MaxPool",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 2,
     .attrs = max_attrs,
     .ranges = window_ranges,
     .flags = OP_PICKS,
     .precision = OP_FOLLOWS,
     .layout = OP_LAYOUT_FORM,
     .infer = infer_pool},
    {.domain = "",
     .name = "AveragePool",
     .since = 22,
     ONE_TO_ONE,
     .attrs = average_attrs,
     .ranges = window_ranges,
     .precision = OP_FOLLOWS,
     .layout = OP_LAYOUT_FORM,
     .infer = infer_pool},
    {.domain = "",
     .name = "GlobalAveragePool",
     .since = 22,
     ONE_TO_ONE,
     .precision = OP_FOLLOWS,
     .layout = OP_LAYOUT_FORM,
     .infer = infer_global},
    {.domain = "",
     .name = "GlobalMaxPool",
     .since = 22,
     ONE_TO_ONE,
     .precision = OP_FOLLOWS,
     .infer = infer_global},
    {.domain = "",
     .name = "GlobalLpPool",
     .since = 22,
     ONE_TO_ONE,
     .attrs = lp_attrs,
     .precision = OP_WIDE,
     .infer = infer_global,
     .upgrade = upgrade_global_lp},
    {.domain = "graphrt",
     .name = "MaxPool",
     .since = 1,
     ONE_TO_ONE,
     .attrs = max_last_attrs,
     .ranges = window_ranges,
     .precision = OP_FOLLOWS,
     .infer = infer_pool},
    {.domain = "graphrt",
     .name = "AveragePool",
     .since = 1,
     ONE_TO_ONE,
     .attrs = average_last_attrs,
     .ranges = window_ranges,
     .precision = OP_FOLLOWS,
     .infer = infer_pool},
    {.domain = "graphrt",
     .name = "GlobalAveragePool",
     .since = 1,
     ONE_TO_ONE,
     .attrs = global_last_attrs,
     .precision = OP_FOLLOWS,
     .infer = infer_global},
};
OP_TABLE(pool, rows);
