/* SPDX-License-Identifier: Apache-2.0 */
/* The worklist of pass `simplify`, and what its rules have in common. */
#include "src/base/grow.h"
#include "graph/passes/simplify.h"

/* ---- worklist ---- */

enum { IDLE = 0, QUEUED = 1, REMOVED = 2 };

void simplify_queue(simplify_work *w, ir_node *node)
{
    if (!node || node->mark != IDLE)
        return;
    if (!GRT_GROW(w->stack, w->n, w->capacity)) {
        w->failed = true;
        return;
    }
    node->mark = QUEUED;
    w->stack[w->n++] = node;
}

void simplify_queue_users(simplify_work *w, const ir_value *value)
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
    while (w->n && !w->failed) {
        ir_node *node = w->stack[--w->n];
        if (node->mark == REMOVED)
            continue;
        node->mark = IDLE;
        return node;
    }
    return NULL;
}

/* ---- what rules do ---- */

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

bool simplify_keeps_shape(const ir_node *node, int32_t i)
{
    const ir_value *in = ir_in(node, i);
    return in && in->type.kind == GRT_KIND_TENSOR && rewrite_same_shape(&node->out[0]->type, &in->type);
}

bool simplify_all_ints_are(const ir_node *node, int32_t i, int64_t value)
{
    const int64_t *v;
    int64_t n;
    if (!ir_const_ints(ir_in(node, i), &v, &n))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (v[k] != value)
            return false;
    return true;
}

bool simplify_become_reshape(simplify_work *w, ir_node *node, ir_value *x)
{
    return rewrite_become_reshape(node, x) && simplify_changed(w, node);
}

bool simplify_permutation(const ir_node *node, int32_t rank, int64_t *out_perm)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    if (rank < 0 || (perm && n != (size_t)rank))
        return false;
    for (int32_t i = 0; i < rank; i++)
        out_perm[i] = perm ? perm[i] : rank - 1 - i;
    return true;
}

void simplify_become_transpose(ir_node *node, ir_value *x, const int64_t *perm, int32_t rank)
{
    ir_node_become(node, "", "Transpose");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    ir_node_set_input(node, 0, x);
    ir_node_drop_inputs(node, 1);
}
