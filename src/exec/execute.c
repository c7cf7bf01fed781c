/* SPDX-License-Identifier: Apache-2.0 */
/* See execute.h. */
#include "src/exec/execute.h"

#include "src/exec/watch.h"

grt_status grt_frame_run_range(grt_frame *frame, int32_t first, int32_t end)
{
    const grt_instruction *instructions = frame->program->instructions;
    for (int32_t i = first; i < end; i++) {
        const grt_instruction *ins = &instructions[i];
        frame->at = i;
        grt_status status = grt_stop_check(&frame->executor->stop);
        if (status == GRT_OK)
            status = ins->run(frame, ins);
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
