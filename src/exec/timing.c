/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/timing.h"

#include "src/exec/execute.h"

#include <stdlib.h>

void grt_timing_release(grt_timing *timing, grt_device *device)
{
    for (size_t i = 0; timing->events && i <= timing->n_times; i++)
        grt_device_event_release(device, timing->events[i]);
    for (int i = 0; i < 2; i++)
        grt_device_event_release(device, timing->bounds[i]);
    free(timing->events);
    free(timing->times);
    free(timing->begins);
}

void grt_timing_set_steps(grt_timing *timing, const grt_plan_body *body, bool on)
{
    if (on && !timing->times) {
        timing->n_times = (size_t)body->n_steps;
        timing->times = calloc(timing->n_times + 1, sizeof *timing->times);
        timing->begins = calloc(timing->n_times + 1, sizeof *timing->begins);
    }
    timing->steps = on && timing->times && timing->begins;
    for (size_t s = 0; timing->steps && s < timing->n_times; s++)
        timing->times[s] = (grt_step_time){.op = body->steps[s].desc.op, .name = body->steps[s].desc.name};
}

static grt_status make_events(grt_timing *timing, const grt_frame *frame)
{
    grt_device *device = grt_executor_device(frame->executor);
    if (timing->events || !grt_device_has_timer(device) || !grt_frame_on_device(frame))
        return GRT_OK;
    timing->events = calloc(timing->n_times + 1, sizeof *timing->events);
    if (!timing->events)
        return grt_fail_memory(timing->n_times * sizeof *timing->events);
    for (size_t i = 0; i <= timing->n_times; i++)
        GRT_TRY(grt_device_event_create(device, &timing->events[i]));
    return GRT_OK;
}

/* With device times: events between the steps, read once all have run. */
static grt_status read_events(grt_timing *timing, const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->n_instructions; i++)
        GRT_TRY(grt_device_event_elapsed(grt_executor_device(frame->executor), timing->events[i],
                                         timing->events[i + 1],
                                         &timing->times[frame->program->instructions[i].index].ms));
    return GRT_OK;
}

static grt_status record(const grt_timing *timing, const grt_frame *frame, int32_t i)
{
    return timing->events ? grt_device_event_record(grt_executor_device(frame->executor), timing->events[i],
                                                    frame->stream)
                          : GRT_OK;
}

grt_status grt_timing_run_steps(grt_timing *timing, grt_frame *frame)
{
    const grt_program *program = frame->program;
    GRT_TRY(make_events(timing, frame));
    for (size_t s = 0; s < timing->n_times; s++)
        timing->times[s].ms = 0; /* not all steps have something to do in a run */
    const double begin = grt_now_ms();
    double kernels = 0;
    GRT_TRY(record(timing, frame, 0));
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const double t0 = grt_now_ms();
        GRT_TRY(grt_frame_run_range(frame, i, i + 1));
        const double ms = grt_now_ms() - t0;
        timing->begins[program->instructions[i].index] = t0;
        timing->times[program->instructions[i].index].ms = ms;
        kernels += ms;
        GRT_TRY(record(timing, frame, i + 1));
    }
    timing->host_us = (grt_now_ms() - begin - kernels) * 1e3;
    return timing->events ? read_events(timing, frame) : GRT_OK;
}

grt_status grt_timing_run_between(grt_timing *timing, grt_frame *frame, grt_status (*run)(grt_frame *frame))
{
    void *stream = frame->executor->stream;
    grt_device *device = grt_executor_device(frame->executor);
    for (int i = 0; i < 2; i++)
        if (!timing->bounds[i])
            GRT_TRY(grt_device_event_create(device, &timing->bounds[i]));
    GRT_TRY(grt_device_event_record(device, timing->bounds[0], stream));
    GRT_TRY(run(frame));
    GRT_TRY(grt_device_event_record(device, timing->bounds[1], stream));
    return grt_device_event_elapsed(device, timing->bounds[0], timing->bounds[1], &timing->device_ms);
}
