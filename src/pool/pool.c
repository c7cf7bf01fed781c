/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: life, and what callers do with them. */
#include "src/pool/parts.h"

#include "src/base/structs.h"
#include "src/pool/chain.h"
#include "src/pool/clock.h"
#include "src/pool/keeper.h"
#include "src/pool/lane.h"
#include "src/pool/remote.h"
#include "src/pool/schedule.h"
#include "src/pool/worker.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- life ---- */

static grt_pool *make_pool(void)
{
    grt_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    grt_clock_cond_init(&pool->closed);
    pool->deadlines.order = GRT_QUEUE_BY_DEADLINE;
    pool->last_done = &pool->first_done;
    pool->fd = -1;
    return pool;
}

static grt_status start_pool(grt_pool *pool, grt_session *const *sessions, size_t n,
                             const grt_pool_options *options)
{
    size_t lane;
    GRT_TRY(grt_request_store_create(&pool->store));
    pool->device_runs = options->device_runs > 0 ? (size_t)options->device_runs : 0;
    GRT_TRY(grt_keeper_start(pool));
    return n ? grt_lane_add(pool, sessions, n, options, &lane) : GRT_OK;
}

grt_status grt_pool_create(grt_session *const *sessions, size_t n, const grt_pool_options *options,
                           grt_pool **out_pool)
{
    grt_pool_options used = {0};
    if (!sessions != !n || !out_pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_create: out_pool is NULL, or only one of sessions and n is 0");
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_pool_options"));
    grt_pool *pool = make_pool();
    if (!pool)
        return grt_fail_memory(sizeof *pool);
    const grt_status status = start_pool(pool, sessions, n, &used);
    if (status != GRT_OK) {
        grt_pool_release(pool);
        return status;
    }
    *out_pool = pool;
    return GRT_OK;
}

static grt_status fail_closing(void)
{
    return grt_fail(GRT_STATUS_CANCELLED, "the pool takes no more requests: it was shut down");
}

grt_status grt_pool_add(grt_pool *pool, grt_session *const *sessions, size_t n,
                        const grt_pool_options *options, size_t *out_lane)
{
    grt_pool_options used = {0};
    if (!pool || !sessions || !n || !out_lane)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_add: pool, sessions or out_lane is NULL, or n is 0");
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_pool_options"));
    GRT_TRY(grt_lane_check(pool, &used));
    return grt_lane_add(pool, sessions, n, &used, out_lane);
}

/* What was collected by nobody is held by its submitter only. */
static void let_go_collected(grt_pool *pool)
{
    for (grt_request *r = pool->first_done, *next; r; r = next) {
        next = r->next;
        grt_request_let_go(r);
    }
}

static void end_threads(grt_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    if (pool->keeper_started)
        pthread_cond_signal(&pool->keeper_wake);
    pthread_mutex_unlock(&pool->lock);
    if (pool->keeper_started)
        grt_keeper_join(pool);
}

void grt_pool_release(grt_pool *pool)
{
    if (!pool)
        return;
    if (grt_pool_shutdown(pool, 0) == GRT_OK) /* always, without a deadline */
        end_threads(pool);
    for (size_t i = 0; i < pool->n_lanes; i++)
        grt_lane_release(pool->lanes[i]);
    let_go_collected(pool);
    for (grt_pool_device *d = pool->devices, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    if (pool->fd >= 0)
        close(pool->fd);
    grt_queue_release(&pool->deadlines);
    grt_request_store_release(pool->store);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->closed);
    free(pool->lanes);
    free(pool);
}

/* ---- the end of requests ---- */

/* With the lock. False: some are still open at the deadline. */
static bool wait_until_closed(grt_pool *pool, double deadline_ms)
{
    bool goes_on = true;
    pool->n_watchers++;
    pool->n_draining++;
    grt_schedule_dispatch(pool, grt_now_ms());
    while (pool->open && goes_on)
        goes_on = grt_clock_cond_wait(&pool->closed, &pool->lock, deadline_ms);
    pool->n_watchers--;
    pool->n_draining--;
    return !pool->open;
}

grt_status grt_pool_drain(grt_pool *pool, double deadline_ms)
{
    if (!pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_drain: the pool is NULL");
    pthread_mutex_lock(&pool->lock);
    const bool closed = wait_until_closed(pool, deadline_ms);
    const size_t open = pool->open;
    pthread_mutex_unlock(&pool->lock);
    return closed ? GRT_OK : grt_fail(GRT_STATUS_BUSY, "%zu requests of the pool are not done yet", open);
}

/* With the lock. */
static void cancel_one(grt_request *r)
{
    if (r->stage == GRT_REQUEST_AT_WORK) {
        atomic_store(&r->cancelled, true);
        if (r->worker->n_requests == 1) /* those of a batch have to be ended one by one */
            grt_remote_cancel(r->worker);
    } else if (r->stage != GRT_REQUEST_ENDING)
        grt_schedule_leave(r, GRT_STATUS_CANCELLED);
}

static void cancel_worker(grt_worker *w)
{
    for (size_t k = 0; k < w->n_requests; k++)
        if (w->requests[k])
            cancel_one(w->requests[k]);
}

static void cancel_all(grt_pool *pool)
{
    for (size_t i = 0; i < pool->n_lanes; i++) {
        grt_lane *lane = pool->lanes[i];
        while (lane->oldest)
            cancel_one(lane->oldest);
        for (size_t k = 0; k < lane->n_workers; k++)
            cancel_worker(&lane->workers[k]);
    }
}

void grt_pool_cancel(grt_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    cancel_all(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* A request that is not done has its pool. */
void grt_request_cancel(grt_request *request)
{
    if (!request)
        return;
    pthread_mutex_lock(&request->lock);
    if (!request->done) {
        pthread_mutex_lock(&request->pool->lock);
        cancel_one(request);
        pthread_mutex_unlock(&request->pool->lock);
    }
    pthread_mutex_unlock(&request->lock);
}

grt_status grt_pool_shutdown(grt_pool *pool, double deadline_ms)
{
    if (!pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_shutdown: the pool is NULL");
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    for (size_t i = 0; i < pool->n_lanes; i++) /* who waits for room */
        pthread_cond_broadcast(&pool->lanes[i]->room);
    const bool closed = wait_until_closed(pool, deadline_ms);
    if (!closed) {
        cancel_all(pool);
        (void)wait_until_closed(pool, 0);
    }
    pthread_mutex_unlock(&pool->lock);
    return closed ? GRT_OK
                  : grt_fail(GRT_STATUS_DEADLINE_EXCEEDED,
                             "requests were cancelled that were not done when the pool was to be shut down");
}

/* ---- waiting ---- */

/* The thread that was woken for it has not come yet: who waits for it is quicker. */
static grt_worker *overtake_worker(grt_request *request)
{
    grt_worker *w = NULL;
    pthread_mutex_lock(&request->lock);
    if (!request->done) {
        pthread_mutex_lock(&request->pool->lock);
        w = grt_schedule_overtake(request);
        pthread_mutex_unlock(&request->pool->lock);
    }
    pthread_mutex_unlock(&request->lock);
    return w;
}

grt_status grt_request_wait(grt_request *request)
{
    if (!request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_request_wait: the request is NULL");
    grt_worker *w = overtake_worker(request);
    if (w)
        grt_worker_serve(w);
    return grt_request_await(request);
}

/* ---- submitting ---- */

static grt_status find_lane(grt_pool *pool, size_t index, grt_lane **out_lane)
{
    pthread_mutex_lock(&pool->lock);
    grt_lane *lane = index < pool->n_lanes ? pool->lanes[index] : NULL;
    pthread_mutex_unlock(&pool->lock);
    *out_lane = lane;
    return lane ? GRT_OK : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the pool has no lane %zu", index);
}

static grt_status pool_make_request(grt_pool *pool, const grt_submission *s, grt_request **out_request)
{
    grt_lane *lane;
    GRT_TRY(find_lane(pool, s->lane, &lane));
    const grt_plan_body *body = &lane->model->plan->bodies[0];
    if (s->n_inputs != (size_t)body->n_inputs || (s->n_inputs && !s->inputs && !s->values))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a request has %zu inputs, the model %d", s->n_inputs,
                        body->n_inputs);
    if (s->state && lane->processes)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "lane %zu has its sessions in processes of their own, where there is no state",
                        s->lane);
    if (s->n_outputs > (size_t)body->n_outputs || (s->n_outputs && !s->outputs))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a request has %zu outputs, the model %d", s->n_outputs,
                        body->n_outputs);
    GRT_TRY(grt_request_create(pool->store, s, (size_t)body->n_outputs, out_request));
    grt_request *r = *out_request;
    r->pool = pool;
    r->lane = lane;
    r->submitted_ms = grt_now_ms();
    r->span = grt_spans_are_on() ? grt_span_begin_request(lane->number) : (grt_span_request){0};
    r->rows = r->with ? 0 : grt_batching_rows(&lane->batching, r);
    if (isnan(r->queued.deadline_ms))
        r->queued.deadline_ms = 1; /* long over */
    return GRT_OK;
}

/* With the lock: room in the lane's queue. */
static grt_status wait_for_room(const grt_request *r, bool wait, double *now_ms)
{
    grt_lane *lane = r->lane;
    while (!lane->pool->closing && lane->n_waiting >= lane->most_waiting) {
        if (!wait) {
            lane->stats.refused++;
            return grt_fail(GRT_STATUS_BUSY, "%zu requests wait already, and the queue has no room for more",
                            lane->n_waiting);
        }
        if (!grt_clock_cond_wait(&lane->room, &lane->pool->lock, r->queued.deadline_ms))
            return grt_fail(GRT_STATUS_DEADLINE_EXCEEDED,
                            "there was no room in the queue until the deadline");
        *now_ms = grt_now_ms();
    }
    if (!lane->pool->closing && !grt_schedule_is_served(lane))
        return grt_fail(GRT_STATUS_DEVICE, "the devices of all sessions of the lane have failed; replace one "
                                           "(grt_pool_replace_session)");
    return lane->pool->closing ? fail_closing() : GRT_OK;
}

static void drop_request(grt_request *r, grt_status status)
{
    if (r->span.number)
        grt_span_end_request(r->span, r->lane->number, r->submitted_ms, grt_now_ms(), status);
    grt_request_let_go(r);
    grt_request_let_go(r);
}

static grt_status enqueue_request(grt_request *r, bool wait)
{
    grt_pool *pool = r->pool;
    double now_ms = r->submitted_ms;
    pthread_mutex_lock(&pool->lock);
    grt_status status = wait_for_room(r, wait, &now_ms);
    if (status == GRT_OK && r->with)
        status = grt_chain_join(r);
    if (status == GRT_OK) {
        pool->open++;
        r->lane->stats.submitted++;
        grt_schedule_add(r);
        grt_schedule_dispatch(pool, now_ms);
    }
    pthread_mutex_unlock(&pool->lock);
    if (status != GRT_OK)
        drop_request(r, status);
    return status;
}

static grt_status submit_request(grt_pool *pool, const grt_submission *submission, const char *function,
                                 bool wait, grt_request **out_request)
{
    grt_submission s = {0};
    grt_request *r;
    if (!pool || !submission)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: %s is NULL", function,
                        pool ? "submission" : "pool");
    GRT_TRY(grt_options_take(&s, sizeof s, submission, "grt_submission"));
    if (!out_request && !s.done)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: out_request is NULL, and there is no callback that would get the request",
                        function);
    GRT_TRY(pool_make_request(pool, &s, &r));
    grt_request *before = out_request ? *out_request : NULL;
    if (out_request)
        *out_request = r; /* the callback may be quick */
    const grt_status status = enqueue_request(r, wait);
    if (status != GRT_OK && out_request)
        *out_request = before;
    return status;
}

grt_status grt_pool_submit_with(grt_pool *pool, const grt_submission *submission, grt_request **out_request)
{
    return submit_request(pool, submission, "grt_pool_submit_with", true, out_request);
}

grt_status grt_pool_try_submit(grt_pool *pool, const grt_submission *submission, grt_request **out_request)
{
    return submit_request(pool, submission, "grt_pool_try_submit", false, out_request);
}

grt_status grt_pool_submit(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs,
                           const grt_tensor *outputs, size_t n_outputs, grt_request **out_request)
{
    const grt_submission s = {.struct_size = sizeof s,
                              .inputs = inputs,
                              .outputs = outputs,
                              .n_inputs = n_inputs,
                              .n_outputs = n_outputs};
    return submit_request(pool, &s, "grt_pool_submit", true, out_request);
}

grt_status grt_pool_submit_values(grt_pool *pool, const grt_value *const *inputs, size_t n_inputs,
                                  grt_request **out_request)
{
    static const grt_value *const none[1];
    const grt_submission s = {
        .struct_size = sizeof s, .values = n_inputs ? inputs : none, .n_inputs = n_inputs};
    return submit_request(pool, &s, "grt_pool_submit_values", true, out_request);
}

/* A free context is served by the caller: waking a thread and being woken takes longer than many a run. */
static grt_worker *borrow_worker(grt_pool *pool, grt_request *r)
{
    pthread_mutex_lock(&pool->lock);
    grt_worker *w = pool->closing ? NULL : grt_schedule_lend(r);
    if (w) {
        pool->open++;
        r->lane->stats.submitted++;
    }
    pthread_mutex_unlock(&pool->lock);
    return w;
}

grt_status grt_pool_run(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs, const grt_tensor *outputs,
                        size_t n_outputs)
{
    const grt_submission s = {.struct_size = sizeof s,
                              .inputs = inputs,
                              .outputs = outputs,
                              .n_inputs = n_inputs,
                              .n_outputs = n_outputs};
    grt_request *r;
    if (!pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_run: the pool is NULL");
    GRT_TRY(pool_make_request(pool, &s, &r));
    grt_worker *w = borrow_worker(pool, r);
    if (w)
        grt_worker_serve(w);
    else
        GRT_TRY(enqueue_request(r, true));
    const grt_status status = grt_request_await(r);
    grt_request_release(r);
    return status;
}

/* ---- reports ---- */

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
    if (!pool || !pool->n_lanes || session >= pool->lanes[0]->n_sessions)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_get_replay: the pool is NULL, or has no session %zu", session);
    pthread_mutex_lock(&pool->lock);
    const grt_lane *lane = pool->lanes[0];
    grt_status status = replay_of_idle(lane, session, out_info);
    pool->n_watchers++;
    while (status != GRT_OK && lane->sessions[session].busy) {
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
    if (!pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_get_stats: the pool is NULL");
    GRT_TRY(find_lane(pool, lane, &found));
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
    if (!pool || phase < GRT_POOL_QUEUE || phase > GRT_POOL_TOTAL)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_get_histogram: the pool is NULL, or there is no phase %d", (int)phase);
    GRT_TRY(find_lane(pool, lane, &found));
    pthread_mutex_lock(&pool->lock);
    grt_times_report(&found->times[phase], &report);
    pthread_mutex_unlock(&pool->lock);
    return grt_info_give(out_histogram, &report, sizeof report, "grt_histogram");
}
