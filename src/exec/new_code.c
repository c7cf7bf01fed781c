/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/new_code.h"

#include "src/base/log.h"

static unsigned rounds_now(const grt_frame *frame)
{
    return grt_background_rounds(frame->executor->session->model->runtime->background);
}

void grt_new_code_begin(grt_frame *frame)
{
    frame->code_rounds = rounds_now(frame);
}

void grt_new_code_expect(grt_frame *frame)
{
    frame->awaited = 0;
    for (int32_t s = 0; s < frame->program->body->n_steps; s++) {
        grt_op_call *call = &frame->calls[s];
        if (!grt_code_is_awaited(call->code))
            call->code = NULL;
        frame->awaited += call->code != NULL;
    }
}

/* Some of the awaited kernels have come. */
static grt_status capture_again(grt_frame *frame, int32_t came)
{
    grt_device *device = grt_executor_device(frame->executor);
    GRT_TRY(grt_in_flight_settle(&frame->executor->flight));
    grt_replay_clear(&frame->replay, device);
    grt_replay_clear(&frame->trips, device);
    GRT_LOG(DEBUG, "run", "%s: %d generated kernels are used from now on, %d are awaited",
            frame->executor->session->name, (int)came, (int)frame->awaited);
    return GRT_OK;
}

grt_status grt_new_code_look(grt_frame *frame)
{
    const unsigned now = rounds_now(frame);
    if (now == frame->code_rounds)
        return GRT_OK;
    frame->code_rounds = now;
    const int32_t before = frame->awaited;
    grt_new_code_expect(frame);
    return frame->awaited < before ? capture_again(frame, before - frame->awaited) : GRT_OK;
}
