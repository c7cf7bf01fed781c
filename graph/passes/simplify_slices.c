/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of everything, and of what was transposed. */
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

bool simplify_slice(simplify_work *w, ir_node *node)
{
    bool forward = !ir_in(node, 4) || simplify_all_ints_are(node, 4, 1);
    return (forward && simplify_keeps_shape(node, 0) && simplify_becomes(w, node, ir_in(node, 0))) ||
           slice_before_transpose(w, node);
}
