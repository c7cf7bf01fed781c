/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/profile.h"

#include "src/session/phases.h"

void grt_profile_begin(grt_profile *profile)
{
    profile->begin_ms = grt_now_ms();
    profile->prepare_ms[0] = profile->prepare_ms[1] = 0;
    profile->compute_ms[0] = profile->compute_ms[1] = 0;
}

static void profile_tell(const grt_profile *profile, grt_profile_event event)
{
    event.struct_size = sizeof event;
    profile->options.event(profile->options.user, &event);
}

static void tell_part(const grt_profile *profile, grt_profile_kind kind, const double ms[2])
{
    if (ms[1] > 0)
        profile_tell(profile,
                     (grt_profile_event){
                         .kind = kind, .step = -1, .op = "", .name = "", .begin_ms = ms[0], .end_ms = ms[1]});
}

/* A run that was stopped has not done the instruction that it stands at, and has not read the device's times.
 */
static void tell_steps(const grt_profile *profile, const grt_timing *timing, const grt_frame *frame,
                       bool done)
{
    const grt_program *program = frame->program;
    const bool on_device = timing->events != NULL;
    double at = profile->compute_ms[0];
    for (int32_t i = 0; i < (done ? program->n_instructions : on_device ? 0 : frame->at); i++) {
        const grt_instruction *ins = &program->instructions[i];
        const double ms = timing->times[ins->index].ms, begin = on_device ? at : timing->begins[ins->index];
        profile_tell(profile, (grt_profile_event){.kind = GRT_PROFILE_STEP,
                                                  .step = ins->index,
                                                  .op = ins->step->desc.op,
                                                  .name = ins->step->desc.name,
                                                  .begin_ms = begin,
                                                  .end_ms = begin + ms,
                                                  .on_device = on_device});
        at += ms;
    }
}

void grt_profile_tell(const grt_profile *profile, const grt_timing *timing, const grt_frame *frame,
                      grt_status status)
{
    profile_tell(profile, (grt_profile_event){.kind = GRT_PROFILE_RUN,
                                              .step = -1,
                                              .op = "",
                                              .name = "",
                                              .begin_ms = profile->begin_ms,
                                              .end_ms = grt_now_ms(),
                                              .status = status});
    tell_part(profile, GRT_PROFILE_PREPARE, profile->prepare_ms);
    tell_part(profile, GRT_PROFILE_COMPUTE, profile->compute_ms);
    if (frame && timing->steps && profile->options.steps && profile->compute_ms[1] > 0)
        tell_steps(profile, timing, frame, status == GRT_OK);
}
