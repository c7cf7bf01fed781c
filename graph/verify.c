/* The IR's invariants: order, use lists, ownership, types. A pass that breaks one is a bug, so everything
 * here is INTERNAL. */
#include "graph/ir.h"

#include <stdlib.h>

typedef struct check {
    const ir_node **nodes; /* by mark: only linked nodes count as existing */
    int64_t n, capacity;
    const grt_dims *dims;
} check;

static grt_status broken(const ir_node *node, const char *what, int32_t index, const ir_value *value)
{
    return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL, "the graph is inconsistent: %s (number %d, '%s')",
                       what, index, value ? value->name : "");
}

static bool number(check *c, ir_node *node)
{
    if (c->n == c->capacity) {
        int64_t wanted = c->capacity ? 2 * c->capacity : 256;
        const ir_node **grown = realloc(c->nodes, (size_t)wanted * sizeof *grown);
        if (!grown)
            return false;
        c->nodes = grown;
        c->capacity = wanted;
    }
    node->mark = c->n;
    c->nodes[c->n++] = node;
    return true;
}

static grt_status number_graph(ir_graph *graph, void *user)
{
    IR_FOR_EACH_NODE (node, graph)
        if (!number(user, node))
            return grt_fail_memory(0);
    return GRT_OK;
}

static bool exists(const check *c, const ir_node *node)
{
    return node->mark >= 0 && node->mark < c->n && c->nodes[node->mark] == node;
}

/* Is `value` defined where `node` (NULL: the end) of `graph` can see it? */
static bool visible(const check *c, const ir_value *value, const ir_node *node, const ir_graph *graph)
{
    if (!value->producer && value->type.data)
        return true; /* constants have no scope */
    while (graph && graph != value->graph) {
        node = graph->parent;
        graph = node ? node->graph : NULL;
    }
    if (!graph)
        return false;
    const ir_node *producer = value->producer;
    if (!producer)
        return value->is_input;
    return exists(c, producer) && value->out_index < producer->n_out &&
           producer->out[value->out_index] == value && producer->graph == graph &&
           (!node || producer->mark < node->mark);
}

static bool type_is_sound(const check *c, const ir_type *type)
{
    if (type->rank < -1 || type->rank > GRT_MAX_RANK || (type->rank > 0 && !type->dims))
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 || type->dims[i] >= grt_dims_count(c->dims))
            return false;
    return !type->data || (type->data->dtype == type->dtype && type->data->rank == type->rank);
}

static bool use_is_sound(const ir_use *use)
{
    return *use->link == use && (!use->next || use->next->link == &use->next);
}

static bool uses_are_counted(const ir_value *value)
{
    int32_t n = 0;
    for (const ir_use *use = value->uses; use; use = use->next)
        n += use->value == value;
    return n == value->n_uses;
}

static grt_status check_node(const check *c, const ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_use *use = &node->in[i];
        if (!use->value)
            continue;
        if (use->node != node || use->index != i || use->graph != node->graph || !use_is_sound(use))
            return broken(node, "an input's use is not linked", i, use->value);
        if (!visible(c, use->value, node, node->graph))
            return broken(node, "an input is not defined before it is used", i, use->value);
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        const ir_value *value = node->out[i];
        if (!value)
            continue;
        if (value->producer != node || value->out_index != i || value->graph != node->graph)
            return broken(node, "an output has another producer", i, value);
        if (!uses_are_counted(value))
            return broken(node, "an output's uses are miscounted", i, value);
        if (!type_is_sound(c, &value->type))
            return broken(node, "an output's type is unsound", i, value);
    }
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH && node->desc.attrs[i].graph->parent != node)
            return broken(node, "a body belongs to another node", (int32_t)i, NULL);
    return GRT_OK;
}

static grt_status check_graph(ir_graph *graph, void *user)
{
    const check *c = user;
    int32_t n = 0;
    IR_FOR_EACH_NODE (node, graph) {
        n++;
        if (node->graph != graph || (node->next ? node->next->prev : graph->last) != node)
            return broken(node, "the node list is torn", n, NULL);
        GRT_TRY(check_node(c, node));
    }
    if (n != graph->n_nodes)
        return grt_fail(GRT_STATUS_INTERNAL, "the graph '%s' is inconsistent: it has %d nodes and says %d",
                        graph->name, n, graph->n_nodes);
    for (int32_t i = 0; i < graph->n_outputs; i++) {
        const ir_use *use = &graph->outputs[i];
        if (!use->value || use->node || use->index != i || !use_is_sound(use) ||
            !visible(c, use->value, NULL, graph))
            return grt_fail(GRT_STATUS_INTERNAL,
                            "the graph '%s' is inconsistent: output %d ('%s') is not defined", graph->name, i,
                            use->value ? use->value->name : "");
    }
    return GRT_OK;
}

grt_status ir_verify(const ir_module *module)
{
    check c = {.dims = module->dims};
    grt_status status = ir_graph_walk(module->main, number_graph, &c);
    if (status == GRT_OK) /* numbers are in order within each graph, which is all that is compared */
        status = ir_graph_walk(module->main, check_graph, &c);
    free(c.nodes);
    return status;
}
