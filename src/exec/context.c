/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: life, running, reports. */
#include "src/exec/context.h"

#include "src/base/log.h"
#include "src/base/oversubscription.h"
#include "src/base/openmp.h"
#include "src/base/span.h"
#include "src/base/structs.h"
#include "src/exec/frame_memory.h"
#include "src/exec/new_code.h"
#include "src/exec/output_allocator.h"
#include "src/exec/round_trip.h"
#include "src/exec/run.h"
#include "src/exec/state.h"
#include "src/exec/transfer.h"

#include <graphrt/faults.h>

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static grt_status context_init(grt_context *context, grt_session *session)
{
    GRT_TRY(grt_executor_create(session, &context->executor));
    const size_t n_outputs = (size_t)grt_context_body(context)->n_outputs + 1;
    context->kept = calloc(n_outputs, sizeof *context->kept);
    if (session->on_device)
        context->results = calloc(n_outputs, sizeof *context->results);
    return context->kept && (context->results || !session->on_device) ? GRT_OK : grt_fail_memory(0);
}

grt_status grt_context_create(grt_session *session, grt_context **out_context)
{
    if (!session || !out_context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_create: %s is NULL",
                        session ? "out_context" : "session");
    grt_context *context = grt_session_take_spare(session);
    if (context) {
        grt_session_retain(session);
        context->executor.debug = grt_executor_debugs();
        *out_context = context;
        return GRT_OK;
    }
    context = calloc(1, sizeof *context);
    if (!context)
        return grt_fail_memory(sizeof *context);
    bool switched = false;
    grt_status status = grt_device_enter(session->device, &switched);
    if (status != GRT_OK) {
        free(context);
        return status;
    }
    status = context_init(context, session);
    grt_device_leave(session->device, switched);
    if (status != GRT_OK) {
        grt_context_release(context);
        return status;
    }
    *out_context = context;
    return GRT_OK;
}

static void context_release(grt_context *context)
{
    grt_executor *executor = &context->executor;
    (void)grt_in_flight_settle(&executor->flight);
    if (context->state)
        grt_state_detach(context->state);
    grt_frame_cache_release(&context->frames);
    for (int32_t i = 0; executor->bodies && i < grt_executor_plan(executor)->n_bodies; i++)
        grt_frame_release(executor->bodies[i]);
    grt_timing_release(&context->timing, grt_executor_device(executor));
    for (int32_t i = 0; context->results && i < grt_context_body(context)->n_outputs; i++)
        grt_value_clear(&context->results[i]);
    free(context->results);
    free(context->kept);
    grt_executor_release(executor);
}

void grt_context_release(grt_context *context)
{
    if (!context)
        return;
    grt_session *session = context->executor.session;
    bool switched = false;
    (void)grt_device_enter(session->device, &switched);
    context_release(context);
    grt_device_leave(session->device, switched);
    grt_session_release(session);
    free(context);
}

/* ---- running ---- */

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

enum { PAGEABLE = 1 << GRT_MEMORY_HOST, PINNED = 1 << GRT_MEMORY_PINNED };

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
    const grt_status status = grt_frame_upload_inputs(frame, PAGEABLE | PINNED, frame->executor->stream);
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

/* Everything up to the point where steps are run or enqueued. */
static grt_status context_prepare(grt_context *context, bool captured, grt_frame **out_frame)
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
    GRT_TRY(context_prepare(context, false, &frame));
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

static grt_status context_enter(grt_context *context, const char *function, const grt_run_options *options,
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

static void context_leave(grt_context *context, bool switched)
{
    grt_account_enter(context->account_before);
    grt_device_leave(grt_executor_device(&context->executor), switched);
    grt_stop_end(&context->executor.stop);
    grt_executor_let_go(&context->executor);
}

static grt_status run_with(grt_context *context, const char *function, const grt_run_options *options)
{
    bool switched;
    GRT_TRY(context_enter(context, function, options, &switched));
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
    context_leave(context, switched);
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
    GRT_TRY(grt_frame_upload_inputs(frame, PAGEABLE | PINNED, stream));
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
    GRT_TRY(context_prepare(context, captured, &frame));
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
    GRT_TRY(context_enter(context, "grt_context_run_async", NULL, &switched));
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_RUN, .device = context->executor.session->name);
    const grt_status status = run_async(context, stream);
    GRT_SPAN_LEAVE(span);
    context_leave(context, switched);
    return status;
}

void *grt_context_stream(const grt_context *context)
{
    return context->executor.stream;
}

/* ---- what comes out ---- */

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
    GRT_TRY(context_enter(context, "grt_context_output_dims", NULL, &switched));
    const grt_team team = grt_team_enter(grt_session_team(context->executor.session), false);
    const grt_status status = find_output_dims(context, index, out_tensor);
    grt_team_leave(team);
    context_leave(context, switched);
    return status;
}

/* ---- reports ---- */

grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_stats: context is NULL");
    grt_context_stats stats = {.runs = context->runs,
                               .reshapes = context->frames.prepared,
                               .dynamic_bytes = grt_device_heap_bytes(context->executor.pool),
                               .host_us = context->timing.host_us,
                               .device_ms = context->timing.device ? context->timing.device_ms : 0};
    if (context->executor.main)
        stats.arena_bytes = context->executor.main->program->arena_bytes + context->executor.workspace.bytes;
    return grt_info_give(out_stats, &stats, sizeof stats, "grt_context_stats");
}

grt_status grt_context_get_replay(const grt_context *context, grt_replay_info *out_info)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: context is NULL");
    if (!context->executor.main)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: there was no run");
    grt_replay_info info = {0};
    grt_run_get_replay(context->executor.main, &info);
    return grt_info_give(out_info, &info, sizeof info, "grt_replay_info");
}

void grt_context_set_timing(grt_context *context, bool on)
{
    if (!context)
        return;
    grt_timing_set_steps(&context->timing, grt_context_body(context), on);
}

grt_status grt_context_set_profile(grt_context *context, const grt_profile_options *options)
{
    grt_profile_options known = {0};
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_set_profile: context is NULL");
    GRT_TRY(grt_options_take(&known, sizeof known, options, "grt_profile_options"));
    if (options && !known.event)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_context_set_profile: grt_profile_options.event is NULL");
    if (known.steps || context->profile.options.steps)
        grt_context_set_timing(context, known.steps);
    context->profile.options = known;
    return GRT_OK;
}

bool grt_context_time_device(grt_context *context, bool on)
{
    if (!context)
        return false;
    context->timing.device = on && context->executor.session->on_device &&
                             grt_device_has_timer(grt_executor_device(&context->executor));
    return context->timing.device;
}

size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times)
{
    if (out_times)
        *out_times = context ? context->timing.times : NULL;
    return context && context->timing.steps ? context->timing.n_times : 0;
}
