/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/document.h"

#include "src/base/grow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_standard(const char *domain)
{
    return !domain || !*domain || !strcmp(domain, "ai.onnx");
}

/* ---- nodes as they are ---- */

const char *node_in(const Onnx__NodeProto *node, size_t i)
{
    return i < node->n_input && node->input[i] ? node->input[i] : "";
}

const char *node_out(const Onnx__NodeProto *node, size_t i)
{
    return i < node->n_output && node->output[i] ? node->output[i] : "";
}

bool node_is(const Onnx__NodeProto *node, const char *op)
{
    return is_standard(node->domain) && node->op_type && !strcmp(node->op_type, op);
}

const Onnx__AttributeProto *node_attr(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
            return node->attribute[i];
    return NULL;
}

int64_t node_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *attr = node_attr(node, name);
    return attr ? attr->i : otherwise;
}

float node_float(const Onnx__NodeProto *node, const char *name, float otherwise)
{
    const Onnx__AttributeProto *attr = node_attr(node, name);
    return attr ? attr->f : otherwise;
}

const char *node_title(const Onnx__NodeProto *node)
{
    return node->name && *node->name ? node->name : node_out(node, 0);
}

static void each_captured(const Onnx__GraphProto *graph, void (*each)(void *user, const char *name),
                          void *user)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            each(user, node_in(graph->node[i], k));
        node_each_captured(graph->node[i], each, user);
    }
    for (size_t i = 0; i < graph->n_output; i++)
        if (graph->output[i]->name)
            each(user, graph->output[i]->name);
}

void node_each_captured(const Onnx__NodeProto *node, void (*each)(void *user, const char *name), void *user)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *attr = node->attribute[i];
        if (attr->g)
            each_captured(attr->g, each, user);
        for (size_t k = 0; k < attr->n_graphs; k++)
            each_captured(attr->graphs[k], each, user);
    }
}

/* ---- lists ---- */

document_weight *document_find(const document *d, const char *name)
{
    const names_entry *e = *name ? names_find(&d->by_name, name) : NULL;
    return e ? e->thing : NULL;
}

static void document_take_name(document *d, const char *name)
{
    if (name && *name && !names_add(&d->taken, d->arena, name))
        grt_arena_fail(d->arena);
}

const char *document_name(document *d, const char *base, const char *suffix)
{
    const char *name = grt_arena_printf(d->arena, "%s%s", base, suffix);
    for (int64_t i = 1; name && names_find(&d->taken, name); i++)
        name = grt_arena_printf(d->arena, "%s%s_%" PRId64, base, suffix, i);
    document_take_name(d, name);
    return name;
}

static void append_node(document *d, const Onnx__NodeProto *node)
{
    if (GRT_ARENA_GROW(d->arena, d->nodes, d->n_nodes, d->node_capacity))
        d->nodes[d->n_nodes++] = (Onnx__NodeProto *)(uintptr_t)node;
    else
        grt_arena_fail(d->arena);
}

void document_keep(document *d, const Onnx__NodeProto *node)
{
    append_node(d, node);
}

static char *mutable_text(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c's structs have no const; nobody writes to it */
}

Onnx__NodeProto *document_add(document *d, const char *op, const char *name)
{
    static Onnx__NodeProto none;
    Onnx__NodeProto *node = GRT_ARENA_NEW(d->arena, Onnx__NodeProto);
    if (!node)
        return &none; /* the arena has failed: nothing more is kept of it */
    onnx__node_proto__init(node);
    node->op_type = mutable_text(op);
    node->name = mutable_text(name);
    append_node(d, node);
    return node;
}

Onnx__NodeProto *document_add_copy(document *d, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = document_add(d, node->op_type, node->name);
    if (grt_arena_failed(d->arena))
        return copy;
    *copy = *node;
    copy->input = grt_arena_memdup(d->arena, node->input, node->n_input * sizeof *node->input);
    copy->output = grt_arena_memdup(d->arena, node->output, node->n_output * sizeof *node->output);
    copy->attribute =
        grt_arena_memdup(d->arena, node->attribute, node->n_attribute * sizeof *node->attribute);
    return copy;
}

/* One more in a list that has no spare room: nodes have few operands. */
static char **longer(document *d, char **list, size_t n, const char *name)
{
    char **made = GRT_ARENA_ARRAY(d->arena, char *, n + 1);
    if (!made)
        return list;
    if (n)
        memcpy(made, list, n * sizeof *made);
    made[n] = mutable_text(name);
    return made;
}

void node_add_in(document *d, Onnx__NodeProto *node, const char *name)
{
    char **list = longer(d, node->input, node->n_input, name);
    node->n_input += list != node->input;
    node->input = list;
}

void node_add_out(document *d, Onnx__NodeProto *node, const char *name)
{
    char **list = longer(d, node->output, node->n_output, name);
    node->n_output += list != node->output;
    node->output = list;
}

void node_drop_attr(document *d, Onnx__NodeProto *node, const char *name)
{
    size_t kept = 0;
    Onnx__AttributeProto **list = GRT_ARENA_ARRAY(d->arena, Onnx__AttributeProto *, node->n_attribute + 1);
    if (!list)
        return;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strcmp(node->attribute[i]->name, name) != 0)
            list[kept++] = node->attribute[i];
    node->attribute = list;
    node->n_attribute = kept;
}

void node_set_int(document *d, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *attr = GRT_ARENA_NEW(d->arena, Onnx__AttributeProto);
    node_drop_attr(d, node, name);
    if (!attr || grt_arena_failed(d->arena))
        return;
    onnx__attribute_proto__init(attr);
    attr->name = mutable_text(name);
    attr->has_type = attr->has_i = 1;
    attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    attr->i = value;
    node->attribute[node->n_attribute++] = attr; /* node_drop_attr leaves room for one */
}

static document_weight *append_weight(document *d, const char *name, const grt_tensor *tensor,
                                      Onnx__TensorProto *message)
{
    static document_weight none;
    document_weight *w = GRT_ARENA_NEW(d->arena, document_weight);
    names_entry *e = w ? names_add(&d->by_name, d->arena, name) : NULL;
    if (!e || !GRT_ARENA_GROW(d->arena, d->weights, d->n_weights, d->weight_capacity)) {
        grt_arena_fail(d->arena);
        return &none;
    }
    *w = (document_weight){name, *tensor, message};
    e->thing = w;
    d->weights[d->n_weights++] = w;
    document_take_name(d, name);
    return w;
}

document_weight *document_add_weight(document *d, const char *name, const grt_tensor *tensor)
{
    return append_weight(d, name, tensor, NULL);
}

static void append_output(document *d, Onnx__ValueInfoProto *info)
{
    if (info && GRT_ARENA_GROW(d->arena, d->outputs, d->n_outputs, d->output_capacity))
        d->outputs[d->n_outputs++] = info;
    else
        grt_arena_fail(d->arena);
}

void document_add_output(document *d, const char *name)
{
    Onnx__ValueInfoProto *info = GRT_ARENA_NEW(d->arena, Onnx__ValueInfoProto);
    Onnx__TypeProto *type = GRT_ARENA_NEW(d->arena, Onnx__TypeProto);
    Onnx__TypeProto__Tensor *tensor = GRT_ARENA_NEW(d->arena, Onnx__TypeProto__Tensor);
    if (info && type && tensor) {
        onnx__value_info_proto__init(info);
        onnx__type_proto__init(type);
        onnx__type_proto__tensor__init(tensor);
        tensor->has_elem_type = 1;
        tensor->elem_type = GRT_DTYPE_FLOAT;
        type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        type->tensor_type = tensor;
        info->name = mutable_text(name);
        info->type = type;
    }
    append_output(d, info);
}

grt_status document_check(const document *d)
{
    return grt_arena_failed(d->arena) ? grt_fail_memory(grt_arena_bytes(d->arena)) : GRT_OK;
}

/* ---- reading ---- */

/* Tensors inside nodes get their bytes, which unpacking has left in the file: then they can be written. */
static grt_status settle_graph(import_messages *m, Onnx__GraphProto *graph);

static grt_status settle_tensor(import_messages *m, Onnx__TensorProto *proto)
{
    const grt_tensor *t;
    if (proto->n_string_data || proto->data_type == GRT_DTYPE_STRING)
        return GRT_OK;
    GRT_TRY(import_messages_tensor(m, proto, &t));
    proto->n_float_data = proto->n_int32_data = proto->n_int64_data = proto->n_double_data = 0;
    proto->n_uint64_data = proto->n_external_data = 0;
    proto->has_data_location = 0;
    proto->has_raw_data = 1;
    proto->raw_data = (ProtobufCBinaryData){grt_tensor_bytes(t), t->data};
    return GRT_OK;
}

static grt_status settle_sparse(import_messages *m, Onnx__SparseTensorProto *proto)
{
    if (proto->values)
        GRT_TRY(settle_tensor(m, proto->values));
    return proto->indices ? settle_tensor(m, proto->indices) : GRT_OK;
}

static grt_status settle_node(import_messages *m, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *attr = node->attribute[i];
        if (attr->t)
            GRT_TRY(settle_tensor(m, attr->t));
        for (size_t k = 0; k < attr->n_tensors; k++)
            GRT_TRY(settle_tensor(m, attr->tensors[k]));
        if (attr->sparse_tensor)
            GRT_TRY(settle_sparse(m, attr->sparse_tensor));
        for (size_t k = 0; k < attr->n_sparse_tensors; k++)
            GRT_TRY(settle_sparse(m, attr->sparse_tensors[k]));
        if (attr->g)
            GRT_TRY(settle_graph(m, attr->g));
        for (size_t k = 0; k < attr->n_graphs; k++)
            GRT_TRY(settle_graph(m, attr->graphs[k]));
    }
    return GRT_OK;
}

static grt_status settle_graph(import_messages *m, Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++)
        GRT_TRY(settle_node(m, graph->node[i]));
    for (size_t i = 0; i < graph->n_initializer; i++)
        GRT_TRY(settle_tensor(m, graph->initializer[i]));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        GRT_TRY(settle_sparse(m, graph->sparse_initializer[i]));
    return GRT_OK;
}

static grt_status read_weight(document *d, import_messages *m, Onnx__TensorProto *proto, const char *name)
{
    const bool text = proto->data_type == GRT_DTYPE_STRING;
    const grt_tensor none = {0}, *t = &none;
    if (!name || !*name)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "an initializer has no name");
    if (document_find(d, name))
        return grt_fail(GRT_STATUS_INVALID_MODEL, "initializer '%s' is there twice", name);
    if (!text)
        GRT_TRY(import_messages_tensor(m, proto, &t));
    append_weight(d, name, t, text ? proto : NULL);
    return GRT_OK;
}

static grt_status document_read_nodes(document *d, import_messages *m, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        const Onnx__AttributeProto *value = node_is(node, "Constant") ? node_attr(node, "value") : NULL;
        for (size_t k = 0; k < node->n_output; k++)
            document_take_name(d, node->output[k]);
        if (value && value->t && value->t->data_type != GRT_DTYPE_STRING) {
            GRT_TRY(read_weight(d, m, value->t, node_out(node, 0)));
            continue;
        }
        GRT_TRY(settle_node(m, node));
        append_node(d, node);
    }
    return GRT_OK;
}

static grt_status read_versions(document *d)
{
    const Onnx__ModelProto *model = d->source;
    d->ir_version = model->ir_version;
    for (size_t i = 0; i < model->n_opset_import; i++)
        if (is_standard(model->opset_import[i]->domain))
            d->opset = model->opset_import[i]->version;
    return d->opset
               ? GRT_OK
               : grt_fail(GRT_STATUS_INVALID_MODEL, "the model does not say which opset of ai.onnx it uses");
}

static grt_status read_interface(document *d, const Onnx__GraphProto *graph)
{
    d->inputs = GRT_ARENA_ARRAY(d->arena, Onnx__ValueInfoProto *, graph->n_input + 1);
    for (size_t i = 0; d->inputs && i < graph->n_input; i++) {
        const char *name = graph->input[i]->name;
        if (!name || !*name)
            return grt_fail(GRT_STATUS_INVALID_MODEL, "input %zu of the model has no name", i);
        if (!document_find(d, name))
            d->inputs[d->n_inputs++] = graph->input[i];
        document_take_name(d, name);
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        if (!graph->output[i]->name || !*graph->output[i]->name)
            return grt_fail(GRT_STATUS_INVALID_MODEL, "output %zu of the model has no name", i);
        append_output(d, graph->output[i]);
    }
    return GRT_OK;
}

grt_status document_open(document *d, const compile_source *source)
{
    import_messages *m;
    *d = (document){.arena = grt_arena_create()};
    if (!d->arena)
        return grt_fail_memory(0);
    GRT_TRY(import_messages_open(source, d->arena, &m));
    const Onnx__ModelProto *model = import_messages_model(m);
    const Onnx__GraphProto *graph = model->graph;
    d->source = model;
    GRT_TRY(read_versions(d));
    for (size_t i = 0; i < graph->n_initializer; i++)
        GRT_TRY(read_weight(d, m, graph->initializer[i], graph->initializer[i]->name));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        GRT_TRY(settle_sparse(m, graph->sparse_initializer[i]));
    GRT_TRY(document_read_nodes(d, m, graph));
    for (size_t i = 0; i < model->n_functions; i++)
        for (size_t k = 0; k < model->functions[i]->n_node; k++)
            GRT_TRY(settle_node(m, model->functions[i]->node[k]));
    GRT_TRY(read_interface(d, graph));
    return document_check(d);
}

grt_status document_copy_frame(document *d, const document *from)
{
    *d = (document){.arena = grt_arena_create(),
                    .source = from->source,
                    .opset = from->opset,
                    .ir_version = from->ir_version,
                    .inputs = from->inputs,
                    .n_inputs = from->n_inputs};
    if (!d->arena)
        return grt_fail_memory(0);
    for (size_t i = 0; i < from->taken.capacity; i++)
        document_take_name(d, from->taken.slots[i].name);
    for (size_t i = 0; i < from->n_weights; i++)
        append_weight(d, from->weights[i]->name, &from->weights[i]->tensor, from->weights[i]->message);
    for (size_t i = 0; i < from->n_outputs; i++)
        append_output(d, from->outputs[i]);
    return document_check(d);
}

grt_status document_copy(document *d, const document *from)
{
    GRT_TRY(document_copy_frame(d, from));
    for (size_t i = 0; i < from->n_nodes; i++)
        append_node(d, from->nodes[i]);
    return document_check(d);
}

void document_release(document *d)
{
    grt_arena_release(d->arena);
    *d = (document){0};
}
