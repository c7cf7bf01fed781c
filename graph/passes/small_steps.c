/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/small_steps.h"

bool small_steps_is_there(const ir_value *value, const ir_node *first)
{
    return !value->producer || value->graph != first->graph || value->producer->mark < first->mark;
}

static int32_t small_steps_find(const small_steps *steps, ir_node *first, ir_node **out_members)
{
    int32_t n = 1, seen = 0;
    out_members[0] = first;
    for (ir_node *node = first->next; node && seen < steps->window && n < steps->most;
         node = node->next, seen++)
        if (steps->may_join(first, node))
            out_members[n++] = node;
    return n;
}

/* NULL if the target has no such step. */
static ir_node *small_steps_create(const pass_context *context, const small_steps *steps,
                                   ir_node *const *members, int32_t n)
{
    ir_node *made = steps->create(members, n);
    if (!made)
        return NULL;
    made->mark = members[0]->mark;
    for (int32_t i = 1; i < n; i++)
        ir_node_absorb_name(made, members[i]);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

void small_steps_merge(pass_context *context, ir_graph *graph, const small_steps *steps)
{
    rewrite_number_nodes(graph);
    for (ir_node *node = graph->first, *next; node; node = next) {
        ir_node *members[SMALL_STEPS_MOST];
        next = node->next;
        const int32_t n = steps->may_begin(node) ? small_steps_find(steps, node, members) : 0;
        ir_node *made = n > 1 ? small_steps_create(context, steps, members, n) : NULL;
        if (!made)
            continue;
        for (int32_t i = 0; i < n; i++)
            if (rewrite_replace_node(members[i], made->out[i]))
                context->changed++;
        next = made->next;
    }
}
