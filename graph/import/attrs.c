/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: from messages to grt_attr, and the constants of Constant nodes. */
#include "graph/import/importer.h"

#include <string.h>

/* The type, also of attributes that do not say theirs. */
static Onnx__AttributeProto__AttributeType attr_type(const Onnx__AttributeProto *p)
{
    if (p->has_type && p->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return p->type;
    return p->has_f           ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : p->has_i         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : p->has_s         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : p->t             ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
           : p->g             ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH
           : p->sparse_tensor ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR
           : p->tp            ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO
           : p->n_floats      ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : p->n_ints        ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
           : p->n_strings     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                              : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

/* Fields that hold a value: one at most, lists may be empty. */
static int fields_set(const Onnx__AttributeProto *p)
{
    return p->has_f + p->has_i + p->has_s + !!p->t + !!p->g + !!p->sparse_tensor + !!p->tp + !!p->n_floats +
           !!p->n_ints + !!p->n_strings + !!p->n_tensors + !!p->n_graphs + !!p->n_sparse_tensors +
           !!p->n_type_protos;
}

const Onnx__AttributeProto *attr_target(const Onnx__AttributeProto *proto, scope *s, scope **out_scope)
{
    *out_scope = s;
    const char *reference = text_or_empty(proto->ref_attr_name);
    if (!*reference || !s->call)
        return proto;
    for (size_t i = 0; i < s->call->n_attrs; i++)
        if (!strcmp(s->call->attrs[i].name, reference)) {
            *out_scope = s->call->attrs[i].scope;
            return s->call->attrs[i].proto;
        }
    for (size_t i = 0; i < s->call->function->n_attribute_proto; i++)
        if (!strcmp(text_or_empty(s->call->function->attribute_proto[i]->name), reference))
            return s->call->function->attribute_proto[i];
    return NULL;
}

static grt_status copy_string(grt_arena *arena, ProtobufCBinaryData bytes, grt_string *out)
{
    char *copy = grt_arena_strndup(arena, (const char *)bytes.data, bytes.len);
    if (!copy)
        return grt_fail_memory(bytes.len);
    *out = (grt_string){copy, bytes.len};
    return GRT_OK;
}

static grt_status attrs_copy_strings(grt_arena *arena, const Onnx__AttributeProto *p, grt_attr *out)
{
    grt_string *list = GRT_ARENA_ARRAY(arena, grt_string, p->n_strings);
    if (!list)
        return grt_fail_memory(0);
    for (size_t i = 0; i < p->n_strings; i++)
        GRT_TRY(copy_string(arena, p->strings[i], &list[i]));
    out->kind = GRT_ATTR_STRINGS;
    out->strings.v = list;
    out->strings.n = p->n_strings;
    return GRT_OK;
}

static grt_status convert_lists(importer *imp, const Onnx__AttributeProto *p, grt_attr *out)
{
    switch (attr_type(p)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        out->kind = GRT_ATTR_INTS;
        out->ints.v = grt_arena_memdup(imp->arena, p->ints, p->n_ints * sizeof *p->ints);
        out->ints.n = p->n_ints;
        return out->ints.v ? GRT_OK : grt_fail_memory(0);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        out->kind = GRT_ATTR_FLOATS;
        out->floats.v = grt_arena_memdup(imp->arena, p->floats, p->n_floats * sizeof *p->floats);
        out->floats.n = p->n_floats;
        return out->floats.v ? GRT_OK : grt_fail_memory(0);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        return attrs_copy_strings(imp->arena, p, out);
    default:
        return grt_fail(GRT_STATUS_UNSUPPORTED, "attribute '%s' has type %d, which no operator uses here",
                        out->name, (int)attr_type(p));
    }
}

static grt_status convert_graph(importer *imp, scope *s, ir_node *node, const Onnx__GraphProto *proto,
                                grt_attr *out)
{
    out->kind = GRT_ATTR_GRAPH;
    return import_body(imp, s, node, proto, &out->graph);
}

static grt_status convert_type(importer *imp, const culprit *who, const Onnx__TypeProto *proto, grt_attr *out)
{
    ir_type type;
    GRT_TRY(import_type(imp, who, out->name, proto, false, &type));
    out->kind = GRT_ATTR_TYPE;
    out->type.kind = type.kind;
    out->type.dtype = type.dtype;
    return GRT_OK;
}

/* The type says graph, tensor, type: then the field must be there. */
static grt_status missing(const grt_attr *attr)
{
    return grt_fail(GRT_STATUS_INVALID_MODEL, "attribute '%s' has no value of the type that it declares",
                    attr->name);
}

static grt_status convert(importer *imp, scope *s, const culprit *who, ir_node *node,
                          const Onnx__AttributeProto *p, grt_attr *out)
{
    if (fields_set(p) > 1)
        return grt_fail(GRT_STATUS_INVALID_MODEL,
                        "attribute '%s' has %d values of different types; exactly one is allowed", out->name,
                        fields_set(p));
    switch (attr_type(p)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        if (fields_set(p) && !p->has_i)
            return missing(out);
        out->kind = GRT_ATTR_INT;
        out->i = p->i;
        return GRT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        if (fields_set(p) && !p->has_f)
            return missing(out);
        out->kind = GRT_ATTR_FLOAT;
        out->f = p->f;
        return GRT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        if (fields_set(p) && !p->has_s)
            return missing(out);
        out->kind = GRT_ATTR_STRING;
        return copy_string(imp->arena, p->s, &out->s);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        out->kind = GRT_ATTR_TENSOR;
        return p->t ? import_tensor(imp, p->t, &out->t) : missing(out);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
        out->kind = GRT_ATTR_TENSOR;
        return p->sparse_tensor ? import_sparse(imp, p->sparse_tensor, &out->t) : missing(out);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        return p->g ? convert_graph(imp, s, node, p->g, out) : missing(out);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO:
        return p->tp ? convert_type(imp, who, p->tp, out) : missing(out);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED:
        return grt_fail(GRT_STATUS_INVALID_MODEL, "attribute '%s' has neither a type nor a value", out->name);
    default:
        return convert_lists(imp, p, out);
    }
}

grt_status import_attrs(importer *imp, scope *s, const culprit *who, ir_node *node,
                        const Onnx__NodeProto *proto)
{
    grt_attr *attrs = GRT_ARENA_ARRAY(imp->arena, grt_attr, proto->n_attribute);
    size_t n = 0;
    if (!attrs)
        return grt_fail_memory(0);
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__AttributeProto *p = proto->attribute[i];
        const char *name = text_or_empty(p->name);
        /* `consumed_inputs`: an obsolete hint to memory planners, on any operator. */
        if (!strcmp(name, "consumed_inputs"))
            continue;
        scope *where;
        const Onnx__AttributeProto *target = attr_target(p, s, &where);
        if (!target)
            continue;
        attrs[n].name = grt_arena_strdup(imp->arena, name);
        if (!attrs[n].name)
            return grt_fail_memory(0);
        bool twice = false;
        for (size_t k = 0; k < n; k++)
            twice |= !strcmp(attrs[k].name, name);
        grt_status status = !*name ? grt_fail(GRT_STATUS_INVALID_MODEL, "attribute %zu has no name", i)
                            : twice
                                ? grt_fail(GRT_STATUS_INVALID_MODEL, "attribute '%s' is given twice", name)
                                : convert(imp, where, who, node, target, &attrs[n]);
        if (status == GRT_OK)
            n++;
        else
            GRT_TRY(problem_from(imp, who, status));
    }
    node->desc.attrs = attrs;
    node->desc.n_attrs = n;
    return GRT_OK;
}

static const grt_tensor *attrs_keep(importer *imp, grt_dtype dtype, int32_t rank, size_t n, const void *data)
{
    grt_tensor t = {.dtype = dtype, .rank = rank, .dims = {(int64_t)n}};
    if (rank == 0)
        t.dims[0] = 0;
    t.data = grt_arena_memdup(imp->arena, data, grt_tensor_bytes(&t));
    return t.data ? grt_arena_memdup(imp->arena, &t, sizeof t) : NULL;
}

static const grt_tensor *constant_of(importer *imp, const char *name, const grt_attr *a)
{
    if (!strcmp(name, "value_int") && a->kind == GRT_ATTR_INT)
        return attrs_keep(imp, GRT_DTYPE_INT64, 0, 1, &a->i);
    if (!strcmp(name, "value_float") && a->kind == GRT_ATTR_FLOAT)
        return attrs_keep(imp, GRT_DTYPE_FLOAT, 0, 1, &a->f);
    if (!strcmp(name, "value_string") && a->kind == GRT_ATTR_STRING)
        return attrs_keep(imp, GRT_DTYPE_STRING, 0, 1, &a->s);
    if (!strcmp(name, "value_ints") && a->kind == GRT_ATTR_INTS)
        return attrs_keep(imp, GRT_DTYPE_INT64, 1, a->ints.n, a->ints.v);
    if (!strcmp(name, "value_floats") && a->kind == GRT_ATTR_FLOATS)
        return attrs_keep(imp, GRT_DTYPE_FLOAT, 1, a->floats.n, a->floats.v);
    if (!strcmp(name, "value_strings") && a->kind == GRT_ATTR_STRINGS)
        return attrs_keep(imp, GRT_DTYPE_STRING, 1, a->strings.n, a->strings.v);
    return NULL;
}

grt_status import_constant(importer *imp, scope *s, const culprit *who, const Onnx__NodeProto *proto,
                           const grt_tensor **out_tensor)
{
    static const char *const forms =
        "value, sparse_value, value_int, value_ints, value_float, value_floats, value_string or "
        "value_strings";
    const Onnx__AttributeProto *only = NULL;
    scope *where = s;
    for (size_t i = 0; i < proto->n_attribute; i++) {
        scope *target_scope;
        const Onnx__AttributeProto *target = attr_target(proto->attribute[i], s, &target_scope);
        if (!target)
            continue;
        if (only)
            return grt_fail(GRT_STATUS_INVALID_MODEL, "a constant must have exactly one of %s", forms);
        only = proto->attribute[i];
        where = target_scope;
    }
    if (!only || proto->n_input)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "a constant must have exactly one of %s, and no inputs",
                        forms);
    const Onnx__AttributeProto *target = attr_target(only, s, &where);
    grt_attr attr = {.name = text_or_empty(only->name)};
    Onnx__AttributeProto__AttributeType type = attr_type(target);
    if (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "a constant must have exactly one of %s", forms);
    GRT_TRY(convert(imp, where, who, NULL, target, &attr));
    *out_tensor = NULL;
    if (!strcmp(attr.name, "value") && type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)
        *out_tensor = attr.t;
    else if (!strcmp(attr.name, "sparse_value") &&
             type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR)
        *out_tensor = attr.t;
    else
        *out_tensor = constant_of(imp, attr.name, &attr);
    if (*out_tensor)
        return GRT_OK;
    if (grt_arena_failed(imp->arena))
        return grt_fail_memory(0);
    return grt_fail(GRT_STATUS_INVALID_MODEL,
                    "attribute '%s' of this type makes no constant; exactly one of %s is needed", attr.name,
                    forms);
}
