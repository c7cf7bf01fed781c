/* SPDX-License-Identifier: Apache-2.0 */
/* The IR's invariants, checked from scratch: after import, and after every pass in debug builds. */
#include "src/base/names.h"
#include "graph/ir/op.h"
#include "src/base/grow.h"
#include "graph/ir/ir.h"

#include <inttypes.h>
#include <string.h>

#define BROKEN(...) grt_fail(GRT_STATUS_INTERNAL, __VA_ARGS__)
#define SHOWN(node) (node)->desc.op, (node)->desc.name

/* What was seen of a value. */
typedef struct seen {
    const ir_value *value;
    int32_t uses;
    bool visible; /* defined by now, in this graph or one around it */
} seen;

typedef struct verifier {
    const ir_module *module;
    grt_arena *arena;
    names names;              /* to what was seen of the value of that name */
    const ir_value **defined; /* stack of visible values: leaving a graph takes its values away */
    size_t n_defined, defined_capacity;
} verifier;

static bool verify_is_constant(const ir_value *value)
{
    return !value->producer && !value->is_input && value->type.data;
}

static grt_status check_type(const verifier *v, const ir_value *value)
{
    const ir_type *type = &value->type;
    if ((unsigned)type->kind > GRT_KIND_MAP || (unsigned)type->dtype >= GRT_DTYPE_COUNT)
        return BROKEN("value '%s' has kind %d and dtype %d", value->name, (int)type->kind, (int)type->dtype);
    if (type->rank < -1 || type->rank > GRT_MAX_RANK || (type->rank > 0 && !type->dims))
        return BROKEN("value '%s' has rank %d%s", value->name, type->rank, type->dims ? "" : " and no dims");
    for (int32_t i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 || type->dims[i] >= grt_dims_count(v->module->dims))
            return BROKEN("value '%s': dim %d is not an expression of the module", value->name, i);
    const grt_tensor *data = type->data;
    if (data && (data->dtype != type->dtype || data->rank != type->rank))
        return BROKEN("value '%s' is %s of rank %d, but its data is %s of rank %d", value->name,
                      grt_dtype_name(type->dtype), type->rank, grt_dtype_name(data->dtype), data->rank);
    return GRT_OK;
}

/* What was seen of a value so far. */
static grt_status meet(verifier *v, const ir_value *value, seen **out_seen)
{
    if (!value->name)
        return BROKEN("a value of graph '%s' has no name", value->graph->name);
    names_entry *e = names_add(&v->names, v->arena, value->name);
    seen *s = !e ? NULL : e->thing ? e->thing : GRT_ARENA_NEW(v->arena, seen);
    if (!s)
        return grt_fail_memory(0);
    *out_seen = s;
    if (s->value)
        return s->value == value ? GRT_OK : BROKEN("two values are named '%s'", value->name);
    *s = (seen){value, 0, false};
    e->thing = s;
    return check_type(v, value);
}

static grt_status define(verifier *v, const ir_value *value)
{
    seen *s;
    GRT_TRY(meet(v, value, &s));
    if (s->visible)
        return BROKEN("value '%s' is defined twice", value->name);
    s->visible = true;
    if (!GRT_ARENA_GROW(v->arena, v->defined, v->n_defined, v->defined_capacity))
        return grt_fail_memory(0);
    v->defined[v->n_defined++] = value;
    return GRT_OK;
}

/* `use` is input or output `index` of what `where` says. */
static grt_status check_use(verifier *v, const ir_use *use, const ir_node *node, const ir_graph *graph,
                            int32_t index, const char *where, const char *name)
{
    seen *s;
    if (use->node != node || use->graph != graph || use->index != index)
        return BROKEN("%s %d of '%s': the use says that it is somewhere else", where, index, name);
    if (!use->value)
        return node ? GRT_OK : BROKEN("%s %d of '%s' has no value", where, index, name);
    if (!use->link || *use->link != use)
        return BROKEN("%s %d of '%s' is not in the list of uses of '%s'", where, index, name,
                      use->value->name);
    GRT_TRY(meet(v, use->value, &s));
    s->uses++;
    if (s->visible || verify_is_constant(use->value)) /* constants have no scope */
        return GRT_OK;
    return BROKEN("%s %d of '%s' uses '%s', which is not defined before it", where, index, name,
                  use->value->name);
}

static grt_status check_row(const ir_node *node)
{
    const op_row *row = node->row;
    if (row != op_find(node->desc.domain, node->desc.op))
        return BROKEN("%s node '%s' has the row of another op", SHOWN(node));
    if (!row)
        return GRT_OK;
    if (!op_count_fits(node->n_in, row->min_in, row->max_in))
        return BROKEN("%s node '%s' has %d inputs, its row allows %d to %d", SHOWN(node), node->n_in,
                      row->min_in, row->max_in);
    if (!op_count_fits(node->n_out, row->min_out, row->max_out))
        return BROKEN("%s node '%s' has %d outputs, its row allows %d to %d", SHOWN(node), node->n_out,
                      row->min_out, row->max_out);
    return GRT_OK;
}

static grt_status check_graph(verifier *v, const ir_graph *graph, const ir_node *parent);

static grt_status check_node(verifier *v, const ir_node *node)
{
    GRT_TRY(check_row(node));
    for (int32_t i = 0; i < node->n_in; i++)
        GRT_TRY(check_use(v, &node->in[i], node, node->graph, i, "input", node->desc.name));
    for (size_t i = 0; i < node->desc.n_attrs; i++) {
        const grt_attr *attr = &node->desc.attrs[i];
        if (!attr->name)
            return BROKEN("%s node '%s' has an attribute without a name", SHOWN(node));
        if (attr->kind == GRT_ATTR_GRAPH)
            GRT_TRY(attr->graph
                        ? check_graph(v, attr->graph, node)
                        : BROKEN("%s node '%s': attribute '%s' has no graph", SHOWN(node), attr->name));
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        const ir_value *value = node->out[i];
        if (!value)
            continue;
        if (value->producer != node || value->out_index != i || value->graph != node->graph ||
            value->is_input)
            return BROKEN("output %d of %s node '%s', '%s', has another producer, place or graph", i,
                          SHOWN(node), value->name);
        GRT_TRY(define(v, value));
    }
    return GRT_OK;
}

static grt_status verify_check_inputs(verifier *v, const ir_graph *graph)
{
    for (int32_t i = 0; i < graph->n_inputs; i++) {
        const ir_value *value = graph->inputs[i], *constant = graph->defaults[i];
        if (!value || !value->is_input || value->producer || value->graph != graph)
            return BROKEN("input %d of graph '%s', '%s', is not an input of it", i, graph->name,
                          value ? value->name : "");
        GRT_TRY(define(v, value));
        if (constant && !verify_is_constant(constant))
            return BROKEN("the default of input '%s' of graph '%s' is not a constant", value->name,
                          graph->name);
    }
    return GRT_OK;
}

static grt_status check_nodes(verifier *v, const ir_graph *graph)
{
    const ir_node *prev = NULL;
    int32_t n = 0;
    for (const ir_node *node = graph->first; node; prev = node, node = node->next) {
        if (node->prev != prev || node->graph != graph || ++n > graph->n_nodes)
            return BROKEN("the node list of graph '%s' is broken at %s node '%s'", graph->name, SHOWN(node));
        GRT_TRY(check_node(v, node));
    }
    if (graph->last != prev || n != graph->n_nodes)
        return BROKEN("graph '%s' has %d nodes in its list, but counts %d", graph->name, n, graph->n_nodes);
    return GRT_OK;
}

static grt_status check_graph(verifier *v, const ir_graph *graph, const ir_node *parent)
{
    size_t around = v->n_defined;
    if (graph->module != v->module || graph->parent != parent)
        return BROKEN("graph '%s' belongs to another module or node", graph->name);
    GRT_TRY(verify_check_inputs(v, graph));
    GRT_TRY(check_nodes(v, graph));
    for (int32_t i = 0; i < graph->n_outputs; i++)
        GRT_TRY(check_use(v, &graph->outputs[i], NULL, graph, i, "output", graph->name));
    while (v->n_defined > around)
        ((seen *)names_find(&v->names, v->defined[--v->n_defined]->name)->thing)->visible = false;
    return GRT_OK;
}

/* Every use in a value's list was met in the graph, and none is missing. */
static grt_status check_counts(const verifier *v)
{
    for (size_t i = 0; i < v->names.capacity; i++) {
        const seen *s = v->names.slots[i].thing;
        const ir_value *value = s ? s->value : NULL;
        if (!value)
            continue;
        int32_t listed = 0;
        for (const ir_use *use = value->uses; use && listed <= value->n_uses; use = use->next, listed++)
            if (use->value != value)
                return BROKEN("a use in the list of '%s' is of another value", value->name);
        if (listed != value->n_uses || listed != s->uses)
            return BROKEN("'%s' is used %d times, but lists %d and counts %d", value->name, s->uses, listed,
                          value->n_uses);
    }
    return GRT_OK;
}

grt_status ir_verify(const ir_module *module)
{
    if (!module->main)
        return BROKEN("the module has no main graph");
    verifier v = {.module = module, .arena = grt_arena_create()};
    if (!v.arena)
        return grt_fail_memory(1);
    grt_status status = check_graph(&v, module->main, NULL);
    if (status == GRT_OK)
        status = check_counts(&v);
    grt_arena_release(v.arena);
    return status;
}
