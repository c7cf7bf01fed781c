/* SPDX-License-Identifier: Apache-2.0 */
/* Constant tensors: dense ones, sparse ones made dense. */
#include "graph/import/importer.h"

#include "src/base/checked.h"

#include <inttypes.h>
#include <string.h>

/* The tensor made from this message earlier, or NULL. Only bodies of functions are imported more than once.
 */
static const grt_tensor *tensors_recall(const importer *imp, const void *proto)
{
    if (!imp->tensors.n)
        return NULL;
    const char *key = grt_arena_printf(imp->scratch, "%p", proto);
    const names_entry *e = key ? names_find(&imp->tensors, key) : NULL;
    return e ? e->thing : NULL;
}

static grt_status tensors_remember(importer *imp, const void *proto, const grt_tensor *tensor)
{
    if (!imp->functions.n)
        return GRT_OK;
    const char *key = grt_arena_printf(imp->scratch, "%p", proto);
    names_entry *e = key ? names_add(&imp->tensors, imp->scratch, key) : NULL;
    if (e)
        e->thing = (void *)(uintptr_t)tensor;
    return e ? GRT_OK : grt_fail_memory(0);
}

static grt_status read_tensor(importer *imp, const Onnx__TensorProto *proto, const grt_tensor **out_tensor)
{
    grt_tensor t;
    if (proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        GRT_TRY(import_external(imp, proto, &t));
    else
        GRT_TRY(grt_pb_tensor(proto, imp->arena, &t));
    *out_tensor = grt_arena_memdup(imp->arena, &t, sizeof t);
    return *out_tensor ? GRT_OK : grt_fail_memory(sizeof t);
}

grt_status import_tensor(importer *imp, const Onnx__TensorProto *proto, const grt_tensor **out_tensor)
{
    *out_tensor = tensors_recall(imp, proto);
    if (*out_tensor)
        return GRT_OK;
    GRT_TRY(read_tensor(imp, proto, out_tensor));
    return tensors_remember(imp, proto, *out_tensor);
}

/* Where the k-th value goes: linear indices are [nnz], others [nnz, rank]. */
static grt_status dense_offset(const char *name, const grt_tensor *dense, const grt_tensor *indices,
                               int64_t k, int64_t *out)
{
    const int64_t *at = indices->data;
    int64_t offset = 0;
    if (indices->rank == 1)
        offset = at[k];
    for (int32_t i = 0; indices->rank == 2 && i < dense->rank; i++) {
        int64_t index = at[k * dense->rank + i];
        if (index < 0 || index >= dense->dims[i])
            return grt_fail(GRT_STATUS_INVALID_MODEL,
                            "sparse tensor '%s': index %" PRId64 " of value %" PRId64
                            " is outside dim %d of %" PRId64,
                            name, index, k, i, dense->dims[i]);
        offset = offset * dense->dims[i] + index;
    }
    if (offset < 0 || offset >= grt_tensor_elements(dense))
        return grt_fail(GRT_STATUS_INVALID_MODEL,
                        "sparse tensor '%s': linear index %" PRId64 " of value %" PRId64
                        " is outside the tensor's %" PRId64 " elements",
                        name, offset, k, grt_tensor_elements(dense));
    *out = offset;
    return GRT_OK;
}

static grt_status check_sparse(const char *name, const grt_tensor *values, const grt_tensor *indices,
                               const grt_tensor *dense)
{
    if (values->rank != 1)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "sparse tensor '%s': values must have rank 1, found %d",
                        name, values->rank);
    if (indices->dtype != GRT_DTYPE_INT64 || indices->rank < 1 || indices->rank > 2 ||
        indices->dims[0] != values->dims[0] || (indices->rank == 2 && indices->dims[1] != dense->rank))
        return grt_fail(GRT_STATUS_INVALID_MODEL,
                        "sparse tensor '%s': indices must be int64 of shape [%" PRId64 "] or [%" PRId64
                        ", %d]",
                        name, values->dims[0], values->dims[0], dense->rank);
    if (!grt_dtype_size(values->dtype))
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "sparse tensor '%s' of %s: sub-byte types are not supported here", name,
                        grt_dtype_name(values->dtype));
    return GRT_OK;
}

static grt_status read_sparse(importer *imp, const Onnx__SparseTensorProto *proto,
                              const grt_tensor **out_tensor)
{
    if (!proto->values || !proto->indices)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "a sparse tensor needs both values and indices");
    const char *name = text_or_empty(proto->values->name);
    const grt_tensor *values, *indices;
    GRT_TRY(import_tensor(imp, proto->values, &values));
    GRT_TRY(import_tensor(imp, proto->indices, &indices));
    Onnx__TensorProto shape = ONNX__TENSOR_PROTO__INIT;
    shape.name = (char *)(uintptr_t)name;
    shape.data_type = (int32_t)values->dtype;
    shape.n_dims = proto->n_dims;
    shape.dims = proto->dims;
    grt_tensor dense;
    GRT_TRY(grt_pb_tensor_type(&shape, &dense));
    GRT_TRY(check_sparse(name, values, indices, &dense));
    size_t bytes = grt_tensor_bytes(&dense), width = grt_dtype_size(dense.dtype);
    const size_t most = budget_bytes(imp->size);
    if (bytes > most - imp->dense_bytes)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "sparse tensor '%s' would take %zu bytes when made dense; the limit for all of a "
                        "model of this size is %zu",
                        name, bytes, most);
    imp->dense_bytes += bytes;
    uint8_t *data = grt_arena_alloc(imp->arena, bytes); /* zeroed: 0, false and "" of every type */
    if (!data)
        return grt_fail_memory(bytes);
    for (int64_t k = 0; k < values->dims[0]; k++) {
        int64_t at;
        GRT_TRY(dense_offset(name, &dense, indices, k, &at));
        memcpy(data + (size_t)at * width, (const uint8_t *)values->data + (size_t)k * width, width);
    }
    dense.data = data;
    *out_tensor = grt_arena_memdup(imp->arena, &dense, sizeof dense);
    return *out_tensor ? GRT_OK : grt_fail_memory(sizeof dense);
}

grt_status import_sparse(importer *imp, const Onnx__SparseTensorProto *proto, const grt_tensor **out_tensor)
{
    *out_tensor = tensors_recall(imp, proto);
    if (*out_tensor)
        return GRT_OK;
    GRT_TRY(read_sparse(imp, proto, out_tensor));
    return tensors_remember(imp, proto, *out_tensor);
}
