/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of everything, of what was transposed, and of slices. */
#include "graph/passes/simplify.h"

/* mark: how many uses there were when one was found that is no slice. Until one is gone it need not be looked
 * for again, by each of many slices. */
static bool only_sliced(ir_value *value)
{
    if (value->mark && value->mark == value->n_uses)
        return false;
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!rewrite_is(use->node, "Slice") || use->index != 0) {
            value->mark = value->n_uses;
            return false;
        }
    return true;
}

/* The Slice of what was transposed becomes the Transpose of a Slice, if its axes are known. */
static void slice_first(simplify_work *w, ir_node *node, ir_value *x, const int64_t *perm)
{
    int64_t moved[GRT_MAX_RANK], n;
    const int64_t *axes;
    if (node->n_in > 5 || !ir_const_ints(ir_in(node, 3), &axes, &n) || n > x->type.rank)
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = grt_axis(axes[i], x->type.rank);
        if (axis < 0)
            return;
        moved[i] = perm[axis];
    }
    ir_value *in[5] = {x, ir_in(node, 1), ir_in(node, 2),
                       ir_constant_ints(node->graph, node->desc.name, moved, n), ir_in(node, 4)};
    ir_node *part =
        in[3] ? ir_node_create(node->graph, node, "", "Slice", node->desc.name, node->n_in, in, 1) : NULL;
    if (!part || op_infer_node(part) != GRT_OK)
        return;
    simplify_queue(w, part);
    simplify_become_transpose(node, part->out[0], perm, x->type.rank);
    (void)simplify_changed(w, node);
}

/* Parts of what was transposed: transpose the parts only. All of them at once, as each asks for the others.
 */
static bool slice_before_transpose(simplify_work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *x = transpose ? ir_in(transpose, 0) : NULL;
    int64_t perm[GRT_MAX_RANK], n;
    const int64_t *axes;
    if (!x || transpose->graph != node->graph || !simplify_permutation(transpose, x->type.rank, perm) ||
        !ir_const_ints(ir_in(node, 3), &axes, &n) || !only_sliced(ir_in(node, 0)))
        return false;
    for (ir_use *use = transpose->out[0]->uses, *next; use; use = next) {
        next = use->next;
        if (use->graph == node->graph)
            slice_first(w, use->node, x, perm);
    }
    simplify_drop_if_dead(transpose);
    return rewrite_is(node, "Transpose");
}

/* Ranges that are cut out along axes, each of which is named once. */
typedef struct slice_ranges {
    int64_t n;
    int64_t starts[GRT_MAX_RANK], ends[GRT_MAX_RANK], axes[GRT_MAX_RANK], steps[GRT_MAX_RANK];
} slice_ranges;

/* Adds those of a Slice. False if they are not constant, or an axis is there already. */
static bool add_ranges(const ir_node *node, slice_ranges *r)
{
    const int64_t *starts, *ends, *axes = NULL, *steps = NULL;
    int64_t n, n_ends, n_axes, n_steps;
    const int32_t rank = ir_in(node, 0)->type.rank;
    if (!ir_const_ints(ir_in(node, 1), &starts, &n) || !ir_const_ints(ir_in(node, 2), &ends, &n_ends) ||
        (ir_in(node, 3) && (!ir_const_ints(ir_in(node, 3), &axes, &n_axes) || n_axes != n)) ||
        (ir_in(node, 4) && (!ir_const_ints(ir_in(node, 4), &steps, &n_steps) || n_steps != n)) ||
        n_ends != n || n > rank - r->n)
        return false;
    for (int64_t i = 0; i < n; i++, r->n++) {
        const int64_t axis = axes ? grt_axis(axes[i], rank) : i;
        if (axis < 0)
            return false;
        for (int64_t k = 0; k < r->n; k++)
            if (r->axes[k] == axis)
                return false;
        r->starts[r->n] = starts[i];
        r->ends[r->n] = ends[i];
        r->axes[r->n] = axis;
        r->steps[r->n] = steps ? steps[i] : 1;
    }
    return true;
}

/* Slices of a slice along other axes, as windows' padding is cut off rows and columns, are one. */
static bool slice_of_slice(simplify_work *w, ir_node *node)
{
    ir_node *before = rewrite_producer(ir_in(node, 0), "Slice");
    ir_value *x = before ? ir_in(before, 0) : NULL;
    slice_ranges r = {0};
    if (!x || before->graph != node->graph || before->out[0]->n_uses != 1 || x->type.rank < 1 ||
        x->type.rank > GRT_MAX_RANK || !add_ranges(before, &r) || !add_ranges(node, &r))
        return false;
    const int64_t *lists[] = {r.starts, r.ends, r.axes, r.steps};
    ir_value *in[4];
    for (int32_t i = 0; i < 4; i++)
        if (!(in[i] = ir_constant_ints(node->graph, node->desc.name, lists[i], r.n)))
            return false;
    while (node->n_in < 5)
        ir_node_add_input(node, NULL);
    ir_node_set_input(node, 0, x);
    for (int32_t i = 0; i < 4; i++)
        ir_node_set_input(node, i + 1, in[i]);
    simplify_drop_if_dead(before);
    return simplify_changed(w, node);
}

bool simplify_slice(simplify_work *w, ir_node *node)
{
    bool forward = !ir_in(node, 4) || simplify_all_ints_are(node, 4, 1);
    return (forward && simplify_keeps_shape(node, 0) && simplify_becomes(w, node, ir_in(node, 0))) ||
           slice_of_slice(w, node) || slice_before_transpose(w, node);
}
