/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/answer.h"

#include "src/base/exit_guard.h"
#include "src/base/uncancelled.h"
#include "src/pool/caller.h"
#include "src/pool/chain.h"
#include "src/pool/schedule.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void answer_count(grt_lane *lane, const grt_request *r, grt_status status, double ended_ms)
{
    grt_pool_stats *stats = &lane->stats;
    if (status == GRT_STATUS_CANCELLED)
        stats->cancelled++;
    else if (status == GRT_STATUS_DEADLINE_EXCEEDED)
        stats->late++;
    else if (status != GRT_OK)
        stats->failed++;
    else {
        stats->succeeded++;
        grt_times_add(&lane->times[GRT_POOL_QUEUE], r->info.queued_ms);
        grt_times_add(&lane->times[GRT_POOL_COPY_IN], r->info.copy_in_ms);
        grt_times_add(&lane->times[GRT_POOL_RUN], r->info.run_ms);
        grt_times_add(&lane->times[GRT_POOL_COPY_OUT], r->info.copy_out_ms);
        grt_times_add(&lane->times[GRT_POOL_TOTAL], ended_ms - r->submitted_ms);
    }
}

/* Readable as long as the list has something: one is written with the first, and read with the last. */
static void answer_collect(grt_pool *pool, grt_request *r)
{
    r->next = NULL;
    if (!pool->first_done && pool->fd >= 0)
        (void)eventfd_write(pool->fd, 1);
    *pool->last_done = r;
    pool->last_done = &r->next;
}

/* With the lock. The next of its chain is queued, for whoever hands out next. */
static void answer_leave_chain(grt_request *r)
{
    grt_request *next = grt_chain_leave(r);
    if (next)
        grt_schedule_follow(next);
}

void grt_answer(grt_request *r, grt_status status, grt_request **slot)
{
    grt_pool *pool = r->pool;
    void (*const callback)(void *user, grt_request *request) = r->callback;
    const bool collected = r->collect, chained = r->with && callback;
    const double ended_ms = grt_now_ms();
    pthread_mutex_lock(&pool->lock);
    r->stage = GRT_REQUEST_ENDING;
    grt_queue_remove(&pool->deadlines, &r->queued);
    if (slot)
        *slot = NULL;
    answer_count(r->lane, r, status, ended_ms);
    if (r->with)
        grt_chain_finish(r);
    if (r->with && !callback)
        answer_leave_chain(r);
    pthread_mutex_unlock(&pool->lock);
    if (r->span.number)
        grt_span_end_request(r->span, r->lane->number, r->submitted_ms, ended_ms, status);
    grt_request_finish(r, status);
    if (callback)
        grt_caller_call_back(pool, r, callback);
    if (chained || collected)
        pthread_mutex_lock(&pool->lock);
    if (chained)
        answer_leave_chain(r);
    if (collected)
        answer_collect(pool, r);
    if (chained || collected)
        pthread_mutex_unlock(&pool->lock);
    if (!collected)
        grt_request_let_go(r);
}

void grt_answer_close(grt_pool *pool, size_t n)
{
    pool->open -= n;
    grt_exit_guard_promise(-(long)n);
    if (pool->n_watchers)
        pthread_cond_broadcast(&pool->closed);
}

static grt_status open_fd(grt_pool *pool)
{
    if (pool->fd >= 0)
        return GRT_OK;
    pool->fd = eventfd(pool->first_done ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    return pool->fd >= 0 ? GRT_OK : grt_fail(GRT_STATUS_UNSUPPORTED, "an eventfd cannot be made");
}

grt_status grt_pool_get_fd(grt_pool *pool, int *out_fd)
{
    GRT_TRY(grt_caller_check(pool, "grt_pool_get_fd"));
    if (!out_fd)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_get_fd: out_fd is NULL");
    pthread_mutex_lock(&pool->lock);
    const grt_status status = open_fd(pool);
    if (status == GRT_OK)
        *out_fd = pool->fd;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static grt_request *take_done(grt_pool *pool)
{
    grt_request *r = pool->first_done;
    if (!r)
        return NULL;
    pool->first_done = r->next;
    if (pool->first_done)
        return r;
    pool->last_done = &pool->first_done;
    eventfd_t seen;
    if (pool->fd >= 0)
        (void)eventfd_read(pool->fd, &seen);
    return r;
}

grt_status grt_pool_take_done(grt_pool *pool, grt_request **out_request)
{
    GRT_TRY(grt_caller_check(pool, "grt_pool_take_done"));
    if (!out_request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_take_done: out_request is NULL");
    const int before = grt_uncancelled_begin();
    pthread_mutex_lock(&pool->lock);
    grt_request *r = take_done(pool);
    pthread_mutex_unlock(&pool->lock);
    grt_uncancelled_end(before);
    if (!r)
        return grt_fail(GRT_STATUS_BUSY, "no request is done that was not taken");
    *out_request = r;
    grt_request_let_go(r); /* the caller has it, too */
    return GRT_OK;
}
