/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool tells of itself. */
#include "src/base/structs.h"
#include "src/pool/caller.h"
#include "src/pool/lane.h"

/* With the lock. */
static grt_status replay_of_idle(const grt_lane *lane, size_t session, grt_replay_info *out_info)
{
    grt_status status = grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                 "grt_pool_get_replay: no idle context of session %zu has run", session);
    for (const grt_worker *w = lane->sessions[session].idle; w && status != GRT_OK; w = w->next_idle)
        if (w->context)
            status = grt_context_get_replay(w->context, out_info);
    return status;
}

/* Idle contexts stay as they are while the lock is held. A request is done before its context is idle. */
grt_status grt_pool_get_replay(grt_pool *pool, size_t session, grt_replay_info *out_info)
{
    grt_lane *lane;
    GRT_TRY(grt_caller_check(pool, "grt_pool_get_replay"));
    GRT_TRY(grt_lane_find(pool, 0, &lane));
    if (session >= lane->n_sessions)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_get_replay: lane 0 has no session %zu",
                        session);
    const bool may_wait =
        !grt_caller_is_called_back(pool); /* the callback's context may be the one to wait for */
    pthread_mutex_lock(&pool->lock);
    grt_status status = replay_of_idle(lane, session, out_info);
    pool->n_watchers++;
    while (status != GRT_OK && may_wait && lane->sessions[session].busy) {
        pthread_cond_wait(&pool->closed, &pool->lock);
        status = replay_of_idle(lane, session, out_info);
    }
    pool->n_watchers--;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

grt_status grt_pool_get_stats(grt_pool *pool, size_t lane, grt_pool_stats *out_stats)
{
    grt_lane *found;
    GRT_TRY(grt_caller_check(pool, "grt_pool_get_stats"));
    GRT_TRY(grt_lane_find(pool, lane, &found));
    pthread_mutex_lock(&pool->lock);
    grt_pool_stats stats = found->stats;
    stats.waiting = found->n_waiting;
    stats.running =
        stats.submitted - stats.succeeded - stats.failed - stats.cancelled - stats.late - stats.waiting;
    pthread_mutex_unlock(&pool->lock);
    return grt_info_give(out_stats, &stats, sizeof stats, "grt_pool_stats");
}

grt_status grt_pool_get_histogram(grt_pool *pool, size_t lane, grt_pool_phase phase,
                                  grt_histogram *out_histogram)
{
    grt_lane *found;
    grt_histogram report;
    GRT_TRY(grt_caller_check(pool, "grt_pool_get_histogram"));
    if (phase < GRT_POOL_QUEUE || phase > GRT_POOL_TOTAL)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_get_histogram: there is no phase %d",
                        (int)phase);
    GRT_TRY(grt_lane_find(pool, lane, &found));
    pthread_mutex_lock(&pool->lock);
    grt_times_report(&found->times[phase], &report);
    pthread_mutex_unlock(&pool->lock);
    return grt_info_give(out_histogram, &report, sizeof report, "grt_histogram");
}
