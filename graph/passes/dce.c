/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code: nodes none of whose results are used, and optional results that are not used. */
#include "graph/passes/rewrite.h"

static void dce_sweep(pass_context *context, ir_graph *graph);

static void sweep_bodies(pass_context *context, const ir_node *node)
{
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
            dce_sweep(context, node->desc.attrs[i].graph);
}

/* Drops unused outputs that the op may omit, so that kernels need not compute them. */
static void dce_drop_outputs(ir_node *node)
{
    if (!node->row || node->row->max_out == OP_VARIADIC)
        return;
    for (int32_t i = node->row->min_out; i < node->n_out; i++)
        if (node->out[i] && !node->out[i]->n_uses)
            node->out[i] = NULL;
    while (node->n_out > node->row->min_out && !node->out[node->n_out - 1])
        node->n_out--;
}

/* Users come after producers, so one sweep from the end is enough. Bodies come before the node that owns
 * them, since they may hold the last use of a value outside. */
static void dce_sweep(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->last, *prev; node; node = prev) {
        prev = node->prev;
        if (ir_node_is_unused(node)) {
            ir_node_remove(node);
            context->changed++;
            continue;
        }
        sweep_bodies(context, node);
        dce_drop_outputs(node);
    }
}

grt_status pass_dce(pass_context *context)
{
    dce_sweep(context, context->module->main);
    return GRT_OK;
}
