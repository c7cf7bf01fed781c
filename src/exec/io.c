/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs as callers see them: what they bind to a context, and what it hands out after a run. */
#include "src/exec/context.h"

#include "src/base/structs.h"
#include "src/exec/state.h"

#include <stdlib.h>

static grt_status check_io(const grt_context *context, size_t index, bool output,
                           const grt_plan_value **out_value)
{
    const char *what = output ? "output" : "input";
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the context is NULL");
    const grt_plan_body *body = grt_context_body(context);
    int32_t n = output ? body->n_outputs : body->n_inputs;
    if (index >= (size_t)n)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s %zu does not exist; the model has %d", what, index,
                        n);
    *out_value = &body->values[(output ? body->outputs : body->inputs)[index]];
    return GRT_OK;
}

static grt_status check_no_state(const grt_context *context, bool output, size_t index, const char *name)
{
    if (!context->state || !grt_state_has(context->state, output, index))
        return GRT_OK;
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "%s '%s' belongs to the context's state: it cannot be bound; grt_state_restore changes the state",
        output ? "output" : "input", name);
}

/* "float32[2x?x8]", as the model wants it */
static const char *wanted_text(const grt_plan *plan, const grt_plan_value *v, char buffer[GRT_TYPE_TEXT_SIZE])
{
    grt_tensor t = {.dtype = v->dtype, .rank = v->rank};
    for (int32_t i = 0; i < v->rank; i++)
        t.dims[i] = plan->dims[v->dims[i]].op == GRT_DIM_CONST ? plan->dims[v->dims[i]].value : -1;
    return grt_tensor_text(&t, buffer);
}

enum { DEVICE_ALIGNMENT = 16 };

static grt_status check_device_tensor(const grt_context *context, const grt_plan_value *v,
                                      const grt_tensor *tensor)
{
    grt_device *device = grt_executor_device(&context->executor);
    if (!context->executor.session->on_device || tensor->device != device->index)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': memory of device %d cannot be bound to a session on %s:%d", v->name,
                        tensor->device, device->backend->name, device->index);
    if ((uintptr_t)tensor->data % DEVICE_ALIGNMENT)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "'%s': device memory must be aligned to %d bytes, found %p", v->name,
                        DEVICE_ALIGNMENT, tensor->data);
    if (context->executor.debug && grt_device_check_pointer(device, tensor->data) != GRT_OK)
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

static grt_status check_tensor(const grt_context *context, const grt_plan_value *v, const grt_tensor *tensor)
{
    const grt_plan *plan = context->executor.bound.plan;
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
    return grt_is_device_tensor(tensor) ? check_device_tensor(context, v, tensor)
                                        : check_host_tensor(v, tensor);
}

grt_status grt_context_check_tensor(const grt_context *context, int32_t output, const grt_tensor *tensor)
{
    const grt_plan_body *body = grt_context_body(context);
    return check_tensor(context, &body->values[body->outputs[output]], tensor);
}

grt_status grt_context_set_input(grt_context *context, size_t index, const grt_tensor *tensor)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, false, &v));
    GRT_TRY(check_no_state(context, false, index, v->name));
    if (!tensor) {
        context->executor.bound.input_set[index] = false;
        return GRT_OK;
    }
    if (v->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' is a %s: use grt_context_set_input_value",
                        v->name, grt_kind_name(v->kind));
    GRT_TRY(check_tensor(context, v, tensor));
    context->executor.bound.inputs[index] = (grt_value){.t = *tensor};
    if (!tensor->data)
        context->executor.bound.inputs[index].t.data = grt_nothing;
    context->executor.bound.input_set[index] = context->executor.bound.rebound = true;
    return GRT_OK;
}

/* Are the items of a value what the model wants? */
static bool items_fit(const grt_plan_value *v, const grt_value *value, grt_kind kind)
{
    if (value->kind != kind || (v->dtype && value->t.dtype && value->t.dtype != v->dtype))
        return false;
    if (kind == GRT_KIND_MAP)
        return !v->keys || value->items[0].t.dtype == v->keys;
    const grt_kind inner =
        kind == GRT_KIND_OPTIONAL || v->element_kind == GRT_KIND_MAP ? v->element_kind : GRT_KIND_TENSOR;
    for (size_t i = 0; i < value->n; i++)
        if (!items_fit(v, &value->items[i], inner))
            return false;
    return true;
}

grt_status grt_context_set_input_value(grt_context *context, size_t index, const grt_value *value)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, false, &v));
    GRT_TRY(check_no_state(context, false, index, v->name));
    if (!value) {
        context->executor.bound.input_set[index] = false;
        return GRT_OK;
    }
    if (value->kind == GRT_KIND_TENSOR && v->kind == GRT_KIND_TENSOR)
        return grt_context_set_input(context, index, &value->t);
    if (!items_fit(v, value, v->kind))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' must be a %s of %s%s%s, found a %s of %s%s",
                        v->name, grt_kind_name(v->kind), grt_dtype_name(v->dtype),
                        v->keys ? " with keys of " : "", v->keys ? grt_dtype_name(v->keys) : "",
                        grt_kind_name(value->kind), grt_dtype_name(value->t.dtype),
                        value->kind == v->kind ? " whose items are others" : "");
    context->executor.bound.inputs[index] = *value; /* borrowed: the frame never releases it */
    context->executor.bound.input_set[index] = context->executor.bound.rebound = true;
    return GRT_OK;
}

static grt_status output_value(const grt_context *context, size_t index, const grt_value **out_value)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, true, &v));
    if (!context->ran)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' has no value: there was no successful run",
                        v->name);
    *out_value = context->results
                     ? &context->results[index]
                     : &context->executor.main->values[grt_context_body(context)->outputs[index]];
    return GRT_OK;
}

static grt_status get_output(grt_context *context, size_t index, grt_tensor *out_tensor)
{
    const grt_value *value;
    GRT_TRY(output_value(context, index, &value));
    if (value->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output %zu is a %s: use grt_context_get_output_value",
                        index, grt_kind_name(value->kind));
    if (context->kept[index].dtype != GRT_DTYPE_NONE)
        *out_tensor = context->kept[index];
    else
        *out_tensor =
            context->executor.bound.output_set[index] ? context->executor.bound.outputs[index] : value->t;
    return GRT_OK;
}

/* What the last run wrote stays to be had when its output is bound elsewhere for the next. */
static void keep_output(grt_context *context, size_t index)
{
    grt_tensor last;
    if (!context->ran ||
        grt_context_body(context)->values[grt_context_body(context)->outputs[index]].kind !=
            GRT_KIND_TENSOR ||
        get_output(context, index, &last) != GRT_OK)
        return;
    context->kept[index] = last;
    context->any_kept = true;
}

grt_status grt_context_set_output(grt_context *context, size_t index, const grt_tensor *tensor)
{
    const grt_plan_value *v;
    GRT_TRY(check_io(context, index, true, &v));
    GRT_TRY(check_no_state(context, true, index, grt_context_body(context)->output_names[index]));
    if (!tensor) {
        keep_output(context, index);
        context->executor.bound.asked[index].allocate = NULL;
        context->executor.bound.output_set[index] = false;
        return GRT_OK;
    }
    if (v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "output '%s' cannot be written into memory of the caller's: it is %s", v->name,
                        v->kind == GRT_KIND_TENSOR ? "of strings" : grt_kind_name(v->kind));
    GRT_TRY(check_tensor(context, v, tensor));
    keep_output(context, index);
    context->executor.bound.asked[index].allocate = NULL;
    context->executor.bound.outputs[index] = *tensor;
    context->executor.bound.output_set[index] = context->executor.bound.rebound = true;
    return GRT_OK;
}

/* What an enqueued run found wrong with its data has come to the host once the caller has waited for the
 * stream. */
static grt_status check_enqueued(grt_context *context)
{
    grt_status status = context ? grt_executor_check_local(&context->executor) : GRT_OK;
    if (status != GRT_OK)
        context->ran = false;
    return status;
}

grt_status grt_context_get_output(grt_context *context, size_t index, grt_tensor *out_tensor)
{
    if (!out_tensor)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_output: out_tensor is NULL");
    GRT_TRY(check_enqueued(context));
    return get_output(context, index, out_tensor);
}

grt_status grt_context_get_output_value(grt_context *context, size_t index, grt_value **out_value)
{
    const grt_value *value;
    if (!out_value)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_output_value: out_value is NULL");
    GRT_TRY(output_value(context, index, &value));
    grt_value *copy = calloc(1, sizeof *copy);
    if (!copy)
        return grt_fail_memory(sizeof *copy);
    grt_status status = grt_value_copy(copy, value);
    if (status != GRT_OK) {
        free(copy);
        return status;
    }
    *out_value = copy;
    return GRT_OK;
}
