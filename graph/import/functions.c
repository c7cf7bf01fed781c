/* SPDX-License-Identifier: Apache-2.0 */
/* Model-local functions: every call is replaced by the function's body. */
#include "graph/import/importer.h"

#include <inttypes.h>
#include <string.h>

/* '\x1f' cannot be in any of the three: control characters are refused. */
static const char *key_of(grt_arena *arena, const char *domain, const char *name, const char *overload)
{
    return grt_arena_printf(arena, "%s\x1f%s\x1f%s", domain_of(domain), name, overload);
}

grt_status import_functions(importer *imp)
{
    const Onnx__ModelProto *model = imp->model;
    if (model->n_functions > MAX_FUNCTIONS)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "the model has %zu functions; the limit is %d",
                        model->n_functions, MAX_FUNCTIONS);
    for (size_t i = 0; i < model->n_functions; i++) {
        Onnx__FunctionProto *f = model->functions[i];
        const char *name = text_or_empty(f->name);
        const char *key = key_of(imp->scratch, f->domain, name, text_or_empty(f->overload));
        names_entry *e = key ? names_add(&imp->functions, imp->scratch, key) : NULL;
        if (!e)
            return grt_fail_memory(0);
        if (f->n_attribute_proto > MAX_ATTRIBUTES || f->n_opset_import > MAX_OPSETS)
            return grt_fail(
                GRT_STATUS_INVALID_MODEL,
                "function '%s' has %zu attributes and %zu opset imports; the limits are %d and %d", name,
                f->n_attribute_proto, f->n_opset_import, MAX_ATTRIBUTES, MAX_OPSETS);
        if (!*name)
            GRT_TRY(problem(imp, NULL, "function %zu has no name", i));
        else if (e->thing)
            GRT_TRY(problem(imp, NULL, "function '%s' of domain '%s' is defined twice", name,
                            domain_of(f->domain)));
        e->thing = f;
        bool ordered;
        GRT_TRY(order_nodes(imp, name, f->node, f->n_node, &ordered));
    }
    return GRT_OK;
}

const Onnx__FunctionProto *function_find(const importer *imp, const char *domain, const char *name,
                                         const char *overload)
{
    if (!imp->functions.n)
        return NULL;
    const char *key = key_of(imp->scratch, domain, name, overload);
    const names_entry *e = key ? names_find(&imp->functions, key) : NULL;
    return e ? e->thing : NULL;
}

static grt_status bind_attrs(importer *imp, scope *s, const Onnx__NodeProto *proto, call *c)
{
    c->attrs = GRT_ARENA_ARRAY(imp->scratch, call_attr, proto->n_attribute);
    if (!c->attrs)
        return grt_fail_memory(0);
    for (size_t i = 0; i < proto->n_attribute; i++) {
        call_attr *a = &c->attrs[c->n_attrs];
        a->name = text_or_empty(proto->attribute[i]->name);
        a->proto = attr_target(proto->attribute[i], s, &a->scope);
        if (a->proto)
            c->n_attrs++;
    }
    return GRT_OK;
}

static grt_status function_bind_inputs(importer *imp, scope *s, scope *inner, const culprit *who,
                                       const Onnx__NodeProto *proto)
{
    const Onnx__FunctionProto *f = inner->call->function;
    if (proto->n_input > f->n_input)
        return problem(imp, who, "is called with %zu inputs, but function '%s' has %zu", proto->n_input,
                       f->name, f->n_input);
    for (size_t i = 0; i < f->n_input; i++) {
        ir_value *value = NULL;
        if (i < proto->n_input)
            GRT_TRY(scope_resolve(imp, s, who, "input", proto->input[i], &value));
        GRT_TRY(value ? scope_define(imp, inner, who, f->input[i], value)
                      : scope_omit(imp, inner, f->input[i]));
    }
    return GRT_OK;
}

/* True if the value cannot become the call's output itself: an input passed through, a constant, or already
 * an output of the call. */
static ir_value *copy_value(importer *imp, scope *inner, ir_value *value)
{
    const char *name = grt_arena_printf(imp->scratch, "%soutput", inner->call->prefix);
    return name ? ir_node_out(ir_node_create(inner->graph, NULL, "", "Identity", name, 1, &value, 1)) : NULL;
}

/* made_from, made_to: the serials of values that the body made and that were not given out yet. */
static grt_status function_bind_output(importer *imp, scope *s, scope *inner, const culprit *who,
                                       const char *inner_name, const char *outer_name, int64_t made_from,
                                       int64_t made_to)
{
    ir_value *value;
    GRT_TRY(scope_resolve(imp, inner, who, "function output", inner_name, &value));
    if (!value)
        return scope_omit(imp, s, outer_name);
    if (!value->producer || value->mark <= made_from || value->mark > made_to)
        value = copy_value(imp, inner, value);
    if (!value)
        return grt_fail_memory(0);
    value->name = scope_unique(imp, s, outer_name);
    if (!value->name)
        return grt_fail_memory(0);
    value->mark = ++imp->serial;
    return scope_define(imp, s, who, outer_name, value);
}

static grt_status function_bind_outputs(importer *imp, scope *s, scope *inner, const culprit *who,
                                        const Onnx__NodeProto *proto, int64_t made_from)
{
    const Onnx__FunctionProto *f = inner->call->function;
    int64_t made_to = imp->serial;
    if (proto->n_output > f->n_output)
        return problem(imp, who, "is called for %zu outputs, but function '%s' has %zu", proto->n_output,
                       f->name, f->n_output);
    for (size_t i = 0; i < proto->n_output; i++)
        if (*proto->output[i])
            GRT_TRY(
                function_bind_output(imp, s, inner, who, f->output[i], proto->output[i], made_from, made_to));
    return GRT_OK;
}

static grt_status function_announce(importer *imp, scope *inner, const Onnx__FunctionProto *f)
{
    for (size_t i = 0; i < f->n_node; i++)
        for (size_t k = 0; k < f->node[i]->n_output; k++)
            if (*f->node[i]->output[k])
                GRT_TRY(scope_announce(imp, inner, f->node[i]->output[k]));
    return GRT_OK;
}

static grt_status check_call(importer *imp, const scope *s, const culprit *who, const Onnx__FunctionProto *f)
{
    for (const call *c = s->call; c; c = c->outer)
        if (c->function == f)
            return problem(
                imp, who,
                "function '%s' calls itself, directly or through others; functions must not be recursive",
                f->name);
    if ((s->call && s->call->depth >= MAX_CALL_DEPTH) || imp->depth >= MAX_SCOPE_DEPTH)
        return problem(imp, who, "functions call each other deeper than %d levels", MAX_CALL_DEPTH);
    return GRT_OK;
}

grt_status import_call(importer *imp, scope *s, const culprit *who, const Onnx__FunctionProto *function,
                       const Onnx__NodeProto *proto, const char *name)
{
    int64_t problems = imp->n_problems;
    GRT_TRY(check_call(imp, s, who, function));
    if (imp->n_problems != problems)
        return GRT_OK;
    imp->module->source_nodes--; /* its body counts instead */
    call c = {.function = function, .outer = s->call, .depth = s->call ? s->call->depth + 1 : 1};
    c.prefix = grt_arena_printf(imp->arena, "%s/", name);
    opsets versions = {function->opset_import, function->n_opset_import, 0};
    scope inner = {.graph = s->graph, .opsets = &versions, .call = &c};
    if (!c.prefix)
        return grt_fail_memory(0);
    int64_t made_from = imp->serial;
    GRT_TRY(bind_attrs(imp, s, proto, &c));
    GRT_TRY(function_bind_inputs(imp, s, &inner, who, proto));
    GRT_TRY(function_announce(imp, &inner, function));
    imp->depth++;
    grt_status status = GRT_OK;
    for (size_t i = 0; status == GRT_OK && i < function->n_node; i++)
        status = imp->node(imp, &inner, function->node[i]);
    imp->depth--;
    GRT_TRY(status);
    return function_bind_outputs(imp, s, &inner, who, proto, made_from);
}
