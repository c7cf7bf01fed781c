/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: their place in a graph, inputs, attributes and names. */
#include "graph/ir/uses.h"

#include <string.h>

static void link_before(ir_node *node, ir_node *before)
{
    ir_graph *graph = node->graph;
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    if (node->prev)
        node->prev->next = node;
    else
        graph->first = node;
    if (before)
        before->prev = node;
    else
        graph->last = node;
    graph->n_nodes++;
}

static void unlink_node(ir_node *node)
{
    ir_graph *graph = node->graph;
    if (node->prev)
        node->prev->next = node->next;
    else
        graph->first = node->next;
    if (node->next)
        node->next->prev = node->prev;
    else
        graph->last = node->prev;
    node->prev = node->next = NULL;
    graph->n_nodes--;
}

static void init_use(ir_node *node, int32_t i, ir_value *value)
{
    node->in[i] = (ir_use){.node = node, .graph = node->graph, .index = i};
    ir_use_link(&node->in[i], value);
}

ir_node *ir_node_create(ir_graph *graph, ir_node *before, const char *domain, const char *op,
                        const char *name, int32_t n_in, ir_value *const *in, int32_t n_out)
{
    grt_arena *arena = graph->module->arena;
    ir_node *node = GRT_ARENA_NEW(arena, ir_node);
    /* Room for the next power of two: see ir_uses_grow. */
    int32_t capacity = 1;
    while (capacity < n_in)
        capacity *= 2;
    ir_use *uses = GRT_ARENA_ARRAY(arena, ir_use, capacity);
    ir_value **out = GRT_ARENA_ARRAY(arena, ir_value *, n_out ? n_out : 1);
    if (!node || !uses || !out)
        return NULL;
    node->graph = graph;
    node->desc = (grt_op_desc){grt_arena_strdup(arena, domain), grt_arena_strdup(arena, op),
                               grt_arena_strdup(arena, name), NULL, 0};
    node->row = op_find(domain, op);
    node->opset = node->row ? node->row->since : 0;
    node->in = uses;
    node->out = out;
    node->n_in = n_in;
    for (int32_t i = 0; i < n_in; i++)
        init_use(node, i, in[i]);
    for (int32_t i = 0; i < n_out; i++) {
        ir_value *value = ir_value_fresh(graph, name);
        if (!value)
            return NULL;
        value->producer = node;
        value->out_index = i;
        out[i] = value;
    }
    node->n_out = n_out;
    link_before(node, before);
    return node;
}

/* What a body uses of the graphs around it is not used any more. */
static void remove_body(const grt_attr *attr)
{
    if (attr->kind != GRT_ATTR_GRAPH)
        return;
    ir_graph *body = attr->graph;
    for (int32_t i = 0; i < body->n_outputs; i++)
        ir_use_unlink(&body->outputs[i]);
    while (body->last)
        ir_node_remove(body->last);
}

void ir_node_remove(ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        ir_use_unlink(&node->in[i]);
    unlink_node(node);
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        remove_body(&node->desc.attrs[i]);
}

void ir_node_move_before(ir_node *node, ir_node *before)
{
    unlink_node(node);
    link_before(node, before);
}

void ir_node_set_input(ir_node *node, int32_t index, ir_value *value)
{
    ir_use_unlink(&node->in[index]);
    ir_use_link(&node->in[index], value);
}

void ir_node_add_input(ir_node *node, ir_value *value)
{
    ir_use *uses = ir_uses_grow(node->graph->module->arena, node->in, node->n_in);
    if (!uses)
        return;
    node->in = uses;
    init_use(node, node->n_in++, value);
}

void ir_node_drop_inputs(ir_node *node, int32_t from)
{
    for (int32_t i = from; i < node->n_in; i++)
        ir_use_unlink(&node->in[i]);
    if (from < node->n_in) {
        /* Keep "capacity is the next power of two" true by re-homing the survivors. */
        int32_t capacity = 1;
        while (capacity < from)
            capacity *= 2;
        ir_use *uses = GRT_ARENA_ARRAY(node->graph->module->arena, ir_use, capacity);
        if (!uses)
            return;
        ir_use *old = node->in;
        node->in = uses;
        node->n_in = from;
        for (int32_t i = 0; i < from; i++) {
            ir_value *value = old[i].value;
            ir_use_unlink(&old[i]);
            init_use(node, i, value);
        }
    }
}

void ir_node_become(ir_node *node, const char *domain, const char *op)
{
    grt_arena *arena = node->graph->module->arena;
    node->desc.domain = grt_arena_strdup(arena, domain);
    node->desc.op = grt_arena_strdup(arena, op);
    node->row = op_find(domain, op);
    node->opset = node->row ? node->row->since : 0;
    node->check_types = false;
}

void ir_node_absorb_name(ir_node *node, const ir_node *other)
{
    /* Names of long chains are cut: they are for people. */
    if (strlen(node->desc.name) + strlen(other->desc.name) > 1000)
        return;
    char *name = grt_arena_printf(node->graph->module->arena, "%s+%s", node->desc.name, other->desc.name);
    if (name)
        node->desc.name = name;
}

void ir_attr_set(ir_node *node, grt_attr attr)
{
    grt_arena *arena = node->graph->module->arena;
    const grt_attr *old = grt_attr_find(&node->desc, attr.name);
    size_t n = node->desc.n_attrs + !old;
    grt_attr *attrs = GRT_ARENA_ARRAY(arena, grt_attr, n);
    attr.name = grt_arena_strdup(arena, attr.name);
    if (!attrs || !attr.name) /* a list is never left with an attribute that has no name */
        return;
    if (node->desc.n_attrs)
        memcpy(attrs, node->desc.attrs, node->desc.n_attrs * sizeof *attrs);
    attrs[old ? (size_t)(old - node->desc.attrs) : n - 1] = attr;
    node->desc.attrs = attrs;
    node->desc.n_attrs = n;
}

void ir_attr_set_int(ir_node *node, const char *name, int64_t value)
{
    ir_attr_set(node, (grt_attr){.name = name, .kind = GRT_ATTR_INT, .i = value});
}

void ir_attr_set_float(ir_node *node, const char *name, float value)
{
    ir_attr_set(node, (grt_attr){.name = name, .kind = GRT_ATTR_FLOAT, .f = value});
}

void ir_attr_set_string(ir_node *node, const char *name, const char *value)
{
    grt_attr attr = {.name = name, .kind = GRT_ATTR_STRING};
    attr.s = (grt_string){grt_arena_strdup(node->graph->module->arena, value), strlen(value)};
    ir_attr_set(node, attr);
}

void ir_attr_set_ints(ir_node *node, const char *name, const int64_t *values, size_t n)
{
    grt_attr attr = {.name = name, .kind = GRT_ATTR_INTS};
    attr.ints.v = grt_arena_memdup(node->graph->module->arena, values, n * sizeof *values);
    attr.ints.n = n;
    ir_attr_set(node, attr);
}

void ir_attr_remove(ir_node *node, const char *name)
{
    const grt_attr *old = grt_attr_find(&node->desc, name);
    if (!old)
        return;
    size_t n = node->desc.n_attrs - 1, at = (size_t)(old - node->desc.attrs);
    grt_attr *attrs = GRT_ARENA_ARRAY(node->graph->module->arena, grt_attr, n);
    if (!attrs)
        return;
    remove_body(old);
    memcpy(attrs, node->desc.attrs, at * sizeof *attrs);
    memcpy(attrs + at, old + 1, (n - at) * sizeof *attrs);
    node->desc.attrs = attrs;
    node->desc.n_attrs = n;
}

void ir_attrs_copy(ir_node *to, const ir_node *from)
{
    to->desc.attrs = from->desc.attrs;
    to->desc.n_attrs = from->desc.n_attrs;
}

static void ir_add_input(const grt_dims *dims, const ir_value *value, grt_text *text)
{
    if (!value) {
        grt_text_add(text, "none");
        return;
    }
    const ir_type *type = &value->type;
    grt_text_add(text, "'%.100s' ", value->name);
    if (type->kind != GRT_KIND_TENSOR)
        grt_text_add(text, "%s of ", grt_kind_name(type->kind));
    grt_text_add(text, "%s", type->dtype ? grt_dtype_name(type->dtype) : "unknown");
    if (type->rank < 0)
        return;
    grt_text_add(text, "[");
    for (int32_t i = 0; i < type->rank; i++) {
        grt_text_add(text, i ? "x" : "");
        grt_dim_print(dims, type->dims[i], text);
    }
    grt_text_add(text, "]");
}

void ir_node_add_inputs(const ir_node *node, grt_text *text)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        grt_text_add(text, i ? ", " : "");
        if (i == GRT_SHOWN_INPUTS) {
            grt_text_add(text, "%d more", node->n_in - i);
            break;
        }
        ir_add_input(node->graph->module->dims, node->in[i].value, text);
    }
}

bool ir_node_is_unused(const ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return false;
    return true;
}

bool ir_node_has_body(const ir_node *node)
{
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
            return true;
    return false;
}
