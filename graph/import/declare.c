/* SPDX-License-Identifier: Apache-2.0 */
/* Declared types of inner values and outputs: not relied on; a wrong one is a warning. */
#include "graph/import/importer.h"

static grt_status declare(importer *imp, const scope *s, const Onnx__ValueInfoProto *info)
{
    const ir_value *value = scope_own(s, text_or_empty(info->name));
    const Onnx__TypeProto *type = info->type;
    if (!value || !value->producer || !type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return GRT_OK;
    const Onnx__TypeProto__Tensor *tensor = type->tensor_type;
    const Onnx__TensorShapeProto *shape = tensor->shape;
    ir_declared *d = GRT_ARENA_NEW(imp->arena, ir_declared);
    const size_t rank = shape && shape->n_dim <= GRT_MAX_RANK ? shape->n_dim : 0;
    int64_t *dims = GRT_ARENA_ARRAY(imp->arena, int64_t, rank + 1);
    if (!d || !dims)
        return grt_fail_memory(0);
    for (size_t i = 0; i < rank; i++)
        dims[i] = shape->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                      ? shape->dim[i]->dim_value
                      : -1;
    const bool known = tensor->elem_type > 0 && tensor->elem_type < GRT_DTYPE_COUNT;
    *d = (ir_declared){.next = imp->module->declared,
                       .value = value,
                       .dtype = known ? (grt_dtype)tensor->elem_type : GRT_DTYPE_NONE,
                       .rank = shape && shape->n_dim <= GRT_MAX_RANK ? (int32_t)rank : -1,
                       .dims = dims};
    imp->module->declared = d;
    return GRT_OK;
}

grt_status declare_types(importer *imp, const scope *s, const Onnx__GraphProto *proto)
{
    for (size_t i = 0; i < proto->n_value_info; i++)
        GRT_TRY(declare(imp, s, proto->value_info[i]));
    for (size_t i = 0; i < proto->n_output; i++)
        GRT_TRY(declare(imp, s, proto->output[i]));
    return GRT_OK;
}
