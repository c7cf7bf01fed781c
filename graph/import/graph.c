/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: inputs, initializers, nodes, outputs. */
#include "graph/import/import.h"
#include "graph/import/importer.h"

#include <string.h>

/* Make a value of the graph known under `name`. */
static grt_status graph_add_value(importer *imp, scope *s, const char *name, ir_value *value)
{
    const char *unique = scope_unique(imp, s, name);
    if (!value || !unique)
        return grt_fail_memory(0);
    value->name = unique;
    return scope_define(imp, s, NULL, name, value);
}

/* One initializer, dense or sparse. */
typedef struct initial {
    const char *name;
    const Onnx__TensorProto *dense;
    const Onnx__SparseTensorProto *sparse;
} initial;

static grt_status initial_value(importer *imp, scope *s, const initial *init, ir_value **out_value)
{
    const grt_tensor *tensor;
    *out_value = NULL;
    grt_status status =
        init->dense ? import_tensor(imp, init->dense, &tensor) : import_sparse(imp, init->sparse, &tensor);
    if (status != GRT_OK)
        return problem_from(imp, NULL, status);
    *out_value = ir_constant(s->graph, "", tensor);
    return *out_value ? GRT_OK : grt_fail_memory(0);
}

static bool graph_fits(importer *imp, const ir_type *input, const ir_type *found)
{
    int64_t want, size;
    if (input->kind != GRT_KIND_TENSOR || (input->rank >= 0 && input->rank != found->rank))
        return false;
    for (int32_t k = 0; k < input->rank; k++)
        if (grt_dim_is_const(imp->module->dims, input->dims[k], &want) &&
            grt_dim_is_const(imp->module->dims, found->dims[k], &size) && want != size)
            return false;
    return true;
}

static bool same_strings(const grt_tensor *a, const grt_tensor *b)
{
    const grt_string *x = a->data, *y = b->data;
    for (int64_t i = 0; i < grt_tensor_elements(a); i++)
        if (x[i].size != y[i].size || memcmp(x[i].data, y[i].data, x[i].size) != 0)
            return false;
    return true;
}

static bool same_tensor(const grt_tensor *a, const grt_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return false;
    return a->dtype == GRT_DTYPE_STRING ? same_strings(a, b) : !memcmp(a->data, b->data, grt_tensor_bytes(a));
}

/* The same value twice is accepted; two different values are an error. */
static grt_status given_twice(importer *imp, const char *name, const ir_value *first, const ir_value *second)
{
    if (!same_tensor(first->type.data, second->type.data))
        return problem(imp, NULL, "initializer '%s' is given twice, with different content", name);
    return warning(imp, NULL, "initializer '%s' is given twice, with the same content; one was taken", name);
}

/* An input of the same name: the initializer is its default. */
static grt_status add_default(importer *imp, scope *s, const char *name, ir_value *input, ir_value *constant)
{
    ir_value **place = &s->graph->defaults[input->mark];
    if (*place)
        return given_twice(imp, name, *place, constant);
    if (input->type.dtype != constant->type.dtype)
        return problem(imp, NULL, "input '%s' is %s, but the initializer of that name, its default, is %s",
                       name, grt_dtype_name(input->type.dtype), grt_dtype_name(constant->type.dtype));
    if (!graph_fits(imp, &input->type, &constant->type))
        return problem(imp, NULL, "input '%s' has other dims than the initializer of that name, its default",
                       name);
    constant->name = scope_unique(imp, s, name);
    *place = constant;
    return constant->name ? GRT_OK : grt_fail_memory(0);
}

/* The caller wants to change it: an input whose default it is. */
static grt_status keep_weight(importer *imp, scope *s, const char *name, ir_value *constant)
{
    ir_value *value = ir_value_create(s->graph, "");
    if (!value)
        return grt_fail_memory(0);
    value->mark = s->graph->n_inputs;
    ir_graph_add_input(s->graph, value, NULL);
    GRT_TRY(graph_add_value(imp, s, name, value));
    value->type = constant->type;
    value->type.data = NULL;
    return add_default(imp, s, name, value, constant);
}

static grt_status add_initializer(importer *imp, scope *s, const initial *init)
{
    ir_value *constant;
    if (!*init->name)
        return problem(imp, NULL, "graph '%s' has an initializer without a name", s->graph->name);
    ir_value *known = scope_own(s, init->name);
    GRT_TRY(initial_value(imp, s, init, &constant));
    if (!constant)
        return scope_omit(imp, s, init->name); /* reported already: uses of it are not further problems */
    if (!known && !s->outer && import_listed(imp->source->keep_weights, init->name))
        return keep_weight(imp, s, init->name, constant);
    if (!known)
        return graph_add_value(imp, s, init->name, constant);
    return known->is_input ? add_default(imp, s, init->name, known, constant)
                           : given_twice(imp, init->name, known, constant);
}

static grt_status add_initializers(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    for (size_t i = 0; i < proto->n_initializer; i++) {
        initial init = {text_or_empty(proto->initializer[i]->name), proto->initializer[i], NULL};
        GRT_TRY(add_initializer(imp, s, &init));
    }
    for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = proto->sparse_initializer[i];
        initial init = {text_or_empty(sparse->values ? sparse->values->name : NULL), NULL, sparse};
        GRT_TRY(add_initializer(imp, s, &init));
    }
    return GRT_OK;
}

/* Up to IR version 3, initializers are constants although they are listed as inputs. */
static grt_status constants_of(importer *imp, const Onnx__GraphProto *proto, names *out)
{
    if (imp->ir_version > 3)
        return GRT_OK;
    for (size_t i = 0; i < proto->n_initializer; i++)
        if (!names_add(out, imp->scratch, text_or_empty(proto->initializer[i]->name)))
            return grt_fail_memory(0);
    return GRT_OK;
}

static grt_status graph_add_inputs(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    names constants = {0};
    GRT_TRY(constants_of(imp, proto, &constants));
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = text_or_empty(proto->input[i]->name);
        if (names_find(&constants, name))
            continue;
        if (!*name) {
            GRT_TRY(problem(imp, NULL, "input %zu of graph '%s' has no name", i, s->graph->name));
            continue;
        }
        ir_value *value = ir_value_create(s->graph, "");
        if (!value)
            return grt_fail_memory(0);
        value->mark = s->graph->n_inputs; /* its place, until all is imported */
        ir_graph_add_input(s->graph, value, NULL);
        GRT_TRY(graph_add_value(imp, s, name, value));
        /* Types of the main graph's inputs bind the caller; inputs of bodies follow from their node. */
        GRT_TRY(import_type(imp, NULL, name, proto->input[i]->type, !s->outer, &value->type));
    }
    return GRT_OK;
}

/* A Loop's body counts iterations in a scalar, which some converters declare as a tensor of one element: then
 * its nodes are written for that. */
static grt_status widen_iteration(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    const ir_node *parent = s->graph->parent;
    const Onnx__TypeProto *type = proto->n_input ? proto->input[0]->type : NULL;
    if (!parent || !grt_op_is(&parent->desc, "", "Loop") || !type ||
        type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape ||
        type->tensor_type->shape->n_dim != 1)
        return GRT_OK;
    const char *name = text_or_empty(proto->input[0]->name);
    const culprit who = {parent->desc.name, parent->desc.op, parent->opset};
    ir_value *in[] = {scope_own(s, name), ir_constant_ints(s->graph, name, (int64_t[]){1}, 1)};
    if (!in[0])
        return GRT_OK;
    GRT_TRY(
        warning(imp, &who,
                "its body declares the number of the iteration, '%s', with rank 1 instead of 0; the body is "
                "given it as a tensor of one element",
                name));
    ir_value *wide = ir_node_out(ir_node_create(s->graph, NULL, "", "Reshape", parent->desc.name, 2, in, 1));
    return wide ? scope_redefine(imp, s, name, wide) : grt_fail_memory(0);
}

/* Reserves names of later nodes, so that bodies do not take them and wrong order is detected. */
static grt_status graph_announce(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    for (size_t i = 0; i < proto->n_node; i++)
        for (size_t k = 0; k < proto->node[i]->n_output; k++)
            if (*proto->node[i]->output[k])
                GRT_TRY(scope_announce(imp, s, proto->node[i]->output[k]));
    return GRT_OK;
}

static grt_status add_outputs(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    culprit who = {"", "", 0};
    for (size_t i = 0; i < proto->n_output; i++) {
        ir_value *value;
        const char *name = text_or_empty(proto->output[i]->name);
        if (!*name) {
            GRT_TRY(problem(imp, NULL, "output %zu of graph '%s' has no name", i, s->graph->name));
            continue;
        }
        GRT_TRY(scope_resolve(imp, s, &who, "graph output", name, &value));
        if (!value)
            continue;
        if (value->producer && value->type.dtype == GRT_DTYPE_NONE)
            GRT_TRY(import_type(imp, NULL, name, proto->output[i]->type, false, &value->type));
        ir_graph_add_output(s->graph, value);
    }
    return GRT_OK;
}

static grt_status import_content(importer *imp, scope *s, const Onnx__GraphProto *proto)
{
    bool ordered;
    GRT_TRY(order_nodes(imp, s->graph->name, proto->node, proto->n_node, &ordered));
    if (!ordered) /* reported; otherwise every name in the cycle would be a further problem */
        return GRT_OK;
    GRT_TRY(graph_announce(imp, s, proto));
    GRT_TRY(graph_add_inputs(imp, s, proto));
    GRT_TRY(widen_iteration(imp, s, proto));
    GRT_TRY(add_initializers(imp, s, proto));
    for (size_t i = 0; i < proto->n_node; i++)
        GRT_TRY(imp->node(imp, s, proto->node[i]));
    GRT_TRY(declare_types(imp, s, proto));
    return add_outputs(imp, s, proto);
}

grt_status import_main(importer *imp, const Onnx__GraphProto *proto)
{
    ir_graph *graph = ir_graph_create(imp->module, NULL, text_or_empty(proto->name));
    if (!graph)
        return grt_fail_memory(0);
    imp->module->main = graph;
    scope s = {.graph = graph, .opsets = &imp->opsets};
    if (!proto->n_output)
        GRT_TRY(problem(imp, NULL, "graph '%s' has no outputs", graph->name));
    return import_content(imp, &s, proto);
}

static const Onnx__TensorShapeProto *graph_shape_of(const Onnx__ValueInfoProto *info)
{
    const Onnx__TypeProto *type = info->type;
    return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type->shape : NULL;
}

/* Declared shapes of a body's outputs, for GRT_ATTR_DECLARED: used only where no iteration determines a
 * shape. */
static grt_status keep_declared(importer *imp, ir_graph *graph, const Onnx__GraphProto *proto)
{
    size_t n = 0;
    for (size_t i = 0; i < proto->n_output; i++) {
        const Onnx__TensorShapeProto *shape = graph_shape_of(proto->output[i]);
        n += 1 + (shape && shape->n_dim <= GRT_MAX_RANK ? shape->n_dim : 0);
    }
    int64_t *list = GRT_ARENA_ARRAY(imp->arena, int64_t, n);
    if (!list)
        return grt_fail_memory(n * sizeof *list);
    graph->declared = list;
    graph->n_declared = n;
    for (size_t i = 0; i < proto->n_output; i++) {
        const Onnx__TensorShapeProto *shape = graph_shape_of(proto->output[i]);
        const bool known = shape && shape->n_dim <= GRT_MAX_RANK;
        *list++ = known ? (int64_t)shape->n_dim : -1;
        for (size_t k = 0; known && k < shape->n_dim; k++) {
            const Onnx__TensorShapeProto__Dimension *dim = shape->dim[k];
            const bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            *list++ = fixed && dim->dim_value >= 0 ? dim->dim_value : -1;
        }
    }
    return GRT_OK;
}

grt_status import_body(importer *imp, scope *outer, ir_node *parent, const Onnx__GraphProto *proto,
                       ir_graph **out_graph)
{
    ir_graph *graph = ir_graph_create(imp->module, parent, text_or_empty(proto->name));
    if (!graph)
        return grt_fail_memory(0);
    if (imp->depth >= MAX_SCOPE_DEPTH)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "subgraphs and functions are nested deeper than %d levels",
                        MAX_SCOPE_DEPTH);
    scope s = {.outer = outer, .graph = graph, .opsets = outer->opsets, .call = outer->call};
    *out_graph = graph;
    imp->depth++;
    grt_status status = import_content(imp, &s, proto);
    imp->depth--;
    return status == GRT_OK ? keep_declared(imp, graph, proto) : status;
}
