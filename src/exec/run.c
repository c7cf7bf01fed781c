/* SPDX-License-Identifier: Apache-2.0 */
/* See run.h.
 *
 * On a device that has graphs, the segments of a program whose steps need nothing of the host are captured
 * and replayed; what is between them is enqueued step by step. The first run with some pointers goes step by
 * step, as libraries set themselves up then; the second is captured. */
#include "src/exec/run.h"

#include "src/base/span.h"

#include "src/exec/execute.h"

/* Debugging on a device: the step whose kernel fails is known, as each is waited for. */
static grt_status run_debugged(grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->n_instructions; i++) {
        GRT_TRY(grt_frame_run_range(frame, i, i + 1));
        const grt_status status = grt_device_wait(grt_executor_device(frame->executor), frame->stream);
        if (status != GRT_OK)
            return grt_frame_explain(frame, frame->program->instructions[i].index, status);
    }
    return GRT_OK;
}

static grt_status capture_segment(grt_frame *frame, int32_t k, void **out_graph)
{
    const grt_segment *segment = &frame->program->segments[k];
    grt_device *device = grt_executor_device(frame->executor);
    grt_replay *replay = &frame->replay;
    grt_status begun = grt_device_graph_begin(device, frame->stream);
    if (begun != GRT_OK) {
        grt_replay_note_failure(replay, k, -1);
        return begun;
    }
    grt_status status = grt_frame_run_range(frame, segment->first, segment->end);
    const bool stopped = frame->executor->stop.found != GRT_OK; /* which says nothing about the steps */
    if (status != GRT_OK && !stopped) /* remember it: ending has an error of its own */
        grt_replay_note_failure(replay, k, frame->program->instructions[frame->at].index);
    grt_status ended = grt_device_graph_end(device, frame->stream, out_graph);
    if (status == GRT_OK && ended == GRT_OK) {
        grt_replay_forget_failures(replay, k);
        return GRT_OK;
    }
    if (status == GRT_OK)
        grt_replay_note_failure(replay, k, -1);
    grt_device_graph_release(device, *out_graph);
    *out_graph = NULL;
    return status != GRT_OK ? status : ended;
}

static grt_status capture(grt_frame *frame, int32_t k, void **out_graph)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_CAPTURE, .device = frame->executor->session->name);
    const grt_status status = capture_segment(frame, k, out_graph);
    GRT_SPAN_LEAVE(span);
    return status;
}

static grt_status run_segment(grt_frame *frame, grt_graph_set *set, int32_t k, void *stream)
{
    const grt_segment *segment = &frame->program->segments[k];
    GRT_TRY(grt_stop_check(&frame->executor->stop));
    if (segment->graph && !set->graphs[k] && frame->replay.failures[k] < GRT_MAX_CAPTURES) {
        /* The caller's stream may be the default one, which cannot be captured. A step that cannot be: the
         * run still works. */
        grt_frame_set_stream(frame, frame->executor->stream);
        (void)capture(frame, k, &set->graphs[k]);
    }
    if (set->graphs[k])
        return grt_frame_launch(frame, set->graphs[k], stream);
    grt_frame_set_stream(frame, stream);
    return grt_frame_run_range(frame, segment->first, segment->end);
}

bool grt_run_capture(grt_frame *frame)
{
    if (!frame->replay.sets || frame->executor->debug)
        return true;
    grt_graph_set *set = grt_replay_find(&frame->replay, grt_executor_device(frame->executor));
    bool all = true;
    grt_frame_set_stream(frame, frame->executor->stream);
    for (int32_t k = 0; k < frame->program->n_segments; k++) {
        if (!frame->program->segments[k].graph || set->graphs[k])
            continue;
        if (capture(frame, k, &set->graphs[k]) != GRT_OK) {
            all = false;
            grt_replay_forget_failures(&frame->replay, k); /* a run goes step by step first, then */
        }
    }
    set->ran = set->ran || all;
    return all;
}

static grt_status run_segments(grt_frame *frame, void *stream)
{
    grt_graph_set *set = grt_replay_find(&frame->replay, grt_executor_device(frame->executor));
    if (!set->ran) {
        grt_frame_set_stream(frame, stream);
        const grt_status status = grt_frame_run(frame);
        set->ran = status == GRT_OK; /* a run that was stopped has not set up the steps behind */
        return status;
    }
    for (int32_t k = 0; k < frame->program->n_segments; k++)
        GRT_TRY(run_segment(frame, set, k, stream));
    return GRT_OK;
}

static grt_status run_on_stream(grt_frame *frame, void *stream)
{
    if (frame->replay.sets && !frame->executor->debug && !frame->executor->watch.function)
        return run_segments(frame, stream);
    grt_frame_set_stream(frame, stream);
    return frame->executor->debug ? run_debugged(frame) : grt_frame_run(frame);
}

static grt_status run_on_own_stream(grt_frame *frame)
{
    return run_on_stream(frame, frame->executor->stream);
}

grt_status grt_run_frame(grt_frame *frame, grt_timing *timing)
{
    if (timing->steps) {
        grt_frame_set_stream(frame, frame->executor->stream);
        return grt_timing_run_steps(timing, frame);
    }
    if (!grt_frame_on_device(frame))
        return grt_frame_run(frame);
    return timing->device ? grt_timing_run_between(timing, frame, run_on_own_stream)
                          : run_on_own_stream(frame);
}

static const char *blocker_reason(const grt_instruction *blocker)
{
    if (blocker->step->kind >= GRT_STEP_IF)
        return "control flow is decided on the host";
    if (blocker->host)
        return "it runs on the CPU";
    if (blocker->call->row && blocker->call->row->flags & GRT_KERNEL_DYNAMIC)
        return "its result's size depends on data";
    return "its shape comes with the run";
}

grt_status grt_run_frame_async(grt_frame *frame, void *stream, bool captured)
{
    const grt_program *program = frame->program;
    if (program->blocker >= 0) {
        const grt_instruction *blocker = &program->instructions[program->blocker];
        return grt_fail_op(&blocker->step->desc, GRT_STATUS_UNSUPPORTED,
                           "%s: the run cannot be enqueued; use grt_context_run", blocker_reason(blocker));
    }
    if (!captured)
        return run_on_stream(frame, stream);
    grt_frame_set_stream(frame, stream); /* the caller's graph has the steps */
    return grt_frame_run(frame);
}

static int32_t count_replayed(const grt_frame *frame)
{
    int32_t n = 0;
    for (int32_t k = 0; k < frame->program->n_segments; k++)
        if (frame->program->segments[k].graph && frame->replay.failures[k] < GRT_MAX_CAPTURES)
            n += frame->program->segments[k].end - frame->program->segments[k].first;
    return n;
}

void grt_run_get_replay(const grt_frame *frame, grt_replay_info *out_info)
{
    const grt_program *program = frame->program;
    const grt_replay *replay = &frame->replay;
    const bool debug = frame->executor->debug;
    *out_info = (grt_replay_info){.struct_size = sizeof *out_info,
                                  .supported = replay->sets != NULL,
                                  .op = "",
                                  .node = "",
                                  .reason = ""};
    if (!grt_frame_on_device(frame))
        return;
    if (replay->sets) {
        out_info->graphs = grt_replay_count(replay);
        out_info->steps = program->n_instructions;
        out_info->replayed = debug ? 0 : count_replayed(frame);
    }
    const grt_instruction *blocker = program->blocker < 0 ? NULL : &program->instructions[program->blocker];
    const grt_plan_step *named =
        replay->not_captured ? (replay->failed_step < 0 ? NULL : &program->body->steps[replay->failed_step])
                             : (blocker ? blocker->step : NULL);
    if (named) {
        out_info->op = named->desc.op;
        out_info->node = named->desc.name;
    }
    if (replay->not_captured)
        out_info->reason = replay->not_captured;
    else if (blocker)
        out_info->reason = blocker_reason(blocker);
    else if (debug)
        out_info->reason = "GRAPHRT_DEBUG is set";
}
