/* SPDX-License-Identifier: Apache-2.0 */
/* When each phase of a load began and ended. */
#ifndef GRT_SRC_SESSION_PHASES_H
#define GRT_SRC_SESSION_PHASES_H

#include "src/base/clock.h"
#include "src/base/status.h"

enum { GRT_MAX_PHASES = 16 };

typedef struct grt_phases {
    double start_ms;
    size_t n;
    grt_phase list[GRT_MAX_PHASES];
} grt_phases;

void grt_phases_start(grt_phases *phases);
/* End the phase that is open, if any, and begin another; name NULL only ends. `name` must be a literal. */
void grt_phases_next(grt_phases *phases, const char *name);

/* One that went on beside the others. */
void grt_phases_add(grt_phases *phases, const grt_phase *phase);

#endif
