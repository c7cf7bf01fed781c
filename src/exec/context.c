/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: life and reports. */
#include "src/exec/context.h"

#include "src/base/structs.h"
#include "src/exec/run.h"
#include "src/exec/state.h"

#include <stdlib.h>

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

void *grt_context_stream(const grt_context *context)
{
    return context->executor.stream;
}

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
