/* SPDX-License-Identifier: Apache-2.0 */
/* Building and rewriting graphs. */
#include "graph/ir/ir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

grt_status ir_module_create(ir_module **out_module)
{
    grt_arena *arena = grt_arena_create();
    ir_module *module = arena ? GRT_ARENA_NEW(arena, ir_module) : NULL;
    grt_dims *dims = module ? grt_dims_create() : NULL;
    if (!dims) {
        grt_arena_release(arena);
        return grt_fail_memory(sizeof *module);
    }
    module->arena = arena;
    module->dims = dims;
    module->producer = "";
    budget_start(&module->budget, 0);
    *out_module = module;
    return GRT_OK;
}

void ir_module_release(ir_module *module)
{
    if (!module)
        return;
    budget_release(&module->budget);
    grt_dims_release(module->dims);
    grt_arena_release(module->arena);
}

ir_graph *ir_graph_create(ir_module *module, ir_node *parent, const char *name)
{
    ir_graph *graph = GRT_ARENA_NEW(module->arena, ir_graph);
    if (!graph)
        return NULL;
    graph->module = module;
    graph->parent = parent;
    module->has_bodies = module->has_bodies || parent;
    graph->name = grt_arena_strdup(module->arena, name);
    return graph;
}

/* ---- uses ---- */

static void use_unlink(ir_use *use)
{
    if (!use->value)
        return;
    *use->link = use->next;
    if (use->next)
        use->next->link = use->link;
    use->value->n_uses--;
    use->value = NULL;
}

static void use_link(ir_use *use, ir_value *value)
{
    use->value = value;
    if (!value)
        return;
    use->next = value->uses;
    use->link = &value->uses;
    if (use->next)
        use->next->link = &use->next;
    value->uses = use;
    value->n_uses++;
}

/* Arrays of uses move when they grow: the list links follow. */
static ir_use *grow_uses(grt_arena *arena, ir_use *old, int32_t n)
{
    /* Capacity is the next power of two, so that adding one by one stays linear. */
    if (n && (n & (n - 1)))
        return old;
    ir_use *uses = GRT_ARENA_ARRAY(arena, ir_use, n ? 2 * n : 1);
    if (!uses)
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        uses[i] = old[i];
        if (!uses[i].value)
            continue;
        *uses[i].link = &uses[i];
        if (uses[i].next)
            uses[i].next->link = &uses[i].next;
    }
    return uses;
}

void ir_value_replace(ir_value *from, ir_value *to)
{
    while (from->uses) {
        ir_use *use = from->uses;
        use_unlink(use);
        use_link(use, to);
    }
}

/* ---- values ---- */

ir_value *ir_value_create(ir_graph *graph, const char *name)
{
    grt_arena *arena = graph->module->arena;
    ir_value *value = GRT_ARENA_NEW(arena, ir_value);
    if (!value)
        return NULL;
    value->name = grt_arena_strdup(arena, name);
    value->graph = graph;
    value->type.rank = -1;
    return value->name ? value : NULL;
}

ir_value *ir_value_fresh(ir_graph *graph, const char *hint)
{
    /* '\x1f' cannot clash: import refuses control characters in names. */
    char *name = grt_arena_printf(graph->module->arena, "%s\x1f%" PRId64, hint, graph->module->next_id++);
    ir_value *value = name ? ir_value_create(graph, "") : NULL;
    if (value)
        value->name = name;
    return value;
}

void ir_value_forget_name(ir_value *value)
{
    const ir_value *fresh = ir_value_fresh(value->graph, value->name);
    if (fresh)
        value->name = fresh->name;
}

/* ---- nodes ---- */

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
    use_link(&node->in[i], value);
}

ir_node *ir_node_create(ir_graph *graph, ir_node *before, const char *domain, const char *op,
                        const char *name, int32_t n_in, ir_value *const *in, int32_t n_out)
{
    grt_arena *arena = graph->module->arena;
    ir_node *node = GRT_ARENA_NEW(arena, ir_node);
    /* Room for the next power of two: see grow_uses. */
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
        use_unlink(&body->outputs[i]);
    while (body->last)
        ir_node_remove(body->last);
}

void ir_node_remove(ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        use_unlink(&node->in[i]);
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
    use_unlink(&node->in[index]);
    use_link(&node->in[index], value);
}

void ir_node_add_input(ir_node *node, ir_value *value)
{
    ir_use *uses = grow_uses(node->graph->module->arena, node->in, node->n_in);
    if (!uses)
        return;
    node->in = uses;
    init_use(node, node->n_in++, value);
}

void ir_node_drop_inputs(ir_node *node, int32_t from)
{
    for (int32_t i = from; i < node->n_in; i++)
        use_unlink(&node->in[i]);
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
            use_unlink(&old[i]);
            init_use(node, i, value);
        }
    }
}

void ir_graph_add_input(ir_graph *graph, ir_value *value, ir_value *default_value)
{
    grt_arena *arena = graph->module->arena;
    int32_t n = graph->n_inputs;
    if (!(n & (n - 1))) {
        int32_t capacity = n ? 2 * n : 1;
        ir_value **inputs = GRT_ARENA_ARRAY(arena, ir_value *, capacity);
        ir_value **defaults = GRT_ARENA_ARRAY(arena, ir_value *, capacity);
        if (!inputs || !defaults)
            return;
        for (int32_t i = 0; i < n; i++) {
            inputs[i] = graph->inputs[i];
            defaults[i] = graph->defaults[i];
        }
        graph->inputs = inputs;
        graph->defaults = defaults;
    }
    value->is_input = true;
    graph->inputs[n] = value;
    graph->defaults[n] = default_value;
    graph->n_inputs++;
}

void ir_graph_add_output(ir_graph *graph, ir_value *value)
{
    ir_use *uses = grow_uses(graph->module->arena, graph->outputs, graph->n_outputs);
    if (!uses)
        return;
    int32_t n = graph->n_outputs;
    if (!(n & (n - 1))) {
        const char **names = GRT_ARENA_ARRAY(graph->module->arena, const char *, n ? 2 * n : 1);
        if (!names)
            return;
        for (int32_t i = 0; i < n; i++)
            names[i] = graph->output_names[i];
        graph->output_names = names;
    }
    graph->output_names[n] = value->name;
    graph->outputs = uses;
    ir_use *use = &uses[n];
    *use = (ir_use){.graph = graph, .index = graph->n_outputs};
    graph->n_outputs++;
    use_link(use, value);
}

void ir_graph_set_output(ir_graph *graph, int32_t index, ir_value *value)
{
    use_unlink(&graph->outputs[index]);
    use_link(&graph->outputs[index], value);
}

void ir_node_become(ir_node *node, const char *domain, const char *op)
{
    grt_arena *arena = node->graph->module->arena;
    node->desc.domain = grt_arena_strdup(arena, domain);
    node->desc.op = grt_arena_strdup(arena, op);
    node->row = op_find(domain, op);
    node->opset = node->row ? node->row->since : 0;
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

/* ---- attributes ---- */

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

/* ---- whole graphs ---- */

grt_status ir_graph_walk(ir_graph *graph, grt_status (*visit)(ir_graph *graph, void *user), void *user)
{
    if (!graph->module->has_bodies)
        return visit(graph, user);
    IR_FOR_EACH_NODE (node, graph)
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                GRT_TRY(ir_graph_walk(node->desc.attrs[i].graph, visit, user));
    return visit(graph, user);
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

grt_status ir_warn(ir_module *module, const ir_node *node, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (module->warnings.strict)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "%s", message);
    ir_warnings_tell(&module->warnings, node->desc.name, node->desc.op, node->opset, message);
    return GRT_OK;
}

void ir_clear_marks(ir_graph *graph)
{
    for (int32_t i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->mark = 0;
    IR_FOR_EACH_NODE (node, graph) {
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i].value)
                node->in[i].value->mark = 0;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
    }
}

bool ir_is_inner(const ir_value *value)
{
    return value && value->producer && value->n_uses == 1;
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
