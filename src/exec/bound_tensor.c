/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/bound_tensor.h"

#include "src/base/structs.h"

/* "float32[2x?x8]", as the model wants it */
static const char *wanted_text(const grt_plan *plan, const grt_plan_value *v, char buffer[GRT_TYPE_TEXT_SIZE])
{
    grt_tensor t = {.dtype = v->dtype, .rank = v->rank};
    for (int32_t i = 0; i < v->rank; i++)
        t.dims[i] = plan->dims[v->dims[i]].op == GRT_DIM_CONST ? plan->dims[v->dims[i]].value : -1;
    return grt_tensor_text(&t, buffer);
}

enum { DEVICE_ALIGNMENT = 16 };

static grt_status check_device_tensor(const grt_executor *executor, const grt_plan_value *v,
                                      const grt_tensor *tensor)
{
    grt_device *device = grt_executor_device(executor);
    if (!executor->session->on_device || tensor->device != device->index)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': memory of device %d cannot be bound to a session on %s:%d", v->name,
                        tensor->device, device->backend->name, device->index);
    if ((uintptr_t)tensor->data % DEVICE_ALIGNMENT)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': device memory must be aligned to %d bytes, found %p", v->name,
                        DEVICE_ALIGNMENT, tensor->data);
    if (executor->debug && grt_device_check_pointer(device, tensor->data) != GRT_OK)
        return grt_fail_context(GRT_STATUS_INVALID_ARGUMENT, "'%s'", v->name);
    return GRT_OK;
}

/* Of complex numbers, that of their halves; elements of less than a byte have none. */
static size_t alignment_of(grt_dtype dtype)
{
    if (dtype == GRT_DTYPE_STRING)
        return _Alignof(grt_string);
    const size_t size = grt_dtype_size(dtype);
    return grt_dtype_in(dtype, GRT_SET_COMPLEX) ? size / 2 : size ? size : 1;
}

static grt_status check_host_tensor(const grt_plan_value *v, const grt_tensor *tensor)
{
    const size_t alignment = alignment_of(tensor->dtype);
    if ((uintptr_t)tensor->data % alignment)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': memory of %s must be aligned to %zu bytes, found %p", v->name,
                        grt_dtype_name(tensor->dtype), alignment, tensor->data);
    return GRT_OK;
}

/* -1 stands for an unknown dim where models are described; what is bound has known ones. */
static grt_status check_dims_known(const grt_plan_value *v, const grt_tensor *tensor)
{
    for (int32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] < 0)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "'%s': dim %d is %lld; tensors that are bound have dims of 0 or more", v->name,
                            (int)i, (long long)tensor->dims[i]);
    return GRT_OK;
}

grt_status grt_executor_check_tensor(const grt_executor *executor, const grt_plan_value *v,
                                     const grt_tensor *tensor)
{
    const grt_plan *plan = executor->bound.plan;
    char wanted[GRT_TYPE_TEXT_SIZE], found[GRT_TYPE_TEXT_SIZE];
    GRT_TRY(grt_reserved_check(tensor->reserved, sizeof tensor->reserved, "grt_tensor"));
    if (tensor->rank > GRT_MAX_RANK)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': rank %d; at most %d are supported", v->name,
                        tensor->rank, GRT_MAX_RANK);
    GRT_TRY(check_dims_known(v, tensor));
    bool fits = tensor->rank >= 0 && tensor->dtype == v->dtype && (v->rank < 0 || v->rank == tensor->rank);
    for (int32_t i = 0; fits && i < tensor->rank; i++) {
        if (v->rank >= 0 && plan->dims[v->dims[i]].op == GRT_DIM_CONST)
            fits = plan->dims[v->dims[i]].value == tensor->dims[i];
    }
    if (!fits)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s' must be %s, found %s", v->name,
                        wanted_text(plan, v, wanted), grt_tensor_text(tensor, found));
    if (tensor->memory < GRT_MEMORY_HOST || tensor->memory > GRT_MEMORY_DEVICE)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': there is no kind of memory %d", v->name,
                        (int)tensor->memory);
    size_t bytes = grt_tensor_bytes(tensor);
    if (bytes == SIZE_MAX)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': the size of %s overflows", v->name,
                        grt_tensor_text(tensor, found));
    if (bytes && !tensor->data)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "'%s': %s has no data", v->name,
                        grt_tensor_text(tensor, found));
    if (!bytes)
        return GRT_OK;
    return grt_is_device_tensor(tensor) ? check_device_tensor(executor, v, tensor)
                                        : check_host_tensor(v, tensor);
}
