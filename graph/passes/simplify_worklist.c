/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/simplify_worklist.h"

#include "src/base/grow.h"

enum { IDLE = 0, QUEUED = 1, REMOVED = 2 };

void simplify_queue(simplify_work *w, ir_node *node)
{
    if (!node || node->mark != IDLE)
        return;
    if (!GRT_GROW(w->stack, w->n, w->capacity)) {
        w->status = grt_fail_memory(2 * w->capacity * sizeof *w->stack);
        return;
    }
    node->mark = QUEUED;
    w->stack[w->n++] = node;
}

static void simplify_queue_users(simplify_work *w, const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        simplify_queue(w, use->node);
}

/* In reverse, so that producers are taken from the stack before users. */
void simplify_queue_graph(simplify_work *w, ir_graph *graph)
{
    for (ir_node *node = graph->last; node; node = node->prev) {
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                simplify_queue_graph(w, node->desc.attrs[i].graph);
        node->mark = IDLE;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
        simplify_queue(w, node);
    }
}

ir_node *simplify_next(simplify_work *w)
{
    while (w->n && w->status == GRT_OK) {
        ir_node *node = w->stack[--w->n];
        if (node->mark == REMOVED)
            continue;
        node->mark = IDLE;
        return node;
    }
    return NULL;
}

bool simplify_becomes(simplify_work *w, ir_node *node, ir_value *to)
{
    ir_value *out = node->out[0];
    if (!to || out == to)
        return false;
    for (int32_t i = 1; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return false;
    simplify_queue_users(w, out);
    ir_node *before = to->producer;
    if (!rewrite_replace(out, to))
        return false;
    node->mark = REMOVED;
    ir_node_remove(node);
    simplify_queue(w, before);
    w->context->changed++;
    return true;
}

bool simplify_changed(simplify_work *w, ir_node *node)
{
    simplify_queue_users(w, node->out[0]);
    if (node->mark == IDLE)
        simplify_queue(w, node);
    w->context->changed++;
    return true;
}

void simplify_drop_if_dead(ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return;
    node->mark = REMOVED;
    ir_node_remove(node);
}
