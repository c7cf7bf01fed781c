/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: ops that work in either layout, along other axes. */
#include "graph/passes/layout.h"

#include <string.h>

static bool is_one_element(const ir_node *node, const ir_value *value)
{
    for (int32_t i = 0; i < value->type.rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, value->type.dims[i], 1))
            return false;
    return value->type.rank >= 0;
}

/* A constant of lower rank, seen as one of full rank (leading dims of 1). */
static ir_value *at_full_rank(layout *l, ir_value *value, int32_t rank)
{
    if (value->type.rank == rank || !value->type.data)
        return value->type.rank == rank ? value : NULL;
    grt_tensor t = *value->type.data;
    int32_t more = rank - t.rank;
    memmove(t.dims + more, t.dims, (size_t)t.rank * sizeof *t.dims);
    for (int32_t i = 0; i < more; i++)
        t.dims[i] = 1;
    t.rank = rank;
    const grt_tensor *kept = grt_arena_memdup(l->context->module->arena, &t, sizeof t);
    return kept ? ir_constant(l->graph, NULL, kept) : NULL;
}

/* Switching pays if at least as many of the large inputs have twins as have none. */
static bool pays(const layout *l, const ir_node *node)
{
    int32_t with = 0, without = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (layout_has_twin(value))
            with++;
        else if (value && !value->type.data && layout_is_spatial(l, value))
            without++;
    }
    return with && with >= without;
}

bool layout_switch_pointwise(layout *l, ir_node *node)
{
    enum { MOST = 8 };
    ir_value *in[MOST] = {NULL};
    int32_t rank = node->out[0]->type.rank;
    if (node->n_in > MOST || !layout_is_spatial(l, node->out[0]) || !pays(l, node))
        return false;
    for (int32_t i = 0; i < node->n_in; i++) { /* look first, so that nothing is made in vain */
        const ir_value *value = node->in[i].value;
        if (value && !is_one_element(node, value) && value->type.rank != rank &&
            !(value->type.data && value->type.rank >= 0))
            return false;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        ir_value *value = node->in[i].value;
        if (!value || (is_one_element(node, value) && value->type.rank != rank)) {
            in[i] = value;
            continue;
        }
        value = at_full_rank(l, value, rank);
        in[i] = value ? layout_twin_of(l, value, node) : NULL;
        if (!in[i])
            return false;
    }
    return layout_adopt(l, node, layout_clone(node, node->desc.domain, node->n_in, in));
}

/* Scales and zero points per channel stay with the usual layout. */
bool layout_switch_scaled(layout *l, ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (value && !is_one_element(node, value) && !layout_is_spatial(l, value))
            return false;
    }
    return layout_switch_pointwise(l, node);
}

/* Input 0 switches, the others stay. */
bool layout_switch_first(layout *l, ir_node *node)
{
    enum { MOST = 8 };
    ir_value *in[MOST] = {NULL};
    return layout_take_inputs(l, node, in, MOST) &&
           layout_adopt(l, node, layout_clone(node, node->desc.domain, node->n_in, in));
}

bool layout_switch_concat(layout *l, ir_node *node)
{
    int32_t rank = node->out[0]->type.rank;
    if (!layout_is_spatial(l, node->out[0]) || !pays(l, node))
        return false;
    int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), rank);
    ir_value **in = GRT_ARENA_ARRAY(l->context->module->arena, ir_value *, node->n_in);
    for (int32_t i = 0; in && i < node->n_in; i++)
        if (!layout_is_spatial(l, node->in[i].value) || !(in[i] = layout_twin_of(l, node->in[i].value, node)))
            return false;
    if (!in || axis < 0)
        return false;
    ir_node *made = layout_clone(node, "", node->n_in, in);
    if (made)
        ir_attr_set_int(made, "axis", layout_to_last((int32_t)axis, rank));
    return layout_adopt(l, node, made);
}

/* Split: input 0 switches, the lengths stay. */
bool layout_switch_split(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    if (!layout_has_twin(x))
        return false;
    int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), x->type.rank);
    ir_value *in[2] = {layout_twin_of(l, x, node), ir_in(node, 1)};
    ir_node *made = axis < 0 ? NULL : layout_clone(node, "", node->n_in < 2 ? node->n_in : 2, in);
    if (made)
        ir_attr_set_int(made, "axis", layout_to_last((int32_t)axis, x->type.rank));
    return layout_adopt(l, node, made);
}

/* Where n axes (NULL: the first n) are with channels last. False: one is no axis. */
static bool axes_moved(const int64_t *axes, int64_t n, int32_t rank, int64_t *out_moved)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = axes ? grt_axis(axes[i], rank) : i;
        if (axis < 0)
            return false;
        out_moved[i] = layout_to_last((int32_t)axis, rank);
    }
    return true;
}

/* Pad and Slice along all axes, or along those that a constant lists. */
bool layout_switch_slice(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0), *in[5] = {NULL};
    const int64_t *axes;
    int64_t n, moved[GRT_MAX_RANK];
    if (!layout_has_twin(x) || !ir_const_ints(ir_in(node, 3), &axes, &n) || n > x->type.rank ||
        !axes_moved(axes, n, x->type.rank, moved) || !layout_take_inputs(l, node, in, 5))
        return false;
    in[3] = ir_constant_ints(node->graph, node->desc.name, moved, n);
    return in[3] && layout_adopt(l, node, layout_clone(node, "", node->n_in, in));
}

bool layout_switch_pad(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    const int64_t *pads;
    int64_t n, moved[2 * GRT_MAX_RANK];
    if (!layout_has_twin(x) || ir_in(node, 3) || !ir_const_ints(ir_in(node, 1), &pads, &n) ||
        n != 2 * x->type.rank)
        return false;
    for (int32_t i = 0; i < x->type.rank; i++) {
        moved[layout_to_last(i, x->type.rank)] = pads[i];
        moved[x->type.rank + layout_to_last(i, x->type.rank)] = pads[x->type.rank + i];
    }
    ir_value *in[3] = {layout_twin_of(l, x, node), ir_constant_ints(node->graph, node->desc.name, moved, n),
                       ir_in(node, 2)};
    return in[1] && layout_adopt(l, node, layout_clone(node, "", node->n_in < 3 ? node->n_in : 3, in));
}

bool layout_switch_roll(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    size_t n;
    const int64_t *shifts = grt_attr_ints(&node->desc, "shifts", &n);
    int64_t moved[GRT_MAX_RANK];
    if (!layout_has_twin(x) || n != (size_t)x->type.rank)
        return false;
    for (int32_t i = 0; i < x->type.rank; i++)
        moved[layout_to_last(i, x->type.rank)] = shifts[i];
    ir_value *last = layout_twin_of(l, x, node);
    ir_node *made = last ? layout_clone(node, "graphrt", 1, &last) : NULL;
    if (made)
        ir_attr_set_ints(made, "shifts", moved, n);
    return layout_adopt(l, node, made);
}

/* Resize names the axes that its scales or sizes are for. */
bool layout_switch_resize(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0), *in[4] = {NULL};
    size_t n;
    const int64_t *axes = grt_attr_ints(&node->desc, "axes", &n);
    int64_t moved[GRT_MAX_RANK];
    const int64_t count = axes ? (int64_t)n : x ? x->type.rank : 0;
    if (!layout_has_twin(x) || count > GRT_MAX_RANK || !axes_moved(axes, count, x->type.rank, moved) ||
        !layout_take_inputs(l, node, in, 4))
        return false;
    ir_node *made = layout_clone(node, "", node->n_in, in);
    if (made)
        ir_attr_set_ints(made, "axes", moved, (size_t)count);
    return layout_adopt(l, node, made);
}

/* With keepdims the result has a twin; without, it is the same if batch and channels are what is left, or
 * nothing. */
bool layout_switch_reduction(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    const int64_t *axes;
    int64_t n, moved[GRT_MAX_RANK];
    if (!layout_has_twin(x) || !ir_const_ints(ir_in(node, 1), &axes, &n) || n < 1 || n > x->type.rank)
        return false;
    bool spatial_only = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = grt_axis(axes[i], x->type.rank);
        if (axis < 0)
            return false;
        spatial_only &= axis >= 2;
        moved[i] = layout_to_last((int32_t)axis, x->type.rank);
    }
    bool keep = grt_attr_int(&node->desc, "keepdims", 1) != 0;
    if (!keep && (!spatial_only || n != x->type.rank - 2))
        return false;
    ir_value *in[2] = {layout_twin_of(l, x, node), ir_constant_ints(node->graph, node->desc.name, moved, n)};
    if (!in[1])
        return false;
    if (keep)
        return layout_adopt(l, node, layout_clone(node, node->desc.domain, 2, in));
    ir_node_set_input(node, 0, in[0]);
    ir_node_set_input(node, 1, in[1]);
    l->context->changed++;
    return true;
}
