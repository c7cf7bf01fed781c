/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/stop.h"

#include "src/base/structs.h"
#include "src/session/phases.h"

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "grt_context_cancel is called by signal handlers");

grt_status grt_stop_begin(grt_stop *stop, const grt_run_options *options)
{
    grt_run_options known = {0};
    GRT_TRY(grt_options_take(&known, sizeof known, options, "grt_run_options"));
    stop->deadline_ms = known.deadline_ms;
    stop->cancel = known.cancel;
    stop->user = known.user;
    stop->watched = known.deadline_ms != 0 || known.cancel; /* a deadline that is not a number has passed */
    stop->found = GRT_OK;
    atomic_store_explicit(&stop->state, GRT_STOP_RUNNING, memory_order_relaxed);
    return GRT_OK;
}

void grt_stop_end(grt_stop *stop)
{
    atomic_store_explicit(&stop->state, GRT_STOP_IDLE, memory_order_relaxed);
    stop->watched = false;
}

void grt_stop_cancel(grt_stop *stop)
{
    int running = GRT_STOP_RUNNING;
    atomic_compare_exchange_strong_explicit(&stop->state, &running, GRT_STOP_CANCELLED, memory_order_relaxed,
                                            memory_order_relaxed);
}

static bool stop_is_cancelled(grt_stop *stop)
{
    return atomic_load_explicit(&stop->state, memory_order_relaxed) == GRT_STOP_CANCELLED;
}

static bool is_late(const grt_stop *stop)
{
    return stop->deadline_ms != 0 && !(grt_now_ms() < stop->deadline_ms);
}

bool grt_stop_is_asked(grt_stop *stop)
{
    return stop_is_cancelled(stop) || is_late(stop);
}

static grt_status find_reason(grt_stop *stop)
{
    if (stop_is_cancelled(stop) || (stop->cancel && stop->cancel(stop->user)))
        return GRT_STATUS_CANCELLED;
    return is_late(stop) ? GRT_STATUS_DEADLINE_EXCEEDED : GRT_OK;
}

grt_status grt_stop_look(grt_stop *stop)
{
    if (stop->found == GRT_OK)
        stop->found = find_reason(stop);
    if (stop->found == GRT_OK)
        return GRT_OK;
    return grt_fail(stop->found, "%s",
                    stop->found == GRT_STATUS_CANCELLED ? "the run was cancelled"
                                                        : "the run was stopped at its deadline");
}
