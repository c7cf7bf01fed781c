/* TypeProto to ir_type. */
#include "graph/import/import.h"

#include <inttypes.h>

static grt_status import_shape(importer *imp, const culprit *who, const char *name,
                               const Onnx__TensorShapeProto *shape, ir_type *out)
{
    if (shape->n_dim > GRT_MAX_RANK)
        return problem(imp, who, "'%s': rank %zu is above the limit of %d", name, shape->n_dim, GRT_MAX_RANK);
    grt_dim *dims = GRT_ARENA_ARRAY(imp->arena, grt_dim, shape->n_dim);
    if (!dims)
        return grt_fail_memory(0);
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0)
            dims[i] = grt_dim_const(imp->module->dims, dim->dim_value);
        else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param &&
                 *dim->dim_param)
            dims[i] = grt_dim_symbol(imp->module->dims, dim->dim_param);
        else /* nothing said; negative numbers are an old way of saying so */
            dims[i] = grt_dim_fresh(imp->module->dims);
    }
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

static grt_status unsupported(importer *imp, const culprit *who, const char *name, const char *what)
{
    return problem_from(
        imp, who,
        grt_fail(GRT_STATUS_UNSUPPORTED,
                 "'%s': %s; tensors, sequences of tensors and optionals of both are supported", name, what));
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
    if (proto->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return unsupported(imp, who, name, "its type is a map, a sparse or opaque tensor, or deeper nested");
    GRT_TRY(import_tensor_type(imp, who, name, proto->tensor_type, trusted, &type));
    *out_type = type;
    return GRT_OK;
}
