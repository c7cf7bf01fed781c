/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: life, running, reports. */
#include "src/exec/context.h"

#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/exec/device_value.h"
#include "src/exec/in_flight.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static grt_status alloc_output(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims)
{
    const grt_context *context = run->hooks->executor;
    grt_value *value = (grt_value *)run->out[i];
    return grt_device_value_alloc(run->device, context->pool, value, value->t.dtype, rank, dims);
}

static char *alloc_bytes(const grt_run *run, size_t bytes)
{
    const grt_context *context = run->hooks->executor;
    return grt_arena_alloc(context->strings, bytes);
}

static grt_status init(grt_context *context)
{
    const grt_plan_body *body = grt_context_body(context);
    context->bodies = calloc((size_t)grt_context_plan(context)->n_bodies, sizeof *context->bodies);
    context->inputs = calloc((size_t)body->n_inputs + 1, sizeof *context->inputs);
    context->input_set = calloc((size_t)body->n_inputs + 1, sizeof *context->input_set);
    context->outputs = calloc((size_t)body->n_outputs + 1, sizeof *context->outputs);
    context->output_set = calloc((size_t)body->n_outputs + 1, sizeof *context->output_set);
    context->kept = calloc((size_t)body->n_outputs + 1, sizeof *context->kept);
    context->extents = malloc(grt_extent_bytes(context));
    context->strings = grt_arena_create();
    if (!context->bodies || !context->inputs || !context->input_set || !context->outputs ||
        !context->output_set || !context->kept || !context->extents || !context->strings)
        return grt_fail_memory(0);
#ifdef GRT_DEBUG
    context->debug = true;
#else
    context->debug = getenv("GRAPHRT_DEBUG") != NULL;
#endif
    atomic_flag_clear(&context->busy);
    context->hooks = (grt_run_hooks){.alloc_output = alloc_output,
                                     .alloc_bytes = alloc_bytes,
                                     .executor = context,
                                     .local = &context->local};
    if (context->session->on_device) {
        grt_device *device = context->session->device;
        context->results = calloc((size_t)body->n_outputs + 1, sizeof *context->results);
        if (!context->results)
            return grt_fail_memory(0);
        GRT_TRY(grt_device_stream_create(device, &context->stream));
        GRT_TRY(grt_device_pool_create(device, &context->pool));
    }
    return grt_shape_scratch_create(&context->scratch);
}

grt_status grt_context_create(grt_session *session, grt_context **out_context)
{
    if (!session || !out_context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_create: %s is NULL",
                        session ? "out_context" : "session");
    grt_context *context = calloc(1, sizeof *context);
    if (!context)
        return grt_fail_memory(sizeof *context);
    context->session = grt_session_retain(session);
    bool switched = false;
    grt_status status = grt_device_enter(session->device, &switched);
    if (status == GRT_OK)
        status = init(context);
    grt_device_leave(session->device, switched);
    if (status != GRT_OK) {
        grt_context_release(context);
        return status;
    }
    *out_context = context;
    return GRT_OK;
}

static void release_events(grt_context *context)
{
    grt_device *device = context->session->device;
    for (size_t i = 0; context->events && i <= context->n_times; i++)
        grt_device_event_release(device, context->events[i]);
    free(context->events);
    for (int i = 0; i < 2; i++)
        grt_device_event_release(device, context->bounds[i]);
}

static void release(grt_context *context)
{
    grt_device *device = context->session->device;
    (void)grt_context_settle(context);
    for (int32_t i = 0; i < context->n_profiles; i++)
        grt_frame_release(context->profiles[i]);
    for (int32_t i = 0; context->bodies && i < grt_context_plan(context)->n_bodies; i++)
        grt_frame_release(context->bodies[i]);
    free(context->bodies);
    free(context->inputs);
    free(context->input_set);
    free(context->outputs);
    free(context->output_set);
    free(context->kept);
    free(context->extents);
    free(context->times);
    release_events(context);
    free(context->host_workspace);
    for (int32_t i = 0; context->results && i < grt_context_body(context)->n_outputs; i++)
        grt_value_clear(&context->results[i]);
    free(context->results);
    grt_device_pool_release(context->pool);
    grt_context_release_in_flight(context);
    grt_device_stream_release(device, context->stream);
    grt_arena_release(context->strings);
    grt_shape_scratch_release(&context->scratch);
    grt_device_free(device, context->arena);
    grt_device_free(device, context->workspace);
}

void grt_context_release(grt_context *context)
{
    if (!context)
        return;
    grt_session *session = context->session;
    bool switched = false;
    (void)grt_device_enter(session->device, &switched);
    release(context);
    grt_device_leave(session->device, switched);
    grt_session_release(session);
    free(context);
}

/* ---- running ---- */

/* Outputs that could not be written in place: inputs or constants handed through, dynamic shapes, one value
 * twice. */
static grt_status copy_outputs(grt_context *context, grt_frame *frame)
{
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        if (!context->output_set[i] || grt_is_device_tensor(&context->outputs[i]))
            continue;
        const grt_tensor *to = &context->outputs[i];
        const grt_tensor *from =
            context->results ? &context->results[i].t : &frame->values[frame->body->outputs[i]].t;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(from, to))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' is %s, the memory bound to it is for %s",
                            frame->body->values[frame->body->outputs[i]].name, grt_tensor_text(from, a),
                            grt_tensor_text(to, b));
        if (from->data != to->data)
            memmove(to->data, from->data, grt_tensor_bytes(from));
    }
    return GRT_OK;
}

static grt_status check_bound_outputs(grt_context *context, const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        int32_t v = frame->body->outputs[i];
        if (!context->output_set[i] || !frame->known[v] || frame->dynamic[v])
            continue;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!grt_tensor_same_type(&frame->values[v].t, &context->outputs[i]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' will be %s, the memory bound to it is for %s",
                            frame->body->values[v].name, grt_tensor_text(&frame->values[v].t, a),
                            grt_tensor_text(&context->outputs[i], b));
    }
    return GRT_OK;
}

enum { PAGEABLE = 1 << GRT_MEMORY_HOST, PINNED = 1 << GRT_MEMORY_PINNED };

/* A device session with host inputs and outputs: copies around the steps, all in the order of one stream. */
static grt_status enqueue_and_wait(grt_context *context, grt_frame *frame)
{
    GRT_TRY(grt_context_follow(context, context->stream));
    GRT_TRY(grt_frame_upload_inputs(frame, PAGEABLE | PINNED, context->stream));
    GRT_TRY(grt_frame_run(frame));
    GRT_TRY(grt_frame_copy_on_device(frame, context->stream));
    GRT_TRY(grt_frame_download_outputs(frame));
    grt_context_landed(context);
    return grt_context_check_local(context);
}

static grt_status run_on_device(grt_context *context, grt_frame *frame)
{
    grt_status status = enqueue_and_wait(context, frame);
    if (status != GRT_OK)
        grt_context_abandon(context, context->stream);
    return status;
}

/* Everything up to the point where steps are run or enqueued. */
static grt_status prepare(grt_context *context, grt_frame **out_frame)
{
    grt_frame *frame;
    context->ran = false;
    if (context->any_kept)
        memset(context->kept, 0, (size_t)grt_context_body(context)->n_outputs * sizeof *context->kept);
    context->any_kept = false;
    GRT_TRY(grt_context_check_inputs(context));
    GRT_TRY(grt_context_check_overlap(context));
    GRT_TRY(grt_context_choose_profile(context, &frame));
    if (context->current && context->current != frame)
        grt_frame_clear(context->current);
    context->current = frame;
    frame->last_used = ++context->runs;
    grt_frame_clear(frame);
    grt_arena_reset(context->strings);
    GRT_TRY(check_bound_outputs(context, frame));
    GRT_TRY(grt_frame_bind(frame));
    *out_frame = frame;
    return GRT_OK;
}

static grt_status run_and_wait(grt_context *context)
{
    grt_frame *frame;
    GRT_TRY(prepare(context, &frame));
    if (context->session->on_device)
        GRT_TRY(run_on_device(context, frame));
    else
        GRT_TRY(grt_frame_run(frame));
    GRT_TRY(copy_outputs(context, frame));
    context->ran = true;
    return GRT_OK;
}

/* Two threads in one context would write over each other's activations. */
static grt_status enter(grt_context *context, const char *function, bool *out_switched)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the context is NULL", function);
    if (atomic_flag_test_and_set_explicit(&context->busy, memory_order_acquire))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: another thread runs this context; give each thread a context of its own",
                        function);
    grt_status status = grt_device_enter(context->session->device, out_switched);
    if (status != GRT_OK)
        atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return status;
}

static void leave(grt_context *context, bool switched)
{
    grt_device_leave(context->session->device, switched);
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
}

grt_status grt_context_run(grt_context *context)
{
    bool switched;
    GRT_TRY(enter(context, "grt_context_run", &switched));
    const grt_team team = grt_team_enter(context->session->threads);
    grt_status status = run_and_wait(context);
    grt_team_leave(team);
    leave(context, switched);
    return status;
}

/* Pageable memory would have to be waited for. */
static grt_status check_async(const grt_context *context)
{
    const grt_plan_body *body = grt_context_body(context);
    if (!context->session->on_device)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "grt_context_run_async: a session on %s has no streams; use grt_context_run",
                        context->session->device->backend->name);
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (context->input_set[i] && context->inputs[i].t.memory == GRT_MEMORY_HOST)
            return grt_fail(
                GRT_STATUS_INVALID_ARGUMENT,
                "grt_context_run_async: input '%s' is in pageable host memory; bind device memory, or "
                "page-locked memory (grt_session_alloc_host)",
                body->values[body->inputs[i]].name);
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (context->output_set[i] && context->outputs[i].memory == GRT_MEMORY_HOST)
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
    GRT_TRY(grt_frame_run_async(frame, stream, captured));
    GRT_TRY(grt_frame_copy_on_device(frame, stream));
    return grt_frame_copy_to_pinned(frame, stream);
}

/* The order of what a captured graph does is the caller's: there is nothing to wait for while it is captured.
 */
static grt_status enqueue_in_order(grt_context *context, grt_frame *frame, void *stream)
{
    grt_status status = grt_context_follow(context, stream);
    if (status == GRT_OK)
        status = enqueue(frame, stream, false);
    if (status == GRT_OK)
        status = grt_context_launched(context, stream);
    if (status != GRT_OK)
        grt_context_abandon(context, stream);
    return status;
}

static grt_status run_async(grt_context *context, void *stream)
{
    grt_frame *frame;
    grt_device *device = context->session->device;
    GRT_TRY(check_async(context));
    GRT_TRY(grt_context_check_local(context)); /* what the run before this one found */
    GRT_TRY(prepare(context, &frame));
    void *used = stream ? stream : context->stream;
    if (grt_device_stream_is_captured(device, used)) {
        grt_context_captured(context, frame);
        GRT_TRY(enqueue(frame, used, true));
    } else
        GRT_TRY(enqueue_in_order(context, frame, used));
    for (int32_t i = 0; i < frame->body->n_outputs; i++) { /* views */
        grt_value_clear(&context->results[i]);
        context->results[i].t = frame->values[frame->body->outputs[i]].t;
        context->results[i].t.memory = GRT_MEMORY_DEVICE;
        context->results[i].t.device = device->index;
    }
    context->ran = true;
    return GRT_OK;
}

grt_status grt_context_run_async(grt_context *context, void *stream)
{
    bool switched;
    GRT_TRY(enter(context, "grt_context_run_async", &switched));
    grt_status status = run_async(context, stream);
    leave(context, switched);
    return status;
}

/* ---- reports ---- */

grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_stats: context is NULL");
    grt_context_stats stats = {.runs = context->runs,
                               .reshapes = context->reshapes,
                               .dynamic_bytes = grt_device_pool_bytes(context->pool),
                               .host_us = context->host_us,
                               .device_ms = context->measures ? context->device_ms : 0};
    if (context->current)
        stats.arena_bytes = context->current->memory.arena_bytes + context->workspace_bytes;
    return grt_info_give(out_stats, &stats, sizeof stats, "grt_context_stats");
}

grt_status grt_context_get_replay(const grt_context *context, grt_replay_info *out_info)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: context is NULL");
    if (!context->current)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_get_replay: there was no run");
    grt_replay_info info = {0};
    grt_frame_get_replay(context->current, &info);
    return grt_info_give(out_info, &info, sizeof info, "grt_replay_info");
}

void grt_context_set_timing(grt_context *context, bool on)
{
    if (!context)
        return;
    if (on && !context->times) {
        context->n_times = (size_t)grt_context_body(context)->n_steps;
        context->times = calloc(context->n_times + 1, sizeof *context->times);
    }
    context->timing = on && context->times;
}

bool grt_context_time_device(grt_context *context, bool on)
{
    if (!context)
        return false;
    context->measures = on && context->session->on_device && grt_device_has_timer(context->session->device);
    return context->measures;
}

size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times)
{
    if (out_times)
        *out_times = context ? context->times : NULL;
    return context && context->timing ? context->n_times : 0;
}
