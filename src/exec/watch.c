/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/watch.h"

#include "src/exec/transfer.h"

#include <graphrt/watch.h>

static grt_status tell_result(grt_frame *frame, const grt_instruction *ins, int32_t value)
{
    const grt_executor *executor = frame->executor;
    const grt_plan_step *step = ins->step;
    GRT_TRY(grt_frame_fetch(frame, value));
    const grt_value *found = &frame->host[value];
    const grt_watched watched = {.struct_size = sizeof watched,
                                 .step = ins->index,
                                 .op = step->desc.op,
                                 .nodes = step->desc.name,
                                 .tensor = frame->program->body->values[value].name,
                                 .value = &found->t};
    if (found->kind == GRT_KIND_TENSOR && found->t.rank >= 0)
        executor->watch.function(executor->watch.user, &watched);
    return GRT_OK;
}

grt_status grt_watch_tell(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    for (int32_t i = 0; i < step->n_out && frame->program->index == 0 && step->kind != GRT_STEP_VIEW; i++)
        if (step->out[i] >= 0)
            GRT_TRY(tell_result(frame, ins, step->out[i]));
    return GRT_OK;
}
