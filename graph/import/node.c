/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: look-ups, checks against the op's row, upgrade to the newest form. */
#include "graph/import/importer.h"

#include "src/base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Version of `domain` that is imported; 0 if none. Of several entries the last counts. */
static int64_t version_of(const opsets *imported, const char *domain)
{
    for (size_t i = imported->n; i > 0; i--)
        if (!strcmp(domain_of(imported->list[i - 1]->domain), domain))
            return imported->list[i - 1]->version;
    return *domain ? 0 : imported->fallback;
}

/* Each domain is reported once. */
static grt_status first_of_domain(importer *imp, const char *domain, bool *out_first)
{
    names_entry *told = names_add(&imp->domains_told, imp->scratch, domain);
    if (!told)
        return grt_fail_memory(0);
    *out_first = !told->thing;
    told->thing = imp;
    return GRT_OK;
}

/* A domain that no opset_import lists has the newest version that is known; operators of unknown domains are
 * reported one by one, if no function of the model is behind them. */
static grt_status node_check_version(importer *imp, culprit *who, const char *domain)
{
    const char *shown = *domain ? domain : "ai.onnx";
    const int32_t newest = op_newest(domain);
    bool first;
    GRT_TRY(first_of_domain(imp, domain, &first));
    if (!strcmp(domain, "graphrt"))
        return problem(imp, who, "domain 'graphrt' is what models are compiled to; a model cannot use it");
    if (who->opset <= 0) {
        const int64_t of_model = version_of(&imp->opsets, domain); /* a function may forget to list it */
        who->opset = of_model > 0 ? of_model : newest ? newest : 1;
        return first ? warning(imp, who,
                               "domain '%s' is used, but no opset_import lists it; version %" PRId64
                               " was taken",
                               shown, who->opset)
                     : GRT_OK;
    }
    if (newest && who->opset > newest && first)
        return problem_from(imp, who,
                            grt_fail(GRT_STATUS_UNSUPPORTED,
                                     "opset %" PRId64 " of domain '%s' is newer than the newest known, %d",
                                     who->opset, shown, newest));
    return GRT_OK;
}

static grt_status resolve_inputs(importer *imp, scope *s, const culprit *who, const Onnx__NodeProto *proto,
                                 ir_value **in)
{
    for (size_t i = 0; i < proto->n_input; i++)
        GRT_TRY(scope_resolve(imp, s, who, "input", proto->input[i], &in[i]));
    return GRT_OK;
}

static grt_status name_outputs(importer *imp, scope *s, const culprit *who, ir_node *node,
                               const Onnx__NodeProto *proto)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        const char *name = proto->output[i];
        if (!*name && !(node->row && i < node->row->min_out)) {
            node->out[i] = NULL;
            continue;
        }
        if (!*name) /* rules and kernels rely on required outputs */
            name = "unused";
        node->out[i]->mark = ++imp->serial;
        node->out[i]->name = scope_unique(imp, s, name);
        if (!node->out[i]->name)
            return grt_fail_memory(0);
    }
    (void)who;
    return GRT_OK;
}

static grt_status define_outputs(importer *imp, scope *s, const culprit *who, int32_t n_out,
                                 ir_value *const *out, const Onnx__NodeProto *proto)
{
    for (int32_t i = 0; i < n_out && i < (int32_t)proto->n_output; i++)
        if (out[i] && out[i]->producer && out[i]->out_index < out[i]->producer->n_out && *proto->output[i])
            GRT_TRY(scope_define(imp, s, who, proto->output[i], out[i]));
    return GRT_OK;
}

static const op_attr *row_attr(const op_row *row, const char *name)
{
    for (const op_attr *a = row->attrs; a && a->name; a++)
        if (!strcmp(a->name, name))
            return a;
    return NULL;
}

static const char *node_kind_name(grt_attr_kind kind)
{
    static const char *const texts[] = {"int",    "float",   "string", "tensor", "ints",
                                        "floats", "strings", "graph",  "type"};
    return texts[kind];
}

/* Versions of ai.onnx and ai.onnx.ml define all attributes, so others are ignored. Domains that stay at
 * version 1 may get new ones. domain: the model's, before an upgrade. */
static grt_status unknown_attr(importer *imp, const culprit *who, ir_node *node, const char *domain,
                               const char *name)
{
    const op_row *row = node->row;
    const bool versioned = !*domain || !strcmp(domain, "ai.onnx.ml");
    grt_text known = {0};
    for (const op_attr *a = row->attrs; a && a->name; a++)
        grt_text_add(&known, "%s%s", known.size ? ", " : "", a->name);
    const char *has = known.size ? grt_text_get(&known) : "none";
    grt_status status =
        versioned ? warning(imp, who, "attribute '%s' is not known and was left out; %s has %s", name,
                            row->name, has)
                  : problem(imp, who, "attribute '%s' is not known; %s has %s", name, row->name, has);
    grt_text_release(&known);
    ir_attr_remove(node, name);
    return status;
}

static grt_status check_attr(importer *imp, const culprit *who, const grt_attr *attr, const op_attr *expected)
{
    if (expected->kind == attr->kind)
        return GRT_OK;
    return problem(imp, who, "attribute '%s' must be %s, found %s", attr->name,
                   node_kind_name(expected->kind), node_kind_name(attr->kind));
}

static grt_status node_check_attrs(importer *imp, const culprit *who, ir_node *node, const char *domain)
{
    for (size_t i = node->desc.n_attrs; i > 0; i--) { /* backwards: attributes may be removed */
        const grt_attr *attr = &node->desc.attrs[i - 1];
        const op_attr *expected = row_attr(node->row, attr->name);
        GRT_TRY(expected ? check_attr(imp, who, attr, expected)
                         : unknown_attr(imp, who, node, domain, attr->name));
    }
    for (const op_attr *a = node->row->attrs; a && a->name; a++)
        if (a->required && !grt_attr_find(&node->desc, a->name))
            GRT_TRY(problem(imp, who, "attribute '%s' (%s) is required", a->name, node_kind_name(a->kind)));
    return GRT_OK;
}

static grt_status node_check_count(importer *imp, const culprit *who, const char *what, int32_t n,
                                   int16_t min, int16_t max)
{
    if (op_count_fits(n, min, max))
        return GRT_OK;
    if (max == OP_VARIADIC)
        return problem(imp, who, "has %d %s, at least %d expected", n, what, min);
    if (min == max)
        return problem(imp, who, "has %d %s, %d expected", n, what, min);
    return problem(imp, who, "has %d %s, %d to %d expected", n, what, min, max);
}

static grt_status node_check_arity(importer *imp, const culprit *who, const ir_node *node)
{
    const op_row *row = node->row;
    GRT_TRY(node_check_count(imp, who, "inputs", node->n_in, row->min_in, row->max_in));
    GRT_TRY(node_check_count(imp, who, "outputs", node->n_out, row->min_out, row->max_out));
    return GRT_OK;
}

static grt_status upgrade(importer *imp, const culprit *who, ir_node *node, int64_t opset)
{
    const op_row *row = node->row;
    node->opset = (int32_t)opset;
    if (!row)
        return GRT_OK;
    if (opset < row->since && row->upgrade) {
        /* Checks of all forms of the op, so that upgrades need not repeat them. */
        if ((row->min_in && !node->n_in) || (row->min_out && !node->n_out))
            return problem(imp, who, "has no first %s", row->min_out && !node->n_out ? "output" : "input");
        grt_status status = row->upgrade(node, (int32_t)opset);
        if (status != GRT_OK)
            return problem_from(imp, who, status);
    }
    if (grt_arena_failed(imp->arena))
        return grt_fail_memory(0);
    int64_t before = imp->n_problems;
    if (!node->row)
        return GRT_OK;
    node->opset = node->row->since;
    GRT_TRY(node_check_attrs(imp, who, node, row->domain));
    if (imp->n_problems == before)
        GRT_TRY(node_check_arity(imp, who, node));
    return GRT_OK;
}

static grt_status constant_node(importer *imp, scope *s, const culprit *who, const Onnx__NodeProto *proto)
{
    const grt_tensor *tensor;
    if (proto->n_output != 1 || !*proto->output[0])
        return problem(imp, who, "a constant must have one output");
    grt_status status = import_constant(imp, s, who, proto, &tensor);
    if (status != GRT_OK) {
        GRT_TRY(problem_from(imp, who, status));
        return scope_omit(imp, s, proto->output[0]);
    }
    ir_value *value = ir_constant(s->graph, "", tensor);
    const char *name = scope_unique(imp, s, proto->output[0]);
    if (!value || !name)
        return grt_fail_memory(0);
    value->name = name;
    return scope_define(imp, s, who, proto->output[0], value);
}

static void take_declared(ir_node *node)
{
    const grt_attr *body = grt_attr_find(&node->desc, "body");
    if (node->row && node->row->control && body && body->kind == GRT_ATTR_GRAPH && body->graph->n_declared)
        ir_attr_set_ints(node, GRT_ATTR_DECLARED, body->graph->declared, body->graph->n_declared);
}

/* Trailing operands that are left out count as not there. */
static int32_t used(size_t n, char *const *list, int32_t keep)
{
    while ((int32_t)n > keep && !*list[n - 1])
        n--;
    return (int32_t)n;
}

static grt_status op_node(importer *imp, scope *s, const culprit *who, const Onnx__NodeProto *proto,
                          const char *domain, const char *name)
{
    const op_row *row = op_find(domain, proto->op_type);
    int32_t n_in = used(proto->n_input, proto->input, row ? row->min_in : 0);
    int32_t n_out = used(proto->n_output, proto->output, row ? row->min_out : 0);
    ir_value **in = GRT_ARENA_ARRAY(imp->scratch, ir_value *, proto->n_input);
    if (!in)
        return grt_fail_memory(0);
    GRT_TRY(resolve_inputs(imp, s, who, proto, in));
    ir_node *node = ir_node_create(s->graph, NULL, domain, proto->op_type, name, n_in, in, n_out);
    if (!node)
        return grt_fail_memory(0);
    node->opset = (int32_t)who->opset;
    GRT_TRY(name_outputs(imp, s, who, node, proto));
    GRT_TRY(import_attrs(imp, s, who, node, proto));
    /* The values that bear the source's names: an upgrade may let another node make them. */
    int32_t n_named = node->n_out;
    ir_value **named = grt_arena_memdup(imp->scratch, node->out, (size_t)n_named * sizeof *named);
    if (n_named && !named)
        return grt_fail_memory(0);
    GRT_TRY(upgrade(imp, who, node, who->opset));
    node->check_types = true;
    take_declared(node);
    return define_outputs(imp, s, who, n_named, named, proto);
}

/* The node's name, or that of its first output; calls around it come first. */
static const char *node_name(importer *imp, const scope *s, const Onnx__NodeProto *proto)
{
    const char *name = text_or_empty(proto->name);
    for (size_t i = 0; !*name && i < proto->n_output; i++)
        name = proto->output[i];
    return s->call ? grt_arena_printf(imp->arena, "%s%s", s->call->prefix, name) : name;
}

/* Duplicate node names only make messages less clear: a warning. */
static grt_status check_name(importer *imp, const culprit *who, const Onnx__NodeProto *proto)
{
    if (!*text_or_empty(proto->name))
        return GRT_OK;
    names_entry *e = names_add(&imp->node_names, imp->scratch, who->node);
    if (!e)
        return grt_fail_memory(0);
    const bool second = e->thing == imp;
    e->thing = !e->thing ? (void *)imp : (void *)e; /* reported once */
    return second ? warning(imp, who, "another node has this name, too") : GRT_OK;
}

/* Nested functions can expand exponentially: limit the number of inlined nodes. */
static grt_status check_growth(importer *imp, const culprit *who, const Onnx__NodeProto *proto)
{
    size_t room = 0;
    imp->inlined += 1 + (int64_t)((proto->n_input + proto->n_output + proto->n_attribute) / 64);
    if (!grt_mul_size(imp->size, 16, &room) || !grt_add_size(room, 24 << 20, &room))
        room = SIZE_MAX;
    if (imp->inlined > MAX_INLINED_NODES || grt_arena_bytes(imp->arena) > room)
        return grt_fail(GRT_STATUS_INVALID_MODEL,
                        "inlining functions makes more than %d nodes, or out of proportion to the file; %s "
                        "node '%s' was the last",
                        MAX_INLINED_NODES, who->op, who->node);
    return GRT_OK;
}

grt_status import_node(importer *imp, scope *s, const Onnx__NodeProto *proto)
{
    const char *domain = domain_of(proto->domain), *op = text_or_empty(proto->op_type);
    const char *name = node_name(imp, s, proto);
    const char *shown = *domain ? grt_arena_printf(imp->scratch, "%s::%s", domain, op) : op;
    if (!name || !shown)
        return grt_fail_memory(0);
    culprit who = {name, shown, version_of(s->opsets, domain)};
    if (!*op)
        return problem(imp, NULL, "node '%s' has no op_type", name);
    if (proto->n_attribute > MAX_ATTRIBUTES)
        return problem(imp, &who, "has %zu attributes; the limit is %d", proto->n_attribute, MAX_ATTRIBUTES);
    if (s->call)
        GRT_TRY(check_growth(imp, &who, proto));
    GRT_TRY(node_check_version(imp, &who, domain));
    GRT_TRY(check_name(imp, &who, proto));
    imp->module->source_nodes++;
    if (!*domain && !strcmp(op, "Constant"))
        return constant_node(imp, s, &who, proto);
    const Onnx__FunctionProto *function =
        op_find(domain, op) ? NULL : function_find(imp, domain, op, text_or_empty(proto->overload));
    if (function)
        return import_call(imp, s, &who, function, proto, name);
    return op_node(imp, s, &who, proto, domain, name);
}
