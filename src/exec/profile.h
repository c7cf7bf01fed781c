/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the caller what a run has done. */
#ifndef GRT_SRC_EXEC_PROFILE_H
#define GRT_SRC_EXEC_PROFILE_H

#include "src/exec/frame.h"
#include "src/exec/timing.h"

typedef struct grt_profile {
    grt_profile_options options;         /* event NULL: nobody asks, and nothing below is touched */
    double begin_ms;                     /* of the run ... */
    double prepare_ms[2], compute_ms[2]; /* ... and its parts; 0: it did not come so far */
} grt_profile;

static inline bool grt_profile_is_on(const grt_profile *profile)
{
    return profile->options.event != NULL;
}

void grt_profile_begin(grt_profile *profile);
/* The run is over; frame: that it ran, NULL if it did not come so far. */
void grt_profile_tell(const grt_profile *profile, const grt_timing *timing, const grt_frame *frame,
                      grt_status status);

#endif
