/* SPDX-License-Identifier: Apache-2.0 */
/* See rehearse.h. */
#include "src/exec/rehearse.h"

#include <stdatomic.h>

enum { MOST_THREADS = 8 };

/* What a backend keeps for the context is one run's at a time, so a rehearsal has none. */
static grt_status rehearse_step(const grt_frame *frame, const grt_instruction *ins, void *stream)
{
    grt_run_hooks hooks = frame->executor->hooks;
    grt_run run = ins->call->run;
    hooks.local = NULL;
    run.hooks = &hooks;
    run.stream = stream;
    return ins->call->row->run(&run);
}

/* The steps that no other thread has taken. */
static void rehearse_share(const grt_frame *frame, void *stream, atomic_int *next)
{
    const grt_program *program = frame->program;
    grt_device *device = grt_executor_device(frame->executor);
    for (int32_t i; (i = atomic_fetch_add(next, 1)) < program->n_instructions;) {
        const grt_instruction *ins = &program->instructions[i];
        if (!ins->prepared || ins->host || !ins->call->row)
            continue;
        if (grt_device_graph_begin(device, stream) != GRT_OK)
            return;
        (void)rehearse_step(frame, ins, stream);
        (void)grt_device_graph_end(device, stream, NULL);
    }
}

static void rehearse_in_thread(const grt_frame *frame, atomic_int *next)
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

void grt_rehearse(const grt_frame *frame)
{
    const int32_t possible = frame->executor->session->threads, steps = frame->program->n_instructions;
    const int32_t threads = possible < MOST_THREADS ? possible : MOST_THREADS;
    atomic_int next = 0;
    if (!frame->replay.sets || frame->executor->debug || threads < 2 || steps < 2)
        return;
#pragma omp parallel num_threads(threads)
    rehearse_in_thread(frame, &next);
}
