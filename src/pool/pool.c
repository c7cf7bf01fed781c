/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: life, and the end of what they do. */
#include "src/pool/parts.h"

#include "src/base/forked.h"
#include "src/base/log.h"
#include "src/base/structs.h"
#include "src/base/uncancelled.h"
#include "src/pool/answer.h"
#include "src/pool/caller.h"
#include "src/pool/clock.h"
#include "src/pool/keeper.h"
#include "src/pool/lane.h"
#include "src/pool/remote.h"
#include "src/pool/schedule.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- life ---- */

static grt_pool *make_pool(void)
{
    grt_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->process = grt_forked_number();
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

grt_status grt_pool_add(grt_pool *pool, grt_session *const *sessions, size_t n,
                        const grt_pool_options *options, size_t *out_lane)
{
    grt_pool_options used = {0};
    GRT_TRY(grt_caller_check(pool, "grt_pool_add"));
    if (!sessions || !n || !out_lane)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_add: sessions or out_lane is NULL, or n is 0");
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

/* A child of the process that made it has no threads to end, and locks that nobody gives back. */
static bool may_be_released(const grt_pool *pool)
{
    if (!pool || grt_forked_since(pool->process))
        return false;
    if (grt_caller_is_called_back(pool))
        GRT_LOG(ERROR, "run",
                "grt_pool_release was called in a callback of the pool, and does nothing there");
    return !grt_caller_is_called_back(pool);
}

static void release_pool(grt_pool *pool)
{
    if (grt_pool_shutdown(pool, 0) == GRT_OK) /* always, without a deadline */
        end_threads(pool);
    for (size_t i = 0; i < pool->n_lanes; i++)
        grt_lane_end(pool->lanes[i]);
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

void grt_pool_release(grt_pool *pool)
{
    if (!may_be_released(pool))
        return;
    const int before = grt_uncancelled_begin();
    release_pool(pool);
    grt_uncancelled_end(before);
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
    GRT_TRY(grt_caller_check_may_wait(pool, "grt_pool_drain"));
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
    if (!pool || grt_forked_since(pool->process))
        return;
    pthread_mutex_lock(&pool->lock);
    cancel_all(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* A request that is not done has its pool. */
void grt_request_cancel(grt_request *request)
{
    if (!request || grt_forked_since(request->process))
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
    GRT_TRY(grt_caller_check_may_wait(pool, "grt_pool_shutdown"));
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
