/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs as callers see them: what they bind to a context, and what it hands out after a run. */
#include "src/exec/context.h"

#include "src/base/structs.h"
#include "src/exec/bound_tensor.h"
#include "src/exec/state_slot.h"

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
    GRT_TRY(grt_executor_check_tensor(&context->executor, v, tensor));
    context->executor.bound.inputs[index] = (grt_value){.t = *tensor};
    if (!tensor->data)
        context->executor.bound.inputs[index].t.data = grt_nothing;
    context->executor.bound.input_set[index] = context->executor.bound.rebound = true;
    return GRT_OK;
}

/* True if the items of a value are what the model wants. */
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
    GRT_TRY(grt_executor_check_tensor(&context->executor, v, tensor));
    keep_output(context, index);
    context->executor.bound.asked[index].allocate = NULL;
    context->executor.bound.outputs[index] = *tensor;
    context->executor.bound.output_set[index] = context->executor.bound.rebound = true;
    return GRT_OK;
}

grt_status grt_context_set_output_allocator(grt_context *context, size_t index,
                                            grt_output_allocator *allocate, void *user, grt_memory memory)
{
    GRT_TRY(grt_context_set_output(context, index, NULL)); /* looks at context, index and state */
    grt_binding *bound = &context->executor.bound;
    const grt_plan_body *body = grt_context_body(context);
    const grt_plan_value *v = &body->values[body->outputs[index]];
    if (!allocate)
        return GRT_OK;
    if (v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "output '%s' cannot be written into memory of the caller's: it is %s",
                        body->output_names[index],
                        v->kind == GRT_KIND_TENSOR ? "of strings" : grt_kind_name(v->kind));
    if (memory < GRT_MEMORY_HOST || memory > GRT_MEMORY_DEVICE ||
        (memory == GRT_MEMORY_DEVICE && !context->executor.session->on_device))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s': a session on %s has no memory of kind %d",
                        body->output_names[index], context->executor.session->name, (int)memory);
    bound->asked[index] = (grt_asked_output){.allocate = allocate, .user = user, .memory = memory};
    bound->any_asked = true;
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
