/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/rehearse.h"

#include <stdatomic.h>

/* Vendors' libraries may keep something for the context (see grt_run_hooks): one thread at a time. */
static bool is_a_library_s(const grt_instruction *ins)
{
    return ins->call->row->flags & GRT_KERNEL_TUNES;
}

static bool has_code(const grt_instruction *ins)
{
    return ins->prepared && !ins->host && ins->call->row;
}

static void enqueue_for_nothing(grt_device *device, const grt_run *run, const grt_kernel_row *row)
{
    if (grt_device_graph_begin(device, run->stream) != GRT_OK)
        return;
    (void)row->run(run);
    (void)grt_device_graph_end(device, run->stream, NULL);
}

/* Steps of the backend's own kernels that no other thread has taken. */
static void rehearse_share(const grt_frame *frame, void *stream, atomic_int *next)
{
    const grt_program *program = frame->program;
    grt_run_hooks hooks = frame->executor->hooks;
    hooks.local = NULL;
    for (int32_t i; (i = atomic_fetch_add(next, 1)) < program->n_instructions;) {
        const grt_instruction *ins = &program->instructions[i];
        if (!has_code(ins) || is_a_library_s(ins))
            continue;
        grt_run run = ins->call->run;
        run.hooks = &hooks;
        run.stream = stream;
        enqueue_for_nothing(grt_executor_device(frame->executor), &run, ins->call->row);
    }
}

static void rehearse_beside(const grt_frame *frame, atomic_int *next)
{
    grt_device *device = grt_executor_device(frame->executor);
    bool switched;
    void *stream;
    if (grt_device_enter(device, &switched) != GRT_OK)
        return;
    if (grt_device_stream_create(device, 0, &stream) == GRT_OK) {
        rehearse_share(frame, stream, next);
        grt_device_stream_release(device, stream);
    }
    grt_device_leave(device, switched);
}

/* With what the context keeps, on its stream. */
static void rehearse_libraries(const grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->n_instructions; i++) {
        const grt_instruction *ins = &frame->program->instructions[i];
        if (has_code(ins) && is_a_library_s(ins))
            enqueue_for_nothing(grt_executor_device(frame->executor), &ins->call->run, ins->call->row);
    }
}

void grt_rehearse(const grt_frame *frame)
{
    const int32_t team = grt_session_team(frame->executor->session), steps = frame->program->n_instructions;
    const int32_t threads = team < GRT_MOST_PREPARING ? team : GRT_MOST_PREPARING;
    atomic_int next = 0;
    if (!frame->replay.sets || frame->executor->debug || threads < 2 || steps < 2)
        return;
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
        rehearse_libraries(frame);
        rehearse_beside(frame, &next);
    }
}
