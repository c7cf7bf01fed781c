/* SPDX-License-Identifier: Apache-2.0 */
/* See output_allocator.h. */
#include "src/exec/output_allocator.h"

#include "src/exec/state.h"

static grt_status ask(grt_context *context, int32_t index, const grt_tensor *type)
{
    grt_binding *bound = &context->executor.bound;
    const grt_asked_output *asked = &bound->asked[index];
    const char *name = grt_context_body(context)->output_names[index];
    grt_tensor t = *type;
    t.memory = asked->memory;
    t.device = asked->memory == GRT_MEMORY_DEVICE ? grt_executor_device(&context->executor)->index : 0;
    const size_t bytes = grt_tensor_bytes(&t);
    t.data = bytes ? NULL : grt_nothing;
    if (bytes)
        t.data = asked->allocate(asked->user, (size_t)index, &t, bytes);
    if (!t.data)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "output '%s': the caller's allocator gave no memory for %zu bytes", name, bytes);
    GRT_TRY(grt_context_check_tensor(context, index, &t));
    bound->outputs[index] = t;
    bound->output_set[index] = bound->rebound = true;
    return GRT_OK;
}

grt_status grt_outputs_ask_before(grt_context *context, const grt_frame *frame)
{
    grt_binding *bound = &context->executor.bound;
    const grt_plan_body *body = grt_context_body(context);
    for (int32_t i = 0; i < body->n_outputs; i++) {
        if (!bound->asked[i].allocate)
            continue;
        bound->output_set[i] = false;
        if (frame->program->places[body->outputs[i]].has_dims)
            GRT_TRY(ask(context, i, &frame->values[body->outputs[i]].t));
    }
    return GRT_OK;
}

grt_status grt_outputs_ask_after(grt_context *context, const grt_frame *frame)
{
    const grt_plan_body *body = grt_context_body(context);
    for (int32_t i = 0; i < body->n_outputs; i++) {
        const int32_t v = body->outputs[i];
        const grt_place *place = &frame->program->places[v];
        if (context->executor.bound.asked[i].allocate && !place->has_dims)
            GRT_TRY(ask(context, i, place->made_on_host ? &frame->host[v].t : &frame->values[v].t));
    }
    return GRT_OK;
}

grt_status grt_outputs_check_async(const grt_context *context)
{
    const grt_plan_body *body = grt_context_body(context);
    for (int32_t i = 0; context->executor.bound.any_asked && i < body->n_outputs; i++)
        if (context->executor.bound.asked[i].allocate &&
            (context->executor.bound.asked[i].memory == GRT_MEMORY_HOST ||
             !body->values[body->outputs[i]].is_static))
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "grt_context_run_async: output '%s' asks for %s; bind it, or use grt_context_run",
                            body->output_names[i],
                            body->values[body->outputs[i]].is_static ? "pageable host memory"
                                                                     : "memory when its size is known");
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
