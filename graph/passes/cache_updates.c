/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of keys or values that is padded for what is written behind it becomes one step: Pad fills the
 * result, copies what was there, and TensorScatter writes what is new. */
#include "graph/passes/rewrite.h"

#include <string.h>

enum { PAST, UPDATE, PADS, INDICES };

static bool pads_with_zeros(const ir_node *pad)
{
    return !strcmp(grt_attr_string(&pad->desc, "mode", "constant"), "constant") && !ir_in(pad, 2) &&
           !ir_in(pad, 3);
}

static ir_node *cache_updates_create(ir_node *node, const ir_node *pad)
{
    ir_value *in[] = {[PAST] = ir_in(pad, 0),
                      [UPDATE] = ir_in(node, 1),
                      [PADS] = ir_in(pad, 1),
                      [INDICES] = ir_in(node, 2)};
    ir_node *made =
        ir_node_create(node->graph, node, "graphrt", "CacheUpdate", node->desc.name, INDICES + 1, in, 1);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "axis", grt_attr_int(&node->desc, "axis", -2));
    if (!strcmp(grt_attr_string(&node->desc, "mode", "linear"), "circular"))
        ir_attr_set_string(made, "mode", "circular");
    return made;
}

static void cache_updates_visit(pass_context *context, ir_node *node)
{
    ir_node *pad = rewrite_is(node, "TensorScatter") ? rewrite_producer(ir_in(node, 0), "Pad") : NULL;
    if (!pad || rewrite_only_user(pad->out[0]) != node || !pads_with_zeros(pad))
        return;
    ir_node *made = cache_updates_create(node, pad);
    if (!made)
        return;
    ir_node_absorb_name(made, pad);
    /* The op's rule fails for pads of other axes, and does not know the result of unknown ones. */
    if (op_infer_node(made) == GRT_OK && rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) &&
        rewrite_supported(context, made, NULL) && rewrite_take_over_node(node, made->out[0])) {
        ir_node_remove(pad);
        context->changed++;
    } else {
        ir_node_remove(made);
    }
}

static grt_status cache_updates_visit_graph(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        cache_updates_visit(context, node);
    }
    return GRT_OK;
}

grt_status pass_cache_updates(pass_context *context)
{
    return rewrite_each_graph(context, cache_updates_visit_graph);
}
