/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h.
 *
 * A request is handed to a worker, of the session that has the fewest at work: a shared queue that threads
 * help themselves from would give two requests to one device while another is idle. */
#include "src/pool/schedule.h"

#include <math.h>

/* ---- the queue of a lane ---- */

static void add_waiting(grt_request *r)
{
    grt_lane *lane = r->lane;
    r->older = lane->newest;
    r->newer = NULL;
    *(r->older ? &r->older->newer : &lane->oldest) = r;
    lane->newest = r;
    lane->rows_waiting += r->rows;
    grt_queue_add(&lane->queue, &r->queued);
    if (r->queued.deadline_ms != 0)
        grt_queue_add(&lane->pool->deadlines, &r->queued);
}

void grt_schedule_add(grt_request *r)
{
    grt_lane *lane = r->lane;
    if (!lane->queue.n && !lane->running) /* what it did not use while it was idle is not saved up */
        lane->used = fmax(lane->used, lane->pool->used);
    r->queued.number = lane->pool->n_submitted++;
    add_waiting(r);
}

static void remove_waiting(grt_request *r)
{
    grt_lane *lane = r->lane;
    *(r->older ? &r->older->newer : &lane->oldest) = r->newer;
    *(r->newer ? &r->newer->older : &lane->newest) = r->older;
    lane->rows_waiting -= r->rows;
    grt_queue_remove(&lane->queue, &r->queued);
    grt_queue_remove(&lane->pool->deadlines, &r->queued);
    pthread_cond_signal(&lane->room);
}

static grt_request *first_waiting(const grt_lane *lane)
{
    return (grt_request *)grt_queue_first(&lane->queue);
}

/* ---- workers ---- */

static bool has_slot(const grt_lane_session *s)
{
    return !s->lost && !s->held && s->idle && s->device->running < s->device->most;
}

/* Of equals, the one whose turn it is. */
static grt_lane_session *least_busy(const grt_lane *lane)
{
    grt_lane_session *best = NULL;
    for (size_t i = 0; i < lane->n_sessions; i++) {
        grt_lane_session *s = &lane->sessions[(lane->turn + i) % lane->n_sessions];
        if (has_slot(s) && (!best || s->busy < best->busy))
            best = s;
    }
    return best;
}

static grt_worker *take_worker(grt_lane *lane, grt_lane_session *s)
{
    grt_worker *w = s->idle;
    s->idle = w->next_idle;
    s->busy++;
    s->device->running++;
    lane->turn = (size_t)(s - lane->sessions) + 1;
    lane->running++;
    lane->pool->used = lane->used;
    lane->used += lane->mean_ms / lane->share;
    return w;
}

void grt_schedule_become_idle(grt_worker *w, double ms)
{
    enum { MEMORY = 8 }; /* runs that the mean remembers, about */
    grt_lane *lane = w->lane;
    grt_lane_session *s = &lane->sessions[w->session];
    lane->used += (ms - lane->mean_ms) / lane->share; /* the mean was counted when it began */
    lane->mean_ms += (ms - lane->mean_ms) / MEMORY;
    lane->running--;
    s->busy--;
    s->device->running--;
    w->n_requests = 0;
    w->begun = w->lent = false;
    w->next_idle = s->idle;
    s->idle = w;
}

static void give(grt_worker *w, grt_request *r)
{
    r->state = GRT_REQUEST_AT_WORK;
    r->worker = w;
    w->first_rows[w->n_requests] = w->rows;
    w->requests[w->n_requests++] = r;
    w->rows += r->rows;
}

/* The first that waits, and those behind it that go into a batch with it. */
static void take_requests(grt_lane *lane, grt_worker *w)
{
    grt_request *first = first_waiting(lane), *r = first;
    w->n_requests = 0;
    w->rows = 0;
    do {
        remove_waiting(r);
        give(w, r);
        r = first_waiting(lane);
    } while (first->rows && r && r->rows && w->rows + r->rows <= lane->batching.most_rows &&
             grt_batching_fits(&lane->batching, first, r));
}

grt_worker *grt_schedule_lend(grt_lane *lane, grt_request *r)
{
    grt_lane_session *s = lane->queue.n || lane->batching.most_rows ? NULL : least_busy(lane);
    if (!s || !s->lends)
        return NULL;
    for (size_t i = 0; i < lane->pool->n_lanes; i++) /* its turn may be another lane's */
        if (lane->pool->lanes[i]->queue.n)
            return NULL;
    if (!lane->running)
        lane->used = fmax(lane->used, lane->pool->used);
    grt_worker *w = take_worker(lane, s);
    w->n_requests = 0;
    w->rows = 0;
    w->begun = w->lent = true;
    give(w, r);
    return w;
}

grt_worker *grt_schedule_overtake(grt_request *r)
{
    grt_worker *w = r->state == GRT_REQUEST_AT_WORK ? r->worker : NULL;
    if (!w || w->begun || w->n_requests != 1 || !w->lane->sessions[w->session].lends)
        return NULL;
    w->begun = w->lent = true;
    return w;
}

/* ---- whose turn it is ---- */

/* When the lane's next batch is made, if a worker is idle then; 0: now. */
static double batch_time(const grt_lane *lane)
{
    const grt_request *first = first_waiting(lane);
    const bool at_once = !first->rows || lane->max_delay_ms <= 0 || lane->pool->closing ||
                         lane->pool->n_draining || lane->queue.n >= lane->most_waiting ||
                         lane->rows_waiting >= lane->batching.most_rows;
    return at_once ? 0 : lane->oldest->submitted_ms + lane->max_delay_ms;
}

static bool is_better(const grt_lane *a, const grt_lane *b)
{
    const int32_t x = first_waiting(a)->queued.priority, y = first_waiting(b)->queued.priority;
    return x != y ? x > y : a->used < b->used;
}

/* *out_next gets the time of a batch that is not made yet, if that is earlier. */
static grt_lane *choose_lane(const grt_pool *pool, double now, double *out_next)
{
    grt_lane *best = NULL;
    for (size_t i = 0; i < pool->n_lanes; i++) {
        grt_lane *lane = pool->lanes[i];
        if (!lane->queue.n || !least_busy(lane))
            continue;
        const double at = batch_time(lane);
        if (at > now)
            *out_next = fmin(*out_next, at);
        else if (!best || is_better(lane, best))
            best = lane;
    }
    return best;
}

static bool has_delays(const grt_pool *pool)
{
    for (size_t i = 0; i < pool->n_lanes; i++)
        if (pool->lanes[i]->queue.n && pool->lanes[i]->max_delay_ms > 0)
            return true;
    return false;
}

/* The time of the next batch that has to wait. */
static double dispatch_requests(grt_pool *pool)
{
    const double now = has_delays(pool) ? grt_now_ms() : 0;
    double next = INFINITY;
    grt_lane *lane;
    while ((lane = choose_lane(pool, now, &next))) {
        grt_worker *w = take_worker(lane, least_busy(lane));
        take_requests(lane, w);
        pthread_cond_signal(&w->wake);
        next = INFINITY;
    }
    return next;
}

void grt_schedule_dispatch(grt_pool *pool)
{
    const double next = dispatch_requests(pool);
    const grt_request *first = (grt_request *)grt_queue_first(&pool->deadlines);
    grt_schedule_wake_keeper(pool, first ? fmin(next, first->queued.deadline_ms) : next);
}

/* ---- the keeper ---- */

void grt_schedule_wake_keeper(grt_pool *pool, double at_ms)
{
    if (!(at_ms < pool->keeper_until))
        return;
    pool->keeper_until = at_ms;
    pthread_cond_signal(&pool->keeper_wake);
}

void grt_schedule_leave(grt_request *r, grt_status verdict)
{
    grt_pool *pool = r->pool;
    if (r->state == GRT_REQUEST_WAITING)
        remove_waiting(r);
    else {
        grt_worker *w = r->worker;
        grt_queue_remove(&pool->deadlines, &r->queued);
        for (size_t i = 0; i < w->n_requests; i++)
            if (w->requests[i] == r)
                w->requests[i] = NULL;
        atomic_fetch_sub_explicit(&w->live, 1, memory_order_relaxed);
    }
    r->state = GRT_REQUEST_ENDING;
    r->verdict = verdict;
    r->next = pool->left;
    pool->left = r;
    grt_schedule_wake_keeper(pool, 0);
}

/* ---- sessions that are lost ---- */

bool grt_schedule_is_served(const grt_lane *lane)
{
    for (size_t i = 0; i < lane->n_sessions; i++)
        if (!lane->sessions[i].lost)
            return true;
    return false;
}

bool grt_schedule_go_elsewhere(grt_worker *w, grt_request **slot)
{
    grt_lane *lane = w->lane;
    grt_request *r = *slot;
    lane->sessions[w->session].lost = true;
    if (!grt_schedule_is_served(lane)) {
        while (lane->oldest)
            grt_schedule_leave(lane->oldest, GRT_STATUS_DEVICE);
        return false;
    }
    *slot = NULL;
    r->state = GRT_REQUEST_WAITING;
    r->worker = NULL;
    add_waiting(r); /* with the number that it had: it goes first among equals */
    if (atomic_load_explicit(&r->cancelled, memory_order_relaxed))
        grt_schedule_leave(r, GRT_STATUS_CANCELLED);
    return true;
}

double grt_schedule_look(grt_pool *pool)
{
    grt_request *r;
    const double now = pool->deadlines.n ? grt_now_ms() : 0;
    while ((r = (grt_request *)grt_queue_first(&pool->deadlines)) && r->queued.deadline_ms <= now)
        grt_schedule_leave(r, GRT_STATUS_DEADLINE_EXCEEDED);
    const double next = dispatch_requests(pool);
    return r ? fmin(next, r->queued.deadline_ms) : next;
}
