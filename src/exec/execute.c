/* SPDX-License-Identifier: Apache-2.0 */
/* Running the steps of a frame. */
#include "src/exec/context.h"

#include "src/base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static grt_status need_workspace(grt_context *context, size_t bytes)
{
    if (bytes <= context->workspace_bytes)
        return GRT_OK;
    GRT_TRY(grt_device_wait(context->session->device, context->stream)); /* the old one may be in use */
    return grt_context_reserve_workspace(context, bytes);
}

/* For a kernel that asked for no more than there is. */
static void *workspace_of(const grt_context *context)
{
    return context->workspace || context->session->on_device ? context->workspace : grt_nothing;
}

/* Values of this size and below may be shapes, axes, limits and the like, which shape rules read. */
enum { MAX_READABLE = 1024, MAX_READABLE_FLOATS = 16 };

/* A rule on a device session reads small inputs: bring them to the host. */
static grt_status fetch_readable(grt_frame *frame, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        const grt_tensor *t = step->in[i] < 0 ? NULL : &frame->values[step->in[i]].t;
        int64_t most = t && grt_dtype_in(t->dtype, GRT_SET_FLOATS) ? MAX_READABLE_FLOATS : MAX_READABLE;
        if (t && grt_dtype_in(t->dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL)) && t->rank >= 0 && t->rank <= 1 &&
            grt_tensor_elements(t) <= most)
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    }
    return GRT_OK;
}

/* Dims of the outputs of a dynamic step: from the plan where input symbols decide, else by the op's rule. */
static grt_status find_dims(grt_frame *frame, int32_t s, grt_op_call *call)
{
    const grt_plan_step *step = &frame->body->steps[s];
    const grt_frame *main = frame->index == 0 ? frame : frame->context->current;
    bool all = true;
    for (int32_t i = 0; i < step->n_out; i++)
        all = all && (step->out[i] < 0 || grt_frame_has_dims(frame, step->out[i]));
    if (!all) {
        if (grt_frame_on_device(frame))
            GRT_TRY(fetch_readable(frame, step));
        return grt_op_call_infer(call, &frame->context->scratch);
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        const grt_plan_value *v = &frame->body->values[step->out[i]];
        grt_tensor *t = call->run.out[i];
        t->rank = v->rank;
        for (int32_t k = 0; k < v->rank; k++)
            t->dims[k] = main->dims[v->dims[k]];
    }
    return grt_frame_check_step(frame, s, !grt_frame_on_device(frame));
}

/* The same elements under new dims, one range for each output: memory is shared or borrowed, never copied. */
static grt_status run_view(grt_frame *frame, int32_t s, grt_op_call *call)
{
    const grt_plan_step *step = &frame->body->steps[s];
    const grt_value *in = (const grt_value *)call->run.in[0];
    size_t at = 0;
    if (in->kind != GRT_KIND_TENSOR)
        return grt_value_share((grt_value *)call->run.out[0], in);
    GRT_TRY(find_dims(frame, s, call));
    GRT_TRY(grt_op_call_check_view(call));
    for (int32_t i = 0; i < step->n_out; i++) {
        grt_value *out = (grt_value *)call->run.out[i];
        grt_tensor t = out->t;
        t.dtype = in->t.dtype;
        t.data = (char *)in->t.data + at;
        grt_buffer *shared = grt_buffer_retain(in->buffer);
        grt_value_clear(out);
        out->t = t;
        out->buffer = shared;
        at += grt_tensor_bytes(&t);
    }
    /* A body's input may be replaced while an earlier view of it is an output: what has no buffer is copied
     * there. */
    return GRT_OK;
}

/* What a kernel may rely on that finds its outputs' sizes itself: the op's rule takes the dims of this run.
 */
static grt_status check_dims(grt_frame *frame, int32_t s, grt_op_call *call)
{
    const uint32_t flags = call->row->flags;
    if (!(flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
        return find_dims(frame, s, call);
    return flags & GRT_KERNEL_VALUES || !(frame->steps[s].open || frame->steps[s].unproven)
               ? GRT_OK
               : grt_op_call_accept(call, !grt_frame_on_device(frame), &frame->context->scratch);
}

static void drop_outputs(grt_frame *frame, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_drop(frame, step->out[i]);
}

static grt_status run_dynamic(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    grt_op_call *call = &frame->steps[s].call;
    drop_outputs(frame, step);
    if (step->kind == GRT_STEP_VIEW)
        return run_view(frame, s, call);
    for (int32_t i = 0; i < step->n_in && i < 8; i++)
        if (step->in[i] >= 0 && call->row->flags & GRT_KERNEL_READS(i))
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    GRT_TRY(check_dims(frame, s, call));
    GRT_TRY(grt_op_call_prepare(call));
    GRT_TRY(need_workspace(frame->context, call->workspace_bytes));
    call->run.workspace = workspace_of(frame->context);
    return grt_op_call_run(call);
}

static grt_status run_on_device(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    GRT_TRY(run_dynamic(frame, s));
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_shadow(frame, step->out[i]);
    return GRT_OK;
}

static grt_status run_host_kernel(grt_frame *frame, int32_t s, grt_op_call *call)
{
    const grt_plan_step *step = &frame->body->steps[s];
    grt_context *context = frame->context;
    if (step->kind == GRT_STEP_VIEW)
        return run_view(frame, s, call);
    GRT_TRY(check_dims(frame, s, call));
    GRT_TRY(grt_op_call_prepare(call));
    if (call->workspace_bytes > context->host_workspace_bytes) {
        free(context->host_workspace);
        context->host_workspace_bytes = 0;
        context->host_workspace = aligned_alloc(64, (call->workspace_bytes + 63) & ~(size_t)63);
        if (!context->host_workspace)
            return grt_fail_memory(call->workspace_bytes);
        context->host_workspace_bytes = call->workspace_bytes;
    }
    call->run.workspace = context->host_workspace ? context->host_workspace : grt_nothing;
    return grt_op_call_run(call);
}

/* A step that the CPU runs for a device session: its inputs come down, its outputs go up. */
static grt_status run_on_host(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    const grt_plan *plan = frame->context->session->model->plan;
    for (int32_t i = 0; i < step->n_in; i++)
        if (step->in[i] >= 0)
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    for (int32_t b = 0; b < step->n_bodies; b++)
        for (int32_t i = 0; i < plan->bodies[step->bodies[b]].n_captures; i++)
            GRT_TRY(grt_frame_fetch(frame, plan->bodies[step->bodies[b]].captures_outer[i]));
    if (step->kind >= GRT_STEP_IF) {
        GRT_TRY(grt_control_run(frame, s));
    } else {
        drop_outputs(frame, step);
        GRT_TRY(run_host_kernel(frame, s, &frame->steps[s].call));
    }
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            GRT_TRY(grt_frame_store(frame, step->out[i]));
    return GRT_OK;
}

static grt_status run_step(grt_frame *frame, int32_t s)
{
    grt_step_state *state = &frame->steps[s];
    if (state->skip)
        return GRT_OK;
    if (state->host)
        return run_on_host(frame, s);
    if (state->is_static) {
        state->call.run.workspace = workspace_of(frame->context);
        return state->call.row->run(&state->call.run);
    }
    if (frame->body->steps[s].kind >= GRT_STEP_IF)
        return grt_control_run(frame, s);
    if (grt_frame_on_device(frame))
        return run_on_device(frame, s);
    if (!frame->context->session->on_device)
        return run_dynamic(frame, s);
    drop_outputs(frame,
                 &frame->body->steps[s]); /* a body, whose steps run on the CPU with memory of the host */
    return run_host_kernel(frame, s, &frame->steps[s].call);
}

static void drop_dead(grt_frame *frame, int32_t s)
{
    const grt_step_state *state = &frame->steps[s];
    for (int32_t i = 0; i < state->n_drop; i++)
        if (frame->dynamic[state->drop[i]])
            grt_frame_drop(frame, state->drop[i]);
}

/* ---- times ---- */

static grt_status make_events(grt_context *context)
{
    grt_device *device = context->session->device;
    if (context->events || !device->vtable->event_create || !context->session->on_device)
        return GRT_OK;
    context->events = calloc(context->n_times + 1, sizeof *context->events);
    if (!context->events)
        return grt_fail_memory(context->n_times * sizeof *context->events);
    for (size_t i = 0; i <= context->n_times; i++)
        GRT_TRY(device->vtable->event_create(device, &context->events[i]));
    return GRT_OK;
}

/* With device times: events between the steps, read once all have run. */
static grt_status read_events(grt_frame *frame)
{
    grt_context *context = frame->context;
    grt_device *device = context->session->device;
    for (int32_t s = 0; s < frame->body->n_steps; s++)
        GRT_TRY(device->vtable->event_elapsed(device, context->events[s], context->events[s + 1],
                                              &context->times[s].ms));
    return GRT_OK;
}

static grt_status run_timed(grt_frame *frame)
{
    grt_context *context = frame->context;
    grt_device *device = context->session->device;
    const bool main = frame->index == 0;
    if (main)
        GRT_TRY(make_events(context));
    const bool events = main && context->events;
    double begin = grt_now_ms(), kernels = 0;
    if (events)
        GRT_TRY(device->vtable->event_record(device, context->events[0], frame->stream));
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        double t0 = grt_now_ms();
        GRT_TRY(run_step(frame, s));
        double ms = grt_now_ms() - t0;
        drop_dead(frame, s);
        if (main) {
            const grt_op_desc *desc = &frame->body->steps[s].desc;
            context->times[s] = (grt_step_time){.op = desc->op, .name = desc->name, .ms = ms};
            kernels += ms;
        }
        if (events)
            GRT_TRY(device->vtable->event_record(device, context->events[s + 1], frame->stream));
    }
    if (main)
        context->host_us = (grt_now_ms() - begin - kernels) * 1e3;
    return events ? read_events(frame) : GRT_OK;
}

/* What devices and their libraries say is about a call; the user's word for it is the node. */
static grt_status step_failed(const grt_frame *frame, int32_t s, grt_status status)
{
    const grt_op_desc *desc = &frame->body->steps[s].desc;
    char name[256];
    snprintf(name, sizeof name, "node '%.200s'", desc->name);
    if (strstr(grt_last_error(), name))
        return status;
    return grt_fail_context(status, "%s%s%s node '%s'", desc->domain, *desc->domain ? "::" : "", desc->op,
                            desc->name);
}

static grt_status run_steps(grt_frame *frame)
{
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        frame->step = s;
        grt_status status = run_step(frame, s);
        if (status != GRT_OK)
            return step_failed(frame, s, status);
        if (frame->steps[s].n_drop)
            drop_dead(frame, s);
    }
    return GRT_OK;
}

/* Debugging on a device: the step whose kernel fails is known, as each is waited for. */
static grt_status run_watched(grt_frame *frame)
{
    grt_device *device = frame->context->session->device;
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        frame->step = s;
        grt_status status = run_step(frame, s);
        if (status == GRT_OK && !frame->steps[s].skip)
            status = grt_device_wait(device, frame->stream);
        if (status != GRT_OK)
            return step_failed(frame, s, status);
        drop_dead(frame, s);
    }
    return GRT_OK;
}

/* ---- replay ---- */

void grt_frame_release_graphs(grt_frame *frame)
{
    grt_device *device = frame->context->session->device;
    for (int32_t i = 0; i < GRT_MAX_REPLAYS; i++) {
        if (frame->replays[i].graph)
            device->vtable->graph_release(device, frame->replays[i].graph);
        frame->replays[i] = (grt_replay){0};
    }
}

int32_t grt_frame_find_blocker(const grt_frame *frame)
{
    for (int32_t s = 0; s < frame->body->n_steps; s++)
        if (!frame->steps[s].skip && (frame->steps[s].host || !frame->steps[s].is_static))
            return s;
    return -1;
}

static const char *blocker_reason(const grt_frame *frame)
{
    const grt_step_state *state = &frame->steps[frame->blocker];
    if (frame->body->steps[frame->blocker].kind >= GRT_STEP_IF)
        return "control flow is decided on the host";
    if (state->host)
        return "it runs on the CPU";
    if (state->call.row && state->call.row->flags & GRT_KERNEL_DYNAMIC)
        return "its result's size depends on data";
    return "its shape comes with the run";
}

void grt_frame_get_replay(const grt_frame *frame, grt_replay_info *out_info)
{
    const grt_context *context = frame->context;
    const bool device = grt_frame_on_device(frame);
    *out_info = (grt_replay_info){.struct_size = sizeof *out_info,
                                  .supported = device && context->session->device->vtable->graph_begin,
                                  .op = "",
                                  .node = "",
                                  .reason = ""};
    if (!device)
        return;
    for (int32_t i = 0; i < GRT_MAX_REPLAYS; i++)
        out_info->graphs += frame->replays[i].graph != NULL;
    const int32_t named = frame->blocker >= 0   ? frame->blocker
                          : frame->not_captured ? frame->failed_step
                                                : -1;
    if (named >= 0) {
        out_info->op = frame->body->steps[named].desc.op;
        out_info->node = frame->body->steps[named].desc.name;
    }
    if (frame->not_captured)
        out_info->reason = frame->not_captured;
    else if (frame->blocker >= 0)
        out_info->reason = blocker_reason(frame);
    else if (context->debug)
        out_info->reason = "GRAPHRT_DEBUG is set";
}

/* A graph can hold all steps. */
static bool can_replay(const grt_frame *frame)
{
    return frame->blocker < 0 && frame->failures < GRT_MAX_CAPTURES && !frame->context->debug &&
           frame->context->session->device->vtable->graph_begin;
}

static void set_stream(grt_frame *frame, void *stream)
{
    if (frame->stream == stream)
        return;
    frame->stream = stream;
    for (int32_t s = 0; s < frame->body->n_steps; s++)
        frame->steps[s].call.run.stream = frame->steps[s].host ? NULL : stream;
}

/* The replay for the pointers that are bound; a new one in the place of the oldest. */
static grt_replay *find_replay(grt_frame *frame)
{
    for (int32_t i = 0; i < GRT_MAX_REPLAYS; i++)
        if (frame->replays[i].used && frame->replays[i].pointers == frame->pointers)
            return &frame->replays[i];
    grt_replay *oldest = &frame->replays[frame->next_replay];
    frame->next_replay = (frame->next_replay + 1) % GRT_MAX_REPLAYS;
    if (oldest->graph)
        frame->context->session->device->vtable->graph_release(frame->context->session->device,
                                                               oldest->graph);
    *oldest = (grt_replay){.pointers = frame->pointers};
    return oldest;
}

/* A capture may fail for a reason that passes, such as memory that a library wanted meanwhile: the next runs
 * try again, a few times. */
static void note_failure(grt_frame *frame, int32_t step)
{
    free(frame->not_captured);
    frame->not_captured = strdup(grt_last_error());
    frame->failed_step = step;
    frame->failures++;
}

static void forget_failures(grt_frame *frame)
{
    free(frame->not_captured);
    frame->not_captured = NULL;
    frame->failures = 0;
}

static grt_status capture(grt_frame *frame, void **out_graph)
{
    grt_device *device = frame->context->session->device;
    grt_status begun = device->vtable->graph_begin(device, frame->stream);
    if (begun != GRT_OK) {
        note_failure(frame, -1);
        return begun;
    }
    grt_status status = run_steps(frame);
    if (status != GRT_OK) /* remember it: ending has an error of its own */
        note_failure(frame, frame->step);
    grt_status ended = device->vtable->graph_end(device, frame->stream, out_graph);
    if (status == GRT_OK && ended == GRT_OK) {
        forget_failures(frame);
        return GRT_OK;
    }
    if (status == GRT_OK)
        note_failure(frame, -1);
    if (*out_graph)
        device->vtable->graph_release(device, *out_graph);
    *out_graph = NULL;
    return status != GRT_OK ? status : ended;
}

/* The first run with some pointers goes step by step, as libraries set themselves up then; the second is
 * captured, later ones replay. */
static grt_status run_graph(grt_frame *frame, void *stream)
{
    grt_device *device = frame->context->session->device;
    grt_replay *replay = find_replay(frame);
    if (replay->graph)
        return device->vtable->graph_launch(device, replay->graph, stream);
    if (!replay->used) {
        replay->used = true;
        set_stream(frame, stream);
        return run_steps(frame);
    }
    set_stream(frame, frame->context->stream); /* the caller's stream may be the default one */
    if (capture(frame, &replay->graph) == GRT_OK)
        return device->vtable->graph_launch(device, replay->graph, stream);
    set_stream(frame, stream); /* an op that cannot be captured: the run still works, step by step */
    return run_steps(frame);
}

static grt_status run_on_stream(grt_frame *frame, void *stream)
{
    if (can_replay(frame))
        return run_graph(frame, stream);
    set_stream(frame, stream);
    return frame->context->debug ? run_watched(frame) : run_steps(frame);
}

/* Events around the steps, where device times are asked for. */
static grt_status run_measured(grt_frame *frame)
{
    grt_context *context = frame->context;
    grt_device *device = context->session->device;
    for (int i = 0; i < 2; i++)
        if (!context->bounds[i])
            GRT_TRY(device->vtable->event_create(device, &context->bounds[i]));
    GRT_TRY(device->vtable->event_record(device, context->bounds[0], context->stream));
    GRT_TRY(run_on_stream(frame, context->stream));
    GRT_TRY(device->vtable->event_record(device, context->bounds[1], context->stream));
    return device->vtable->event_elapsed(device, context->bounds[0], context->bounds[1], &context->device_ms);
}

grt_status grt_frame_run(grt_frame *frame)
{
    if (!grt_frame_on_device(frame))
        return frame->context->timing ? run_timed(frame) : run_steps(frame);
    if (frame->context->timing) {
        set_stream(frame, frame->context->stream);
        return run_timed(frame);
    }
    return frame->context->measures ? run_measured(frame) : run_on_stream(frame, frame->context->stream);
}

grt_status grt_frame_run_async(grt_frame *frame, void *stream, bool captured)
{
    if (frame->blocker >= 0)
        return grt_fail_op(&frame->body->steps[frame->blocker].desc, GRT_STATUS_UNSUPPORTED,
                           "%s: the run cannot be enqueued; use grt_context_run", blocker_reason(frame));
    if (captured) {
        set_stream(frame, stream); /* the caller's graph has the steps */
        return run_steps(frame);
    }
    return run_on_stream(frame, stream);
}
