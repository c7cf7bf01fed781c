/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: convolutions and what surrounds them run with channels last (NHWC, or NLC for one spatial dim),
 * where the target says that this is faster.
 *
 * Nodes are visited in order. A value that was made with channels last is remembered as the `last` twin of
 * the value that it stands for. Convolutions always switch, fetching (or making, by a Transpose) the twins of
 * their inputs; ops that work in either layout switch when their inputs have twins already. What still uses
 * the old value in the end gets it back by a Transpose. Transposes of constants are folded and pairs that
 * cancel are removed by the passes that follow. */
#include "src/base/grow.h"
#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

typedef struct twin {
    ir_value *last;
    ir_node
        *old; /* node of ours that was replaced and still defines the value; NULL if the value is as it was */
} twin;

typedef struct layout {
    pass_context *context;
    ir_graph *graph;
    twin *twins; /* value->mark is an index into this; [0] is for those that have none */
    int64_t n, capacity;
    grt_status status; /* the first failure: nothing more is changed after it */
} layout;

/* ---- permutations ---- */

static bool is_spatial_rank(int32_t rank)
{
    return rank == 3 || rank == 4;
}

/* Which dim of the usual layout is dim i with channels last? */
static int32_t from_last(int32_t i, int32_t rank)
{
    return i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

/* Where is dim i of the usual layout with channels last? */
static int32_t to_last(int32_t i, int32_t rank)
{
    return i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

/* NULL: see l->status. */
static ir_node *transpose_before(layout *l, ir_node *before, ir_value *x, const char *name, bool make_last)
{
    int64_t perm[GRT_MAX_RANK];
    int32_t rank = x->type.rank;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = make_last ? from_last(i, rank) : to_last(i, rank);
    ir_node *node = ir_node_create(l->graph, before, "", "Transpose", name, 1, &x, 1);
    if (!node) {
        l->status = grt_fail_memory(0);
        return NULL;
    }
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    const grt_status status = op_infer_node(node);
    if (status == GRT_OK)
        return node;
    l->status = status;
    return NULL;
}

/* ---- twins ---- */

static void layout_remember(layout *l, ir_value *value, ir_value *last, ir_node *old)
{
    l->n = l->n ? l->n : 1;
    if (!GRT_GROW(l->twins, l->n, l->capacity)) {
        l->status = grt_fail_memory(2 * (size_t)l->capacity * sizeof *l->twins);
        return;
    }
    l->twins[l->n] = (twin){last, old};
    value->mark = l->n++;
}

static bool has_twin(const ir_value *value)
{
    return value && value->mark > 0;
}

static bool is_spatial(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && is_spatial_rank(value->type.rank);
}

/* The value with channels last, by a Transpose in front of `before` if need be. */
static ir_value *layout_twin_of(layout *l, ir_value *value, ir_node *before)
{
    if (has_twin(value))
        return l->twins[value->mark].last;
    /* As early as possible, so that all later users find it. */
    ir_node *place = value->producer && value->graph == l->graph ? value->producer->next : l->graph->first;
    ir_node *transpose = transpose_before(l, place ? place : before, value, before->desc.name, true);
    if (!transpose)
        return NULL;
    layout_remember(l, value, transpose->out[0], NULL);
    return transpose->out[0];
}

/* ---- switching a node ---- */

/* A node with the same attributes on other inputs, in front of the old one. */
static ir_node *clone(const ir_node *node, const char *domain, int32_t n_in, ir_value *const *in)
{
    ir_node *made = ir_node_create(node->graph, (ir_node *)node, domain, node->desc.op, node->desc.name, n_in,
                                   in, node->n_out);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    for (int32_t i = 0; i < node->n_out; i++)
        if (!node->out[i])
            made->out[i] = NULL;
    return made;
}

/* Is what was made, with channels last, of the shape that the old value has? */
static bool is_twin_shape(const ir_value *value, const ir_value *last)
{
    int32_t rank = value->type.rank;
    if (!is_spatial(value) || last->type.rank != rank || last->type.dtype != value->type.dtype)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (last->type.dims[i] != value->type.dims[from_last(i, rank)])
            return false;
    return true;
}

/* Replaces `node` by `made`, or removes `made` if its type differs. */
static bool adopt(layout *l, ir_node *node, ir_node *made)
{
    bool fine = made && op_infer_node(made) == GRT_OK && rewrite_supported(l->context, made, NULL);
    for (int32_t i = 0; fine && i < node->n_out; i++)
        fine = !node->out[i] || is_twin_shape(node->out[i], made->out[i]);
    if (!fine) {
        if (made)
            ir_node_remove(made);
        return false;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            layout_remember(l, node->out[i], made->out[i], node);
    ir_node_drop_inputs(node, 0); /* it only stands for its old results now, until `finish` */
    l->context->changed++;
    return true;
}

/* ---- convolutions and pools ---- */

static bool all_ones(const grt_op_desc *desc, const char *name)
{
    size_t n;
    const int64_t *v = grt_attr_ints(desc, name, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i] != 1)
            return false;
    return true;
}

/* Measured (docs/measurements/cpu-math.md): one-dimensional convolutions that are dilated or have large
 * groups, and groups that are small on one side only, are faster as they are; not so large groups with many
 * taps, and dilation with enough channels, where the target has kernels for them. */
static bool gains(const layout *l, const ir_node *node)
{
    enum { SMALL = 8, MANY_TAPS = 16, ENOUGH = 16 };
    int64_t taps;
    int64_t per_group, filters, group = grt_attr_int(&node->desc, "group", 1);
    const ir_value *w = ir_in(node, 1);
    const grt_dims *dims = node->graph->module->dims;
    if (!w || w->type.rank < 3 || !grt_dim_is_const(dims, w->type.dims[1], &per_group) ||
        !grt_dim_is_const(dims, w->type.dims[0], &filters))
        return false;
    if (group > 1 && per_group <= SMALL && filters / group <= SMALL)
        return true;
    if (w->type.rank == 3 && group > 1 && l->context->target->traits->long_groups_last &&
        grt_dim_is_const(dims, w->type.dims[2], &taps) && taps >= MANY_TAPS)
        return per_group > SMALL;
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
    if (!is_spatial(ir_in(node, 0)) || !is_spatial(node->out[0]) || node->n_in > MOST)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, in[0], node);
    if (in[residual])
        in[residual] = is_spatial(in[residual]) ? layout_twin_of(l, in[residual], node) : NULL;
    if (!in[0] || (ir_in(node, residual) && !in[residual]))
        return false;
    ir_node *made = clone(node, "graphrt", node->n_in, in);
    if (made)
        ir_attr_set_string(made, "layout", "NHWC");
    return adopt(l, node, made);
}

static bool switch_conv(layout *l, ir_node *node)
{
    enum { RESIDUAL = 3 };
    return gains(l, node) && switch_window(l, node, RESIDUAL);
}

static bool switch_qconv(layout *l, ir_node *node)
{
    enum { RESIDUAL = 9 };
    return switch_window(l, node, RESIDUAL);
}

/* Ops whose form with channels last has the same parameters: pools, normalisations, transposed
 * convolutions. */
static bool switch_form(layout *l, ir_node *node)
{
    enum { MOST = 3 };
    ir_value *in[MOST] = {NULL};
    if (!has_twin(ir_in(node, 0)) || node->n_out != 1 || node->n_in > MOST)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, in[0], node);
    ir_node *made = clone(node, "graphrt", node->n_in, in);
    if (made)
        ir_attr_set_string(made, "layout", "NHWC");
    return adopt(l, node, made);
}

/* ---- ops that work in either layout ---- */

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
static bool pays(const ir_node *node)
{
    int32_t with = 0, without = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (has_twin(value))
            with++;
        else if (value && !value->type.data && is_spatial(value))
            without++;
    }
    return with && with >= without;
}

static bool switch_pointwise(layout *l, ir_node *node)
{
    enum { MOST = 8 };
    ir_value *in[MOST] = {NULL};
    int32_t rank = node->out[0]->type.rank;
    if (node->n_in > MOST || !is_spatial(node->out[0]) || !pays(node))
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
    return adopt(l, node, clone(node, node->desc.domain, node->n_in, in));
}

/* Scales and zero points per channel stay with the usual layout. */
static bool switch_scaled(layout *l, ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        const bool is_table = i == 1 && !strcmp(node->desc.op, "QTable");
        if (value && !is_table && !is_one_element(node, value) && !is_spatial(value))
            return false;
    }
    if (strcmp(node->desc.op, "QTable") != 0)
        return switch_pointwise(l, node);
    ir_value *in[2] = {ir_in(node, 0), ir_in(node, 1)};
    if (!has_twin(in[0]))
        return false;
    in[0] = layout_twin_of(l, in[0], node);
    return adopt(l, node, clone(node, node->desc.domain, 2, in));
}

static bool switch_concat(layout *l, ir_node *node)
{
    int32_t rank = node->out[0]->type.rank;
    if (!is_spatial(node->out[0]) || !pays(node))
        return false;
    int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), rank);
    ir_value **in = GRT_ARENA_ARRAY(l->context->module->arena, ir_value *, node->n_in);
    for (int32_t i = 0; in && i < node->n_in; i++)
        if (!is_spatial(node->in[i].value) || !(in[i] = layout_twin_of(l, node->in[i].value, node)))
            return false;
    if (!in || axis < 0)
        return false;
    ir_node *made = clone(node, "", node->n_in, in);
    if (made)
        ir_attr_set_int(made, "axis", to_last((int32_t)axis, rank));
    return adopt(l, node, made);
}

/* Split: input 0 switches, the lengths stay. */
static bool switch_split(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    if (!has_twin(x))
        return false;
    int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), x->type.rank);
    ir_value *in[2] = {layout_twin_of(l, x, node), ir_in(node, 1)};
    ir_node *made = axis < 0 ? NULL : clone(node, "", node->n_in < 2 ? node->n_in : 2, in);
    if (made)
        ir_attr_set_int(made, "axis", to_last((int32_t)axis, x->type.rank));
    return adopt(l, node, made);
}

/* Pad and Slice along all axes, or along those that a constant lists. */
static bool switch_slice(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0), *in[5] = {NULL};
    const int64_t *axes;
    int64_t n, moved[GRT_MAX_RANK];
    if (!has_twin(x) || node->n_in > 5 || !ir_const_ints(ir_in(node, 3), &axes, &n) || n > x->type.rank)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = grt_axis(axes[i], x->type.rank);
        if (axis < 0)
            return false;
        moved[i] = to_last((int32_t)axis, x->type.rank);
    }
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, x, node);
    in[3] = ir_constant_ints(node->graph, node->desc.name, moved, n);
    return in[3] && adopt(l, node, clone(node, "", node->n_in, in));
}

static bool switch_pad(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    const int64_t *pads;
    int64_t n, moved[2 * GRT_MAX_RANK];
    if (!has_twin(x) || ir_in(node, 3) || !ir_const_ints(ir_in(node, 1), &pads, &n) || n != 2 * x->type.rank)
        return false;
    for (int32_t i = 0; i < x->type.rank; i++) {
        moved[to_last(i, x->type.rank)] = pads[i];
        moved[x->type.rank + to_last(i, x->type.rank)] = pads[x->type.rank + i];
    }
    ir_value *in[3] = {layout_twin_of(l, x, node), ir_constant_ints(node->graph, node->desc.name, moved, n),
                       ir_in(node, 2)};
    return in[1] && adopt(l, node, clone(node, "", node->n_in < 3 ? node->n_in : 3, in));
}

/* Resize names the axes that its scales or sizes are for. */
static bool switch_resize(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0), *in[4] = {NULL};
    size_t n;
    const int64_t *axes = grt_attr_ints(&node->desc, "axes", &n);
    int64_t moved[GRT_MAX_RANK];
    if (!has_twin(x) || node->n_in > 4 || n > GRT_MAX_RANK)
        return false;
    const int32_t count = axes ? (int32_t)n : x->type.rank;
    for (int32_t i = 0; i < count; i++) {
        int64_t axis = axes ? grt_axis(axes[i], x->type.rank) : i;
        if (axis < 0)
            return false;
        moved[i] = to_last((int32_t)axis, x->type.rank);
    }
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, x, node);
    ir_node *made = clone(node, "", node->n_in, in);
    if (made)
        ir_attr_set_ints(made, "axes", moved, (size_t)count);
    return adopt(l, node, made);
}

/* ---- reductions ---- */

/* With keepdims the result has a twin; without, it is the same if batch and channels are what is left, or
 * nothing. */
static bool switch_reduction(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    const int64_t *axes;
    int64_t n, moved[GRT_MAX_RANK];
    if (!has_twin(x) || !ir_const_ints(ir_in(node, 1), &axes, &n) || n < 1 || n > x->type.rank)
        return false;
    bool spatial_only = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = grt_axis(axes[i], x->type.rank);
        if (axis < 0)
            return false;
        spatial_only &= axis >= 2;
        moved[i] = to_last((int32_t)axis, x->type.rank);
    }
    bool keep = grt_attr_int(&node->desc, "keepdims", 1) != 0;
    if (!keep && (!spatial_only || n != x->type.rank - 2))
        return false;
    ir_value *in[2] = {layout_twin_of(l, x, node), ir_constant_ints(node->graph, node->desc.name, moved, n)};
    if (!in[1])
        return false;
    if (keep)
        return adopt(l, node, clone(node, "", 2, in));
    ir_node_set_input(node, 0, in[0]);
    ir_node_set_input(node, 1, in[1]);
    l->context->changed++;
    return true;
}

/* ---- moves ---- */

/* A Transpose that makes channels last is the twin; one that makes them second has its input as twin; others
 * start from the twin of their input. */
static bool switch_transpose(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    int32_t rank = x ? x->type.rank : -1;
    if (!perm || !is_spatial(x) || n != (size_t)rank)
        return false;
    if (has_twin(x)) {
        int64_t moved[GRT_MAX_RANK];
        for (int32_t i = 0; i < rank; i++)
            moved[i] = to_last((int32_t)perm[i], rank);
        ir_attr_set_ints(node, "perm", moved, n);
        ir_node_set_input(node, 0, l->twins[x->mark].last);
        l->context->changed++;
        return true;
    }
    bool to_usual = true;
    for (int32_t i = 0; i < rank; i++)
        to_usual &= perm[i] == to_last(i, rank);
    if (to_usual)
        layout_remember(l, node->out[0], x, NULL);
    return to_usual;
}

static bool spatial_dims_are_one(const ir_node *node, const ir_type *type)
{
    for (int32_t i = 2; i < type->rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, type->dims[i], 1))
            return false;
    return true;
}

/* [N, C, HW...] to [N, C, L] and then to [N, L, C], as vision transformers do with their patches. */
static bool switch_patches(layout *l, ir_node *node, ir_value *x)
{
    ir_value *flat = node->out[0];
    ir_node *transpose = rewrite_only_user(flat);
    if (flat->type.rank != 3 || flat->type.dims[0] != x->type.dims[0] ||
        flat->type.dims[1] != x->type.dims[1] || !rewrite_is(transpose, "Transpose"))
        return false;
    size_t n;
    const int64_t *perm = grt_attr_ints(&transpose->desc, "perm", &n);
    if (!perm || n != 3 || perm[0] != 0 || perm[1] != 2)
        return false;
    /* Reshape's 0 copies a dim: [0, -1, C] */
    int64_t channels;
    if (!grt_dim_is_const(node->graph->module->dims, x->type.dims[1], &channels) || channels < 1)
        return false;
    ir_value *shape = ir_constant_ints(node->graph, node->desc.name, (int64_t[]){0, -1, channels}, 3);
    ir_value *in[2] = {l->twins[x->mark].last, shape};
    ir_node *made =
        shape ? ir_node_create(node->graph, node, "", "Reshape", node->desc.name, 2, in, 1) : NULL;
    if (!made || op_infer_node(made) != GRT_OK ||
        !rewrite_same_shape(&made->out[0]->type, &transpose->out[0]->type) ||
        !rewrite_replace(transpose->out[0], made->out[0])) {
        if (made)
            ir_node_remove(made);
        return false;
    }
    l->context->changed++; /* the Transpose and this Reshape are dead now */
    return true;
}

/* Channel shuffle: [N, C, H, W] to [N, g, C/g, H, W], exchange the two, and back. */
static bool switch_shuffle(layout *l, ir_node *node, ir_value *x)
{
    ir_value *split = node->out[0];
    ir_node *transpose = rewrite_only_user(split);
    ir_node *join = rewrite_is(transpose, "Transpose") ? rewrite_only_user(transpose->out[0]) : NULL;
    int32_t rank = x->type.rank;
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    if (!rewrite_is(join, "Reshape") || split->type.rank != rank + 1 || !perm || n != (size_t)rank + 1 ||
        perm[1] != 2 || perm[2] != 1 || !rewrite_same_shape(&join->out[0]->type, &x->type))
        return false;
    int64_t wide[GRT_MAX_RANK], swap[GRT_MAX_RANK], joined[GRT_MAX_RANK];
    for (int32_t i = 0; i <= rank; i++)
        if ((i != 1 && i != 2 && perm[i] != i) || (i > 2 && split->type.dims[i] != x->type.dims[i - 1]))
            return false;
    const grt_dims *dims = node->graph->module->dims;
    wide[0] = joined[0] = 0; /* batch is copied */
    if (split->type.dims[0] != x->type.dims[0] ||
        !grt_dim_is_const(dims, split->type.dims[1], &wide[rank - 1]) ||
        !grt_dim_is_const(dims, split->type.dims[2], &wide[rank]) ||
        !grt_dim_is_const(dims, x->type.dims[1], &joined[rank - 1]))
        return false;
    for (int32_t i = 1; i < rank - 1; i++)
        wide[i] = joined[i] = 0;
    for (int32_t i = 0; i <= rank; i++)
        swap[i] = i < rank - 1 ? i : i == rank - 1 ? rank : rank - 1;
    ir_value *last = l->twins[x->mark].last;
    ir_value *shape = ir_constant_ints(node->graph, node->desc.name, wide, rank + 1);
    ir_value *back = ir_constant_ints(node->graph, node->desc.name, joined, rank);
    ir_node *a = shape && back ? ir_node_create(node->graph, join, "", "Reshape", node->desc.name, 2,
                                                (ir_value *[]){last, shape}, 1)
                               : NULL;
    ir_node *b =
        a ? ir_node_create(node->graph, join, "", "Transpose", transpose->desc.name, 1, &a->out[0], 1) : NULL;
    ir_node *c = b ? ir_node_create(node->graph, join, "", "Reshape", join->desc.name, 2,
                                    (ir_value *[]){b->out[0], back}, 1)
                   : NULL;
    if (!c) {
        l->status = grt_fail_memory(0);
        return false;
    }
    ir_attr_set_ints(b, "perm", swap, (size_t)rank + 1);
    if (op_infer_node(a) != GRT_OK || op_infer_node(b) != GRT_OK || op_infer_node(c) != GRT_OK)
        return false;
    return adopt(l, join, c);
}

/* [N, C, L] to [N, C, H, W] or back, as transformers do that convolve over their tokens: with channels last
 * it moves nothing. */
static bool switch_grid(layout *l, ir_node *node, ir_value *x)
{
    const ir_type *y = &node->out[0]->type;
    grt_dim dims[GRT_MAX_RANK];
    if (!is_spatial(x) || !is_spatial(node->out[0]) || y->dims[0] != x->type.dims[0] ||
        y->dims[1] != x->type.dims[1])
        return false;
    for (int32_t i = 0; i < y->rank; i++)
        dims[i] = y->dims[from_last(i, y->rank)];
    ir_value *last = rewrite_reshaped(node, l->twins[x->mark].last, y->rank, dims);
    if (!last || last->producer == l->twins[x->mark].last->producer)
        return false;
    return adopt(l, node, last->producer);
}

static bool switch_reshape(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    if (!has_twin(x) || node->out[0]->type.rank < 0)
        return false;
    if (spatial_dims_are_one(node, &x->type) && node->out[0]->type.rank != x->type.rank &&
        !grt_attr_int(&node->desc, "allowzero", 0)) {
        /* the same elements in the same order; but a shape that copies dims would copy others */
        const int64_t *shape;
        int64_t n;
        bool copies = !rewrite_is(node, "Reshape") || !ir_const_ints(ir_in(node, 1), &shape, &n);
        for (int64_t i = 0; !copies && i < n; i++)
            copies = shape[i] == 0 && i > 0;
        if (!copies) {
            ir_node_set_input(node, 0, l->twins[x->mark].last);
            l->context->changed++;
            return true;
        }
    }
    return switch_patches(l, node, x) || switch_shuffle(l, node, x) || switch_grid(l, node, x);
}

/* ---- DepthToSpace ---- */

/* A Reshape or Transpose of `x` in front of `before`, to the dims or by the permutation in `numbers`. NULL:
 * see l->status. */
static ir_value *moved_by(layout *l, ir_node *before, ir_value *x, const char *op, const int64_t *numbers,
                          int32_t n)
{
    const bool is_reshape = !strcmp(op, "Reshape");
    ir_value *in[2] = {x, is_reshape ? ir_constant_ints(l->graph, before->desc.name, numbers, n) : NULL};
    ir_node *node = is_reshape && !in[1] ? NULL
                                         : ir_node_create(l->graph, before, "", op, before->desc.name,
                                                          is_reshape ? 2 : 1, in, 1);
    if (!node) {
        l->status = grt_fail_memory(0);
        return NULL;
    }
    if (!is_reshape)
        ir_attr_set_ints(node, "perm", numbers, (size_t)n);
    const grt_status status = op_infer_node(node);
    l->status = l->status == GRT_OK ? status : l->status;
    return status == GRT_OK ? node->out[0] : NULL;
}

/* [N, H, W, blocks and channels] to [N, H, block, W, block, C]. Rows and columns are known, or one of both is
 * found from the rest. */
static bool switch_depth(layout *l, ir_node *node)
{
    enum { RANK = 4, APART = 6 };
    ir_value *x = ir_in(node, 0);
    const ir_type *y = &node->out[0]->type;
    const grt_dims *dims = node->graph->module->dims;
    const int64_t block = grt_attr_int(&node->desc, "blocksize", 0);
    const bool blocks_first = strcmp(grt_attr_string(&node->desc, "mode", "DCR"), "CRD") != 0;
    int64_t channels, joined[RANK] = {0, -1, -1, 0};
    if (!has_twin(x) || y->rank != RANK || !grt_dim_is_const(dims, y->dims[1], &channels) || channels < 1)
        return false;
    const bool has_rows = grt_dim_is_const(dims, y->dims[2], &joined[1]),
               has_columns = grt_dim_is_const(dims, y->dims[3], &joined[2]);
    if ((!has_rows && (!has_columns || !grt_dim_is_const(dims, y->dims[0], NULL))) || joined[1] == 0 ||
        joined[2] == 0 || (!has_columns && !grt_dim_is_const(dims, y->dims[0], NULL)))
        return false;
    joined[3] = channels;
    const int64_t apart[APART] = {
        0, 0, 0, blocks_first ? block : channels, block, blocks_first ? channels : block};
    const int64_t first[APART] = {0, 1, 3, 2, 4, 5}, last[APART] = {0, 1, 4, 2, 5, 3};
    ir_value *v = moved_by(l, node, l->twins[x->mark].last, "Reshape", apart, APART);
    v = v ? moved_by(l, node, v, "Transpose", blocks_first ? first : last, APART) : NULL;
    v = v ? moved_by(l, node, v, "Reshape", joined, RANK) : NULL;
    return v && adopt(l, node, v->producer);
}

/* ---- the sweep ---- */

static bool switch_node(layout *l, ir_node *node)
{
    static bool (*const switches[N_OP_LAYOUTS])(layout * l, ir_node * node) = {
        [OP_LAYOUT_CONV] = switch_conv,           [OP_LAYOUT_QCONV] = switch_qconv,
        [OP_LAYOUT_SCALED] = switch_scaled,       [OP_LAYOUT_FORM] = switch_form,
        [OP_LAYOUT_CONCAT] = switch_concat,       [OP_LAYOUT_SPLIT] = switch_split,
        [OP_LAYOUT_SLICE] = switch_slice,         [OP_LAYOUT_PAD] = switch_pad,
        [OP_LAYOUT_RESIZE] = switch_resize,       [OP_LAYOUT_REDUCE] = switch_reduction,
        [OP_LAYOUT_TRANSPOSE] = switch_transpose, [OP_LAYOUT_RESHAPE] = switch_reshape,
        [OP_LAYOUT_DEPTH] = switch_depth,
    };
    if (!node->n_out || !node->out[0] || !node->row)
        return false;
    if (node->row->flags & OP_POINTWISE)
        return node->n_out == 1 && switch_pointwise(l, node);
    return node->row->layout && switches[node->row->layout](l, node);
}

/* Old results that are still used come back by a Transpose; the nodes that stood for them go. */
static grt_status layout_finish(layout *l)
{
    IR_FOR_EACH_NODE (node, l->graph) {
        bool replaced = false;
        for (int32_t i = 0; i < node->n_out; i++) {
            ir_value *value = node->out[i];
            if (!has_twin(value) || l->twins[value->mark].old != node)
                continue;
            replaced = true;
            if (!value->n_uses)
                continue;
            ir_node *back = transpose_before(l, node, l->twins[value->mark].last, node->desc.name, false);
            if (!back)
                return l->status;
            if (!rewrite_replace(value, back->out[0])) /* a new result takes any place */
                return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL,
                                   "layout: the Transpose of '%s' cannot take its place", value->name);
        }
        if (replaced)
            ir_node_remove(node);
    }
    return GRT_OK;
}

static void layout_clear_marks(ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i].value)
                node->in[i].value->mark = 0;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
    }
}

static grt_status layout_visit(pass_context *context, ir_graph *graph)
{
    layout l = {.context = context, .graph = graph};
    layout_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph)
        if (l.status == GRT_OK)
            switch_node(&l, node);
    grt_status status = l.status == GRT_OK ? layout_finish(&l) : l.status;
    free(l.twins);
    return status;
}

grt_status pass_layout(pass_context *context)
{
    return context->target->traits->channels_last ? rewrite_each_graph(context, layout_visit) : GRT_OK;
}
