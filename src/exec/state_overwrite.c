/* SPDX-License-Identifier: Apache-2.0 */
/* See state_overwrite.h. The rule is that of the memory plan (src/plan/memory_plan.c) for values of the
 * arena: whoever writes the output first is behind everybody who reads the input, or reads it as the only one
 * and in place. */
#include "src/exec/state_overwrite.h"

#include <limits.h>

static int32_t storage_of(const grt_frame *frame, int32_t value)
{
    return frame->program->places[value].storage;
}

/* An output that is the input, or a view of it, is read when the run is over. */
static bool is_handed_out(const grt_frame *frame, int32_t storage)
{
    const grt_plan_body *body = frame->program->body;
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (storage_of(frame, body->outputs[i]) == storage)
            return true;
    return false;
}

static int32_t first_writer(const grt_frame *frame, int32_t storage)
{
    const grt_program *program = frame->program;
    int32_t first = INT32_MAX;
    for (int32_t i = program->sharing_start[storage]; i < program->sharing_start[storage + 1]; i++) {
        const int32_t maker = program->places[program->sharing[i]].maker;
        first = maker < first ? maker : first;
    }
    return first;
}

static int32_t count_reads(const grt_frame *frame, int32_t step, int32_t storage, int32_t *out_at)
{
    const grt_plan_step *s = &frame->program->body->steps[step];
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && storage_of(frame, s->in[i]) == storage) {
            *out_at = i;
            n++;
        }
    for (int32_t b = 0; b < s->n_bodies; b++) {
        const grt_plan_body *inner = &frame->program->plan->bodies[s->bodies[b]];
        for (int32_t i = 0; i < inner->n_captures; i++)
            if (storage_of(frame, inner->captures_outer[i]) == storage) {
                *out_at = -1;
                n++;
            }
    }
    return n;
}

static bool reads_in_place(const grt_frame *frame, const grt_instruction *ins, int32_t at, int32_t input)
{
    const grt_plan_step *step = ins->step;
    const grt_kernel_row *row = ins->call->row;
    return step->kind == GRT_STEP_KERNEL && row && !ins->host && at >= 0 && at < 8 && row->flags >> at & 1u &&
           grt_tensor_elements(&frame->values[step->in[at]].t) ==
               grt_tensor_elements(&frame->values[input].t) &&
           step->out[0] >= 0 &&
           grt_tensor_bytes(&frame->values[step->out[0]].t) == grt_tensor_bytes(&frame->values[input].t);
}

bool grt_frame_may_overwrite(const grt_frame *frame, int32_t input, int32_t output)
{
    const grt_program *program = frame->program;
    const int32_t in = program->body->inputs[input], out = program->body->outputs[output];
    if (!program->output_is_free[output] || !program->places[in].has_dims ||
        !grt_tensor_same_type(&frame->values[in].t, &frame->values[out].t) ||
        is_handed_out(frame, storage_of(frame, in)))
        return false;
    const int32_t first = first_writer(frame, storage_of(frame, out));
    for (int32_t s = 0; s < program->body->n_steps; s++) {
        int32_t at = -1;
        const grt_instruction *ins = grt_program_instruction(program, s);
        const int32_t reads = count_reads(frame, s, storage_of(frame, in), &at);
        if (!reads || !ins) /* a view, or computed already */
            continue;
        if (!ins->prepared || s > first) /* it may hand its input on, or is too late */
            return false;
        if (s == first && (reads != 1 || storage_of(frame, ins->step->out[0]) != storage_of(frame, out) ||
                           !reads_in_place(frame, ins, at, in)))
            return false;
    }
    return true;
}
