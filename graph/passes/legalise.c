/* SPDX-License-Identifier: Apache-2.0 */
/* Legalise: ops that the target has no kernel for are replaced by simpler ones, as their rows say, until
 * nothing changes. What is still without a kernel then: see supported.h. */
#include "graph/passes/rewrite.h"

#include <inttypes.h>
#include <string.h>

/* Expansions are made of simpler ops, so this only stops rows that expand into each other. */
enum { EXPANSIONS_PER_NODE = 64, EXPANSIONS_AT_LEAST = 1024 };

typedef struct legaliser {
    pass_context *context;
    int64_t left;
} legaliser;

static grt_status legalise_graph(legaliser *l, ir_graph *graph);

/* Replace the node if that is needed and possible; *out_first is then the first node of what took its place.
 */
static grt_status legalise_expand(legaliser *l, ir_node *node, bool *out_done, ir_node **out_first)
{
    *out_done = false;
    if (!node->row || !node->row->expand ||
        (!(node->row->flags & OP_EXPANDS_ALWAYS) && rewrite_supported(l->context, node, NULL)))
        return GRT_OK;
    ir_graph *graph = node->graph;
    ir_node *before = node->prev;
    if (l->left-- <= 0)
        return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL,
                           "expanding the ops without a kernel does not come to an end");
    GRT_TRY(node->row->expand(node, out_done));
    *out_first = before ? before->next : graph->first;
    l->context->changed += *out_done;
    return GRT_OK;
}

static grt_status legalise_graph(legaliser *l, ir_graph *graph)
{
    bool fresh = false; /* past an expansion, types of what it made must be found */
    ir_node *until = NULL;
    for (ir_node *node = graph->first; node;) {
        ir_node *next = node->next, *first;
        bool done;
        fresh = fresh && node != until;
        if (fresh)
            GRT_TRY(op_infer_node(node));
        GRT_TRY(legalise_expand(l, node, &done, &first));
        if (done) {
            until = fresh ? until : next;
            fresh = true;
            node = first;
            continue;
        }
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                GRT_TRY(legalise_graph(l, node->desc.attrs[i].graph));
        node = next;
    }
    return GRT_OK;
}

static grt_status count_nodes(ir_graph *graph, void *user)
{
    *(int64_t *)user += graph->n_nodes;
    return GRT_OK;
}

/* Rows put new values in the place of old ones; the model's outputs must keep their names. */
static grt_status restore_names(ir_graph *graph, const char *const *names)
{
    for (int32_t i = 0; i < graph->n_outputs; i++) {
        ir_value *value = graph->outputs[i].value;
        if (value->name == names[i] || !strcmp(value->name, names[i]))
            continue;
        bool taken = !value->producer;
        for (int32_t k = 0; k < graph->n_outputs; k++)
            taken |= k != i && graph->outputs[k].value == value;
        if (!taken) {
            value->name = names[i];
            continue;
        }
        ir_node *copy = ir_node_create(graph, NULL, "", "Identity", names[i], 1, &value, 1);
        if (!copy)
            return grt_fail_memory(0);
        GRT_TRY(op_infer_node(copy));
        copy->out[0]->name = names[i];
        ir_graph_set_output(graph, i, copy->out[0]);
    }
    return GRT_OK;
}

grt_status pass_legalise(pass_context *context)
{
    ir_graph *graph = context->module->main;
    const char **names = GRT_ARENA_ARRAY(context->module->arena, const char *, graph->n_outputs);
    if (!names)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < graph->n_outputs; i++)
        names[i] = graph->outputs[i].value->name;
    int64_t nodes = 0;
    GRT_TRY(ir_graph_walk(graph, count_nodes, &nodes));
    legaliser l = {context, nodes * EXPANSIONS_PER_NODE + EXPANSIONS_AT_LEAST};
    GRT_TRY(legalise_graph(&l, graph));
    return restore_names(graph, names);
}
