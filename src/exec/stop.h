/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping a run before its end: grt_context_cancel, the caller's function and the deadline of its options.
 * Looked at between steps, iterations and segments; what asks to stop is remembered until the run has ended.
 */
#ifndef GRT_SRC_EXEC_STOP_H
#define GRT_SRC_EXEC_STOP_H

#include "src/base/status.h"

#include <stdatomic.h>

typedef enum grt_stop_state {
    GRT_STOP_IDLE = 0, /* there is no run: nothing to cancel */
    GRT_STOP_RUNNING,
    GRT_STOP_CANCELLED,
} grt_stop_state;

typedef struct grt_stop {
    atomic_int state; /* lock-free: signal handlers change it */
    bool watched;     /* there is a deadline or a function */
    double deadline_ms;
    bool (*cancel)(void *user);
    void *user;
    grt_status found; /* why the run ends; OK: it goes on */
} grt_stop;

/* A run begins. options may be NULL. */
grt_status grt_stop_begin(grt_stop *stop, const grt_run_options *options);
void grt_stop_end(grt_stop *stop);
/* Any thread, and signal handlers. */
void grt_stop_cancel(grt_stop *stop);

/* CANCELLED or DEADLINE_EXCEEDED once something asks; on the running thread. */
grt_status grt_stop_look(grt_stop *stop);
/* The same question on other threads of the run's team, without the caller's function. */
bool grt_stop_is_asked(grt_stop *stop);

static inline grt_status grt_stop_check(grt_stop *stop)
{
    if (atomic_load_explicit(&stop->state, memory_order_relaxed) != GRT_STOP_CANCELLED && !stop->watched)
        return GRT_OK;
    return grt_stop_look(stop);
}

#endif
