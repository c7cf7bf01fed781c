/* SPDX-License-Identifier: Apache-2.0 */
/* Expand: element-wise ops broadcast by themselves. */
#include "graph/passes/simplify.h"

/* True if another input of the element-wise node has the shape of its result: that alone says which it is. */
static bool other_input_is_full(const ir_node *node, int32_t index)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (i != index && ir_in(node, i) && simplify_keeps_shape(node, i))
            return true;
    return false;
}

/* The node reads x where it read x expanded; false, with nothing changed, if its result would be another one.
 */
static bool reads_unexpanded(ir_node *node, int32_t index, ir_value *x)
{
    ir_value *expanded = ir_in(node, index);
    const ir_type before = node->out[0]->type;
    ir_node_set_input(node, index, x);
    if (op_infer_node(node) == GRT_OK && rewrite_same_shape(&node->out[0]->type, &before))
        return true;
    ir_node_set_input(node, index, expanded);
    (void)op_infer_node(node);
    return false;
}

/* Element-wise ops broadcast by themselves. */
bool simplify_expand(simplify_work *w, ir_node *node)
{
    bool any = false;
    if (simplify_same_shape(w, node))
        return true;
    for (ir_use *use = node->out[0]->uses, *next; use; use = next) {
        ir_node *user = use->node;
        next = use->next;
        if (!user || !user->row || !(user->row->flags & OP_POINTWISE) || user->n_out != 1 ||
            !other_input_is_full(user, use->index) || !reads_unexpanded(user, use->index, ir_in(node, 0)))
            continue;
        simplify_queue(w, user);
        w->context->changed++;
        any = true;
    }
    if (any)
        simplify_drop_if_dead(node);
    return any;
}
