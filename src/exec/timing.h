/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a context's runs: of each step, and of all of them on the device. */
#ifndef GRT_SRC_EXEC_TIMING_H
#define GRT_SRC_EXEC_TIMING_H

#include "src/exec/frame.h"

#include <graphrt/graphrt.h>

typedef struct grt_timing {
    bool steps; /* asked for */
    grt_step_time *times;
    double *begins; /* per step, on the host's clock */
    size_t n_times;
    void **events;   /* device sessions: one before each step and one behind the last */
    bool device;     /* times of the device are asked for ... */
    void *bounds[2]; /* ... by events around the steps */
    double device_ms, host_us;
} grt_timing;

void grt_timing_release(grt_timing *timing, grt_device *device);
void grt_timing_set_steps(grt_timing *timing, const grt_plan_body *body, bool on);

/* Run the frame step by step and note the time of each. */
grt_status grt_timing_run_steps(grt_timing *timing, grt_frame *frame);
/* Run the frame by `run` with events around it. */
grt_status grt_timing_run_between(grt_timing *timing, grt_frame *frame, grt_status (*run)(grt_frame *frame));

#endif
