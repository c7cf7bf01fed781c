/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: inputs and outputs that are missing, doubled or others; another op; nodes that are gone or there
 * twice. */
#include "tests/differential/draw.h"
#include "tests/mutate/mutation.h"

#include <string.h>

static Onnx__NodeProto *draw_node(mutation *m)
{
    return m->n_nodes ? m->nodes[mutation_pick(m->n_nodes)] : NULL;
}

static void tell(mutation *m, const Onnx__NodeProto *node, const char *change, size_t at)
{
    mutation_tell(m, "%s: %s %zu", node->op_type ? node->op_type : "", change, at);
}

/* Omitted, or cut off with all behind it. */
bool mutate_node_input(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m);
    if (!node || !node->n_input)
        return false;
    const size_t at = mutation_pick(node->n_input);
    const bool cut = draw(0, 1);
    tell(m, node, cut ? "no inputs from" : "omitted input", at);
    if (cut)
        node->n_input = at;
    else
        node->input[at] = grt_arena_strdup(m->arena, "");
    return true;
}

bool mutate_node_output(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m);
    if (!node || !node->n_output)
        return false;
    const size_t at = mutation_pick(node->n_output);
    switch (draw(0, 2)) {
    case 0:
        tell(m, node, "no outputs from", at);
        node->n_output = at;
        break;
    case 1:
        tell(m, node, "omitted output", at);
        node->output[at] = grt_arena_strdup(m->arena, "");
        break;
    default: {
        char *name = grt_arena_printf(m->arena, "more_%d", (int)node->n_output);
        tell(m, node, "one more output than", node->n_output);
        MUTATION_APPEND(m, node->output, node->n_output, name);
    }
    }
    return true;
}

/* Another value of the same model: of another type, from later on, of another graph. */
static char *draw_value(mutation *m)
{
    const Onnx__NodeProto *from = draw_node(m);
    if (draw(0, 1) && m->n_values)
        return m->values[mutation_pick(m->n_values)]->name;
    if (draw(0, 2) && m->n_tensors)
        return m->tensors[mutation_pick(m->n_tensors)]->name;
    return draw(0, 1) && from->n_output ? from->output[0] : from->n_input ? from->input[0] : NULL;
}

bool mutate_node_rewire(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m);
    char *value = node ? draw_value(m) : NULL;
    if (!value)
        return false;
    if (node->n_input && draw(0, 3)) {
        const size_t at = mutation_pick(node->n_input);
        tell(m, node, "rewired input", at);
        node->input[at] = value;
    } else {
        tell(m, node, "one more input than", node->n_input);
        MUTATION_APPEND(m, node->input, node->n_input, value);
    }
    return true;
}

bool mutate_node_op(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m);
    const Onnx__NodeProto *from = m->pool->nodes[mutation_pick(m->pool->n_nodes)];
    if (!node)
        return false;
    mutation_tell(m, "%s: now %s", node->op_type ? node->op_type : "", from->op_type);
    node->op_type = from->op_type;
    node->domain = from->domain;
    if (draw(0, 1)) {
        const Onnx__NodeProto *copy = (Onnx__NodeProto *)pool_copy(m->arena, &from->base);
        node->attribute = copy->attribute;
        node->n_attribute = copy->n_attribute;
    }
    return true;
}

bool mutate_node_list(mutation *m)
{
    Onnx__GraphProto *g = m->n_graphs ? m->graphs[mutation_pick(m->n_graphs)] : NULL;
    if (!g || !g->n_node)
        return false;
    const size_t at = mutation_pick(g->n_node);
    if (draw(0, 1)) {
        tell(m, g->node[at], "twice, node", at);
        MUTATION_APPEND(m, g->node, g->n_node, g->node[at]);
    } else {
        tell(m, g->node[at], "gone, node", at);
        MUTATION_REMOVE(g->node, g->n_node, at);
    }
    return true;
}
