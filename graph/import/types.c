/* SPDX-License-Identifier: Apache-2.0 */
/* TypeProto to ir_type. */
#include "graph/import/import.h"
#include "graph/import/importer.h"

#include <inttypes.h>
#include <string.h>

/* True if `name` is an entry of the comma-separated `list`. */
bool import_listed(const char *list, const char *name)
{
    const size_t size = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        if ((strcspn(p, ",") == size && !memcmp(p, name, size)) || (*p == '*' && strcspn(p, ",") == 1))
            return true;
    return false;
}

/* "?", "-1" and "None" are how converters write that a dim has no name. */
static bool says_nothing(const char *name)
{
    if (!strcmp(name, "None"))
        return true;
    for (; *name; name++)
        if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (unsigned char)*name >= 0x80)
            return false;
    return true;
}

/* *out_bound: all uses of this name have one size. */
static grt_status is_bound(importer *imp, const culprit *who, const char *value, const char *dim,
                           bool *out_bound)
{
    *out_bound = !import_listed(imp->source->free_dims, dim);
    if (!*out_bound || !says_nothing(dim))
        return GRT_OK;
    *out_bound = false;
    names_entry *e = names_add(&imp->dims_told, imp->scratch, dim);
    if (!e)
        return grt_fail_memory(0);
    const bool first = !e->thing;
    e->thing = imp;
    return first ? warning(
                       imp, who,
                       "'%s' has a dim that is called '%s', which is no name; every such dim may have a size "
                       "of its own",
                       value, dim)
                 : GRT_OK;
}

static grt_status import_dim(importer *imp, const culprit *who, const char *name,
                             const Onnx__TensorShapeProto__Dimension *dim, grt_dim *out)
{
    grt_dims *dims = imp->module->dims;
    bool bound = false;
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        *text_or_empty(dim->dim_param))
        GRT_TRY(is_bound(imp, who, name, dim->dim_param, &bound));
    if (bound)
        *out = grt_dim_symbol(dims, dim->dim_param);
    else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0)
        *out = grt_dim_const(dims, dim->dim_value);
    else /* unknown; negative numbers are an old form of that */
        *out = grt_dim_fresh(dims);
    return *out < 0 ? grt_fail_memory(sizeof *out) : GRT_OK;
}

static grt_status import_shape(importer *imp, const culprit *who, const char *name,
                               const Onnx__TensorShapeProto *shape, ir_type *out)
{
    if (shape->n_dim > GRT_MAX_RANK)
        return problem(imp, who, "'%s': rank %zu is above the limit of %d", name, shape->n_dim, GRT_MAX_RANK);
    grt_dim *dims = GRT_ARENA_ARRAY(imp->arena, grt_dim, shape->n_dim);
    if (!dims)
        return grt_fail_memory(0);
    for (size_t i = 0; i < shape->n_dim; i++)
        GRT_TRY(import_dim(imp, who, name, shape->dim[i], &dims[i]));
    out->rank = (int32_t)shape->n_dim;
    out->dims = dims;
    return GRT_OK;
}

static grt_status import_tensor_type(importer *imp, const culprit *who, const char *name,
                                     const Onnx__TypeProto__Tensor *tensor, bool trusted, ir_type *out)
{
    int32_t dtype = tensor->elem_type;
    if (dtype < 0 || dtype >= GRT_DTYPE_COUNT || (trusted && !dtype))
        return problem(imp, who, "'%s': elem_type %d is not a known dtype (1 to %d)", name, dtype,
                       GRT_DTYPE_COUNT - 1);
    out->dtype = (grt_dtype)dtype;
    return trusted && tensor->shape ? import_shape(imp, who, name, tensor->shape, out) : GRT_OK;
}

static grt_status import_map_type(importer *imp, const culprit *who, const char *name,
                                  const Onnx__TypeProto__Map *map, bool trusted, ir_type *out)
{
    out->keys = (grt_dtype)map->key_type;
    if (out->keys == GRT_DTYPE_INT64 || out->keys == GRT_DTYPE_STRING || (!trusted && !out->keys))
        return GRT_OK;
    out->keys = GRT_DTYPE_NONE;
    return problem_from(imp, who,
                        grt_fail(GRT_STATUS_UNSUPPORTED,
                                 "'%s': keys of maps are int64 or string; key_type is %d", name,
                                 map->key_type));
}

static grt_status unsupported(importer *imp, const culprit *who, const char *name, const char *what)
{
    return problem_from(imp, who,
                        grt_fail(GRT_STATUS_UNSUPPORTED,
                                 "'%s': %s; tensors, maps, sequences of both, and optionals of tensors and "
                                 "of sequences of tensors "
                                 "are supported",
                                 name, what));
}

grt_status import_type(importer *imp, const culprit *who, const char *name, const Onnx__TypeProto *proto,
                       bool trusted, ir_type *out_type)
{
    ir_type type = {.rank = -1};
    *out_type = type;
    if (!proto || proto->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return trusted ? problem(imp, who, "'%s' has no type", name) : GRT_OK;
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        type.kind = GRT_KIND_OPTIONAL;
        proto = proto->optional_type->elem_type;
        if (!proto)
            return problem(imp, who, "'%s': an optional type without elem_type", name);
    }
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        if (type.kind == GRT_KIND_OPTIONAL)
            type.element_kind = GRT_KIND_SEQUENCE;
        else
            type.kind = type.element_kind = GRT_KIND_SEQUENCE;
        proto = proto->sequence_type->elem_type;
        if (!proto)
            return problem(imp, who, "'%s': a sequence type without elem_type", name);
    }
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE && type.kind != GRT_KIND_OPTIONAL) {
        type.element_kind = GRT_KIND_MAP;
        if (type.kind == GRT_KIND_TENSOR)
            type.kind = GRT_KIND_MAP;
        GRT_TRY(import_map_type(imp, who, name, proto->map_type, trusted, &type));
        proto = proto->map_type->value_type;
        if (!proto)
            return problem(imp, who, "'%s': a map type without value_type", name);
    }
    if (proto->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && !trusted)
        return GRT_OK; /* what makes the value says what it is */
    if (proto->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return unsupported(imp, who, name, "its type is a sparse or opaque tensor, or nested deeper");
    GRT_TRY(import_tensor_type(imp, who, name, proto->tensor_type, trusted, &type));
    if (type.keys) /* the values of all keys together: their number is the run's */
        type.rank = -1;
    *out_type = type;
    return GRT_OK;
}
