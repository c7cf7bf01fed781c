/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/context_run.h"

#include "src/base/log.h"
#include "src/base/openmp.h"
#include "src/base/oversubscription.h"
#include "src/base/span.h"
#include "src/exec/frame_memory.h"
#include "src/exec/new_code.h"
#include "src/exec/output_allocator.h"
#include "src/exec/round_trip.h"
#include "src/exec/run.h"
#include "src/exec/state.h"
#include "src/exec/transfer.h"

#include <graphrt/faults.h>

#include <string.h>

/* Outputs that could not be written in place: inputs or constants handed through, dynamic shapes, one value
 * twice. */
static grt_status copy_outputs(grt_context *context, grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) {
        if (!context->executor.bound.output_set[i] ||
            grt_is_device_tensor(&context->executor.bound.outputs[i]))
            continue;
        const grt_tensor *to = &context->executor.bound.outputs[i];
        const grt_tensor *from =
            context->results ? &context->results[i].t : &frame->values[frame->program->body->outputs[i]].t;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(from, to))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' is %s, the memory bound to it is for %s",
                            frame->program->body->values[frame->program->body->outputs[i]].name,
                            grt_tensor_text(from, a), grt_tensor_text(to, b));
        if (from->data != to->data)
            memmove(to->data, from->data, grt_tensor_bytes(from));
    }
    return GRT_OK;
}

static grt_status check_bound_outputs(grt_context *context, const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) {
        int32_t v = frame->program->body->outputs[i];
        if (!context->executor.bound.output_set[i] || !frame->program->places[v].has_dims)
            continue;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(&frame->values[v].t, &context->executor.bound.outputs[i]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' will be %s, the memory bound to it is for %s",
                            frame->program->body->values[v].name, grt_tensor_text(&frame->values[v].t, a),
                            grt_tensor_text(&context->executor.bound.outputs[i], b));
    }
    return GRT_OK;
}

/* Those whose size came with the run. */
static grt_status bind_late_outputs(grt_context *context, const grt_frame *frame)
{
    if (context->state)
        GRT_TRY(grt_state_bind_late(context->state, frame));
    return context->executor.bound.any_asked ? grt_outputs_ask_after(&context->executor, frame) : GRT_OK;
}

/* Results lie where the caller wants them. */
static void view_outputs(grt_context *context, const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) {
        const grt_tensor *to = &context->executor.bound.outputs[i];
        grt_value_clear(&context->results[i]); /* of an earlier run */
        if (!grt_is_device_tensor(to))
            context->results[i].t = *to;
    }
}

static grt_status upload_in_span(grt_frame *frame)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_UPLOAD, .device = frame->executor->session->name);
    const grt_status status =
        grt_frame_upload_inputs(frame, GRT_UPLOAD_PAGEABLE | GRT_UPLOAD_PINNED, frame->executor->stream);
    GRT_SPAN_LEAVE(span);
    return status;
}

static grt_status download_in_span(grt_context *context, grt_frame *frame)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_DOWNLOAD, .device = frame->executor->session->name);
    grt_status status = grt_frame_copy_on_device(frame, context->executor.stream);
    if (status == GRT_OK)
        status = grt_frame_enqueue_downloads(frame, context->results);
    GRT_SPAN_LEAVE(span);
    return status;
}

static grt_status wait_in_span(const grt_executor *executor)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_WAIT, .device = executor->session->name);
    const grt_status status = grt_device_wait(grt_executor_device(executor), executor->stream);
    GRT_SPAN_LEAVE(span);
    return status;
}

/* A device session with host inputs and outputs: copies around the steps, all in the order of one stream. */
static grt_status enqueue_and_wait(grt_context *context, grt_frame *frame)
{
    grt_executor *executor = &context->executor;
    bool done = false;
    GRT_TRY(grt_in_flight_follow(&executor->flight, executor->stream));
    if (!context->state && !context->timing.steps && !context->timing.device)
        GRT_TRY(grt_round_trip_run(frame, &done));
    if (!done) {
        GRT_TRY(upload_in_span(frame));
        GRT_TRY(grt_run_frame(frame, &context->timing));
        GRT_TRY(bind_late_outputs(context, frame));
        GRT_TRY(download_in_span(context, frame));
    } else {
        view_outputs(context, frame);
    }
    GRT_TRY(wait_in_span(executor));
    grt_in_flight_landed(&executor->flight);
    return grt_executor_check_local(executor);
}

static grt_status run_on_device(grt_context *context, grt_frame *frame)
{
    grt_status status = enqueue_and_wait(context, frame);
    if (status != GRT_OK)
        grt_in_flight_abandon(&context->executor.flight, context->executor.stream);
    return status;
}

static grt_status context_find_frame(grt_context *context, grt_frame **out_frame)
{
    grt_profile *profile = &context->profile;
    if (!grt_profile_is_on(profile))
        return grt_frame_cache_get(&context->frames, &context->executor, out_frame);
    const uint64_t prepared = context->frames.prepared;
    const double begin = grt_now_ms();
    GRT_TRY(grt_frame_cache_get(&context->frames, &context->executor, out_frame));
    if (prepared != context->frames.prepared) {
        profile->prepare_ms[0] = begin;
        profile->prepare_ms[1] = grt_now_ms();
    }
    return GRT_OK;
}

grt_status grt_context_prepare(grt_context *context, bool captured, grt_frame **out_frame)
{
    grt_frame *frame;
    context->ran = false;
    if (context->any_kept)
        memset(context->kept, 0, (size_t)grt_context_body(context)->n_outputs * sizeof *context->kept);
    context->any_kept = false;
    GRT_TRY(grt_executor_take_weights(&context->executor));
    GRT_TRY(grt_binding_check_inputs(&context->executor.bound));
    GRT_TRY(context_find_frame(context, &frame));
    if (!captured)
        GRT_TRY(grt_new_code_take(frame));
    if (context->state)
        GRT_TRY(grt_state_bind(context->state, frame, context->frames.prepared, captured));
    if (context->executor.bound.any_asked)
        GRT_TRY(grt_outputs_ask_before(&context->executor, frame));
    GRT_TRY(grt_binding_check_overlap(&context->executor.bound));
    if (context->executor.main && context->executor.main != frame)
        grt_frame_clear(context->executor.main);
    context->executor.main = frame;
    context->runs++;
    grt_frame_clear(frame);
    grt_arena_reset(context->executor.strings);
    GRT_TRY(check_bound_outputs(context, frame));
    GRT_TRY(grt_frame_bind(frame));
    *out_frame = frame;
    return GRT_OK;
}

static grt_status context_run_on_host(grt_context *context, grt_frame *frame)
{
    GRT_TRY(grt_run_frame(frame, &context->timing));
    return bind_late_outputs(context, frame);
}

static grt_status run_and_wait(grt_context *context)
{
    grt_frame *frame;
    GRT_TRY(grt_stop_check(&context->executor.stop));
    GRT_TRY(grt_context_prepare(context, false, &frame));
    if (grt_profile_is_on(&context->profile))
        context->profile.compute_ms[0] = grt_now_ms();
    grt_status status = context->executor.session->on_device ? run_on_device(context, frame)
                                                             : context_run_on_host(context, frame);
    if (grt_profile_is_on(&context->profile))
        context->profile.compute_ms[1] = grt_now_ms();
    if (status == GRT_OK)
        status = copy_outputs(context, frame);
    if (context->state && status == GRT_OK)
        grt_state_advance(context->state);
    else if (context->state)
        grt_state_spoil(context->state);
    context->ran = status == GRT_OK;
    return status;
}

grt_status grt_context_enter(grt_context *context, const char *function, const grt_run_options *options,
                             bool *out_switched)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the context is NULL", function);
    if (grt_session_is_lost(context->executor.session))
        return grt_session_check(context->executor.session);
    GRT_TRY(grt_executor_hold(&context->executor, function));
    grt_status status = grt_stop_begin(&context->executor.stop, options);
    if (status == GRT_OK)
        status = grt_device_enter(grt_executor_device(&context->executor), out_switched);
    if (status != GRT_OK) {
        grt_stop_end(&context->executor.stop);
        grt_executor_let_go(&context->executor);
        return status;
    }
    grt_session *session = context->executor.session;
    context->account_before = grt_account_enter(session->on_device ? NULL : session->account);
    return GRT_OK;
}

void grt_context_leave(grt_context *context, bool switched)
{
    grt_account_enter(context->account_before);
    grt_device_leave(grt_executor_device(&context->executor), switched);
    grt_stop_end(&context->executor.stop);
    grt_executor_let_go(&context->executor);
}

static grt_status run_with(grt_context *context, const char *function, const grt_run_options *options)
{
    bool switched;
    GRT_TRY(grt_context_enter(context, function, options, &switched));
    grt_session *session = context->executor.session;
    grt_thread_share *share = &session->model->runtime->threads;
    const grt_thread_grant grant =
        session->on_device ? (grt_thread_grant){0} : grt_thread_share_take(share, session->threads);
    const grt_team team = grt_team_enter(grt_session_team(session), grant.alone);
    if (grt_profile_is_on(&context->profile))
        grt_profile_begin(&context->profile);
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_RUN, .device = context->executor.session->name);
    grt_status status = run_and_wait(context);
    GRT_SPAN_LEAVE(span);
    if (status == GRT_STATUS_DEVICE)
        grt_session_probe(session);
    if (status != GRT_OK)
        GRT_LOG(ERROR, "run", "%s", grt_last_error());
    grt_team_leave(team);
    grt_thread_share_give(share, grant);
    if (grt_profile_is_on(&context->profile))
        grt_profile_tell(&context->profile, &context->timing, context->executor.main, status);
    grt_oversubscription_look(session->threads);
    grt_context_leave(context, switched);
    return status;
}

grt_status grt_context_run(grt_context *context)
{
    return run_with(context, "grt_context_run", NULL);
}

grt_status grt_context_run_with(grt_context *context, const grt_run_options *options)
{
    return run_with(context, "grt_context_run_with", options);
}

void grt_context_cancel(grt_context *context)
{
    if (context)
        grt_stop_cancel(&context->executor.stop);
}

static grt_status find_output_dims(grt_context *context, size_t index, grt_tensor *out_tensor)
{
    grt_frame *frame;
    const grt_plan_body *body = grt_context_body(context);
    if (index >= (size_t)body->n_outputs)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output %zu does not exist; the model has %d", index,
                        (int)body->n_outputs);
    const grt_plan_value *v = &body->values[body->outputs[index]];
    if (v->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' is a %s, which has no dims",
                        body->output_names[index], grt_kind_name(v->kind));
    const uint64_t prepared = context->frames.prepared;
    GRT_TRY(grt_executor_take_weights(&context->executor));
    GRT_TRY(grt_binding_check_inputs(&context->executor.bound));
    GRT_TRY(grt_frame_cache_get(&context->frames, &context->executor, &frame));
    context->ran = context->ran && prepared == context->frames.prepared; /* else memory may have moved */
    const grt_program *program = frame->program;
    *out_tensor = (grt_tensor){.dtype = v->dtype, .rank = v->rank};
    if (program->places[body->outputs[index]].has_dims)
        out_tensor->rank = frame->values[body->outputs[index]].t.rank;
    for (int32_t k = 0; k < out_tensor->rank; k++)
        out_tensor->dims[k] = program->places[body->outputs[index]].has_dims
                                  ? frame->values[body->outputs[index]].t.dims[k]
                              : program->dims_known[v->dims[k]] ? program->dims[v->dims[k]]
                                                                : -1;
    return GRT_OK;
}

grt_status grt_context_output_dims(grt_context *context, size_t index, grt_tensor *out_tensor)
{
    bool switched;
    if (!out_tensor)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_output_dims: out_tensor is NULL");
    GRT_TRY(grt_context_enter(context, "grt_context_output_dims", NULL, &switched));
    const grt_team team = grt_team_enter(grt_session_team(context->executor.session), false);
    const grt_status status = find_output_dims(context, index, out_tensor);
    grt_team_leave(team);
    grt_context_leave(context, switched);
    return status;
}
