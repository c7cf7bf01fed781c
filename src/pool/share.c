/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/share.h"

#include <math.h>

/* ---- what is used ---- */

/* A worker that was at work on the device all the time would have had so much of it. */
static void count_until(grt_pool_device *d, double now_ms)
{
    if (now_ms <= d->counted_ms) /* threads read the clock before they have the lock */
        return;
    if (d->running)
        d->each_ms += (now_ms - d->counted_ms) / (double)d->running;
    d->counted_ms = now_ms;
}

void grt_share_join(grt_lane *lane)
{
    lane->used = fmax(lane->used, lane->pool->used);
}

void grt_share_begin(grt_worker *w, double now_ms)
{
    grt_lane *lane = w->lane;
    grt_pool_device *d = lane->sessions[w->session].device;
    count_until(d, now_ms);
    w->each_ms = d->each_ms;
    d->running++;
    lane->running++;
    lane->pool->used = lane->used;
    lane->used += lane->mean_ms / lane->share;
}

void grt_share_end(grt_worker *w, double now_ms)
{
    enum { MEMORY = 8 }; /* runs that the mean remembers, about */
    grt_lane *lane = w->lane;
    grt_pool_device *d = lane->sessions[w->session].device;
    count_until(d, now_ms);
    const double off = d->each_ms - w->each_ms - lane->mean_ms; /* the mean was counted when it began */
    lane->used += off / lane->share;
    lane->mean_ms += off / MEMORY;
    d->running--;
    lane->running--;
}

/* ---- one more ---- */

static bool is_on_device(const grt_lane *lane, const grt_pool_device *d)
{
    for (size_t i = 0; i < lane->n_sessions; i++)
        if (lane->sessions[i].device == d)
            return true;
    return false;
}

static bool has_higher_at_work(const grt_lane *lane, const grt_pool_device *d, int32_t priority)
{
    for (size_t i = 0; i < lane->n_workers; i++) {
        const grt_worker *w = &lane->workers[i];
        if (w->n_requests && w->priority > priority && lane->sessions[w->session].device == d)
            return true;
    }
    return false;
}

static bool has_higher_waiting(const grt_lane *lane, int32_t priority)
{
    const grt_queued *first = grt_queue_first(&lane->queue);
    if (first && first->priority > priority)
        return true;
    for (size_t i = 0; lane->n_own && i < lane->n_sessions; i++) {
        first = grt_queue_first(&lane->sessions[i].own);
        if (first && first->priority > priority)
            return true;
    }
    return false;
}

static bool goes_before(const grt_lane *other, const grt_request *r, const grt_pool_device *d)
{
    const int32_t priority = r->queued.priority;
    const bool has_less =
        other != r->lane && (other->running || other->n_waiting) && other->used < r->lane->used;
    return has_less || has_higher_waiting(other, priority) || has_higher_at_work(other, d, priority);
}

bool grt_share_has_place(const grt_pool_device *d, const grt_request *r)
{
    if (d->running < d->most)
        return true;
    if (d->running >= d->most + d->more)
        return false;
    const grt_pool *pool = r->lane->pool;
    for (size_t i = 0; i < pool->n_lanes; i++)
        if (is_on_device(pool->lanes[i], d) && goes_before(pool->lanes[i], r, d))
            return false;
    return true;
}
