/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/execute.h"

#include "src/base/span.h"
#include "src/base/span_clock.h"
#include "src/exec/watch.h"

/* Somebody looks on. *at_ms: when the step before has ended. */
static grt_status run_in_span(grt_frame *frame, const grt_instruction *ins, double *at_ms)
{
    grt_span_scope scope = {.span = {.kind = GRT_SPAN_STEP,
                                     .step = ins->index,
                                     .op = ins->step->desc.op,
                                     .name = ins->step->desc.name,
                                     .device = frame->executor->session->name}};
    grt_span_enter_at(&scope, *at_ms);
    const grt_status status = ins->run(frame, ins);
    *at_ms = grt_span_leave_on(&scope);
    return status;
}

grt_status grt_frame_run_range(grt_frame *frame, int32_t first, int32_t end)
{
    const grt_instruction *instructions = frame->program->instructions;
    const bool in_spans = grt_spans_are_on();
    double at_ms = in_spans ? grt_span_clock_ms() : 0;
    for (int32_t i = first; i < end; i++) {
        const grt_instruction *ins = &instructions[i];
        frame->at = i;
        grt_status status = grt_stop_check(&frame->executor->stop);
        if (status == GRT_OK)
            status = in_spans ? run_in_span(frame, ins, &at_ms) : ins->run(frame, ins);
        if (status == GRT_OK && frame->executor->watch.function)
            status = grt_watch_tell(frame, ins);
        if (status != GRT_OK)
            return grt_frame_explain(frame, ins->index, status);
        for (int32_t k = 0; k < ins->n_drop; k++)
            grt_frame_drop(frame, ins->drop[k]);
    }
    return GRT_OK;
}

grt_status grt_frame_run(grt_frame *frame)
{
    return grt_frame_run_range(frame, 0, frame->program->n_instructions);
}

grt_status grt_frame_launch(const grt_frame *frame, void *graph, void *stream)
{
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_REPLAY, .device = frame->executor->session->name);
    const grt_status status = grt_device_graph_launch(grt_executor_device(frame->executor), graph, stream);
    GRT_SPAN_LEAVE(span);
    return status;
}
