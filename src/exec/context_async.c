/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are enqueued on the caller's stream, and waited for by the caller. */
#include "src/base/span.h"
#include "src/exec/context_run.h"
#include "src/exec/output_allocator.h"
#include "src/exec/run.h"
#include "src/exec/state.h"
#include "src/exec/transfer.h"

/* Pageable memory would have to be waited for. */
static grt_status check_async(const grt_context *context)
{
    const grt_plan_body *body = grt_context_body(context);
    if (!context->executor.session->on_device)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "grt_context_run_async: a session on %s has no streams; use grt_context_run",
                        grt_executor_device(&context->executor)->backend->name);
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (context->executor.bound.input_set[i] &&
            context->executor.bound.inputs[i].t.memory == GRT_MEMORY_HOST)
            return grt_fail(
                GRT_STATUS_INVALID_ARGUMENT,
                "grt_context_run_async: input '%s' is in pageable host memory; bind device memory, or "
                "page-locked memory (grt_session_alloc_host)",
                body->values[body->inputs[i]].name);
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (context->executor.bound.output_set[i] &&
            context->executor.bound.outputs[i].memory == GRT_MEMORY_HOST)
            return grt_fail(
                GRT_STATUS_INVALID_ARGUMENT,
                "grt_context_run_async: output '%s' is bound to pageable host memory; bind device memory, "
                "or page-locked memory (grt_session_alloc_host)",
                body->output_names[i]);
    return GRT_OK;
}

/* Inputs that are in pageable memory are defaults: they lie in the plan, and stay as they are. */
static grt_status enqueue(grt_frame *frame, void *stream, bool captured)
{
    GRT_TRY(grt_frame_upload_inputs(frame, GRT_UPLOAD_PAGEABLE | GRT_UPLOAD_PINNED, stream));
    GRT_TRY(grt_run_frame_async(frame, stream, captured));
    GRT_TRY(grt_frame_copy_on_device(frame, stream));
    return grt_frame_copy_to_pinned(frame, stream);
}

/* The order of what a captured graph does is the caller's: there is nothing to wait for while it is captured.
 */
static grt_status enqueue_in_order(grt_context *context, grt_frame *frame, void *stream)
{
    grt_status status = grt_in_flight_follow(&context->executor.flight, stream);
    if (status == GRT_OK)
        status = enqueue(frame, stream, false);
    if (status == GRT_OK)
        status = grt_in_flight_launched(&context->executor.flight, stream);
    if (status != GRT_OK)
        grt_in_flight_abandon(&context->executor.flight, stream);
    return status;
}

static grt_status enqueue_with_state(grt_context *context, grt_frame *frame, void *stream)
{
    const grt_status status = enqueue_in_order(context, frame, stream);
    if (context->state && status == GRT_OK)
        grt_state_advance(context->state);
    else if (context->state)
        grt_state_spoil(context->state);
    return status;
}

static grt_status enqueue_captured(grt_context *context, grt_frame *frame, void *stream)
{
    frame->captured = true;
    grt_executor_note_capture(&context->executor);
    GRT_TRY(enqueue(frame, stream, true));
    return context->state ? grt_state_copy_back(context->state, stream) : GRT_OK;
}

static grt_status run_async(grt_context *context, void *stream)
{
    grt_frame *frame;
    grt_device *device = grt_executor_device(&context->executor);
    GRT_TRY(check_async(context));
    GRT_TRY(grt_outputs_check_async(&context->executor));
    GRT_TRY(grt_executor_check_local(&context->executor)); /* what the run before this one found */
    void *used = stream ? stream : context->executor.stream;
    const bool captured = grt_device_stream_is_captured(device, used);
    GRT_TRY(grt_context_prepare(context, captured, &frame));
    if (captured)
        GRT_TRY(enqueue_captured(context, frame, used));
    else
        GRT_TRY(enqueue_with_state(context, frame, used));
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) { /* views */
        grt_value_clear(&context->results[i]);
        context->results[i].t = frame->values[frame->program->body->outputs[i]].t;
        context->results[i].t.memory = GRT_MEMORY_DEVICE;
        context->results[i].t.device = device->index;
    }
    context->ran = true;
    return GRT_OK;
}

grt_status grt_context_run_async(grt_context *context, void *stream)
{
    bool switched;
    GRT_TRY(grt_context_enter(context, "grt_context_run_async", NULL, &switched));
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_RUN, .device = context->executor.session->name);
    const grt_status status = run_async(context, stream);
    GRT_SPAN_LEAVE(span);
    grt_context_leave(context, switched);
    return status;
}
