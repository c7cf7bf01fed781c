/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: convolutions, and ops that have a form with channels last. */
#include "graph/passes/layout.h"

#include <string.h>

static bool all_ones(const grt_op_desc *desc, const char *name)
{
    size_t n;
    const int64_t *v = grt_attr_ints(desc, name, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i] != 1)
            return false;
    return true;
}

/* Computed ones would have to be turned in each run. */
static bool has_constant_filters(const ir_node *node)
{
    const ir_value *w = ir_in(node, 1);
    return w && w->type.data;
}

/* A window of all channels along three dims, of float32 that products may not round. */
static bool is_strict_volume(const ir_node *node)
{
    enum { VOLUME = 5 };
    const ir_value *w = ir_in(node, 1);
    int64_t taps;
    if (w->type.rank != VOLUME || w->type.dtype != GRT_DTYPE_FLOAT ||
        grt_attr_int(&node->desc, "group", 1) != 1 ||
        !strcmp(grt_attr_string(&node->desc, "math", ""), "tf32"))
        return false;
    for (int32_t i = 2; i < VOLUME; i++)
        if (!grt_dim_is_const(node->graph->module->dims, w->type.dims[i], &taps) || taps == 1)
            return false;
    return true;
}

/* Measured (docs/measurements/cpu-math.md): one-dimensional convolutions that are dilated or have large
 * groups, and groups that are small on one side only, are faster as they are; not so large groups (with many
 * taps, or any number) and dilation with enough channels, where the target has kernels for them. */
static bool gains(const layout *l, const ir_node *node)
{
    enum { SMALL = 8, MANY_TAPS = 16, ENOUGH = 16 };
    int64_t taps;
    int64_t per_group, filters, group = grt_attr_int(&node->desc, "group", 1);
    const ir_value *w = ir_in(node, 1);
    const grt_dims *dims = node->graph->module->dims;
    if (!has_constant_filters(node) || w->type.rank < 3 ||
        !grt_dim_is_const(dims, w->type.dims[1], &per_group) ||
        !grt_dim_is_const(dims, w->type.dims[0], &filters))
        return false;
    if (l->context->target->traits->half_floats && is_strict_volume(node)) /* libraries have them as fast */
        return false;
    if (group > 1 && per_group <= SMALL && filters / group <= SMALL)
        return true;
    if (w->type.rank == 3 && group > 1 && l->context->target->traits->long_groups_last &&
        grt_dim_is_const(dims, w->type.dims[2], &taps) && taps >= MANY_TAPS)
        return per_group > SMALL;
    if (w->type.rank == 3 && group > 1 && l->context->target->traits->lines_in_groups_last &&
        per_group >= ENOUGH && filters / group >= ENOUGH && grt_dim_is_const(dims, w->type.dims[2], &taps) &&
        taps > 1)
        return all_ones(&node->desc, "dilations");
    if (w->type.rank == 3 && l->context->target->traits->dilated_lines_last && per_group >= ENOUGH &&
        filters >= ENOUGH)
        return group == 1;
    if (w->type.rank == 3)
        return group == 1 && all_ones(&node->desc, "dilations");
    return group == 1 || per_group == 1 || per_group >= SMALL;
}

static bool switch_window(layout *l, ir_node *node, int32_t residual)
{
    enum { MOST = 14 };
    ir_value *in[MOST] = {NULL};
    if (!layout_is_spatial(l, ir_in(node, 0)) || !layout_is_spatial(l, node->out[0]) || node->n_in > MOST)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, in[0], node);
    if (in[residual])
        in[residual] = layout_is_spatial(l, in[residual]) ? layout_twin_of(l, in[residual], node) : NULL;
    if (!in[0] || (ir_in(node, residual) && !in[residual]))
        return false;
    ir_node *made = layout_clone(node, "graphrt", node->n_in, in);
    if (made)
        ir_attr_set_string(made, "layout", "NHWC");
    return layout_adopt(l, node, made);
}

bool layout_switch_conv(layout *l, ir_node *node)
{
    enum { RESIDUAL = 3 };
    return gains(l, node) && switch_window(l, node, RESIDUAL);
}

bool layout_switch_qconv(layout *l, ir_node *node)
{
    enum { RESIDUAL = 9 };
    return switch_window(l, node, RESIDUAL);
}

/* Filters for each pixel, where they or the pixels have channels last already. */
bool layout_switch_pair(layout *l, ir_node *node)
{
    enum { FILTERS = 1 };
    return (layout_has_twin(ir_in(node, 0)) || layout_has_twin(ir_in(node, FILTERS))) &&
           switch_window(l, node, FILTERS);
}

/* A transposed convolution pays for the moves around it: each result is a sum of many products, and they
 * fill a vector. */
static bool sums_much(const ir_node *node)
{
    enum { MUCH = 512, FILTERS = 8 };
    const ir_value *w = ir_in(node, 1);
    size_t n;
    const int64_t *strides = grt_attr_ints(&node->desc, "strides", &n);
    double products = 1.0 / (double)grt_attr_int(&node->desc, "group", 1);
    for (int32_t i = 0; w && i < w->type.rank; i++) {
        int64_t dim;
        if (!grt_dim_is_const(node->graph->module->dims, w->type.dims[i], &dim) || (i == 1 && dim < FILTERS))
            return false;
        if (i == 1)
            continue;
        const bool apart = strides && i >= 2 && (size_t)(i - 2) < n;
        products *= (double)dim / (apart ? (double)strides[i - 2] : 1.0);
    }
    return w && products >= MUCH;
}

/* Ops whose form with channels last has the same parameters: pools, normalisations, transposed convolutions,
 * which may switch without need. */
bool layout_switch_form(layout *l, ir_node *node)
{
    enum { MOST = 5 };
    ir_value *in[MOST] = {NULL};
    if ((node->row->flags & OP_FILTERS) && !has_constant_filters(node))
        return false;
    if ((node->row->flags & OP_FILTERS) && l->context->target->traits->transposed_last && sums_much(node) &&
        layout_switch_conv(l, node))
        return true;
    if (node->n_out != 1 || !layout_take_inputs(l, node, in, MOST))
        return false;
    ir_node *made = layout_clone(node, "graphrt", node->n_in, in);
    if (made)
        ir_attr_set_string(made, "layout", "NHWC");
    return layout_adopt(l, node, made);
}
