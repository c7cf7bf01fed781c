/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, graphs and values. */
#include "graph/ir/uses.h"

#include <inttypes.h>
#include <stdio.h>

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
    ir_use *uses = ir_uses_grow(graph->module->arena, graph->outputs, graph->n_outputs);
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
    ir_use_link(use, value);
}

void ir_graph_set_output(ir_graph *graph, int32_t index, ir_value *value)
{
    ir_use_unlink(&graph->outputs[index]);
    ir_use_link(&graph->outputs[index], value);
}

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
