/* SPDX-License-Identifier: Apache-2.0 */
/* grt_pool_replace_session: a lane goes on with another session in the place of one, which may be lost. */
#include "src/pool/caller.h"
#include "src/pool/lane.h"
#include "src/pool/schedule.h"
#include "src/session/session.h"

#include <graphrt/faults.h>

#include <stdlib.h>

/* What a worker gets, and then what it had. */
typedef struct change {
    grt_worker *worker;
    grt_context *context;
    grt_batch batch;
} change;

static grt_status find_place(grt_pool *pool, size_t lane_index, size_t index, const grt_session *session,
                             grt_lane **out_lane)
{
    pthread_mutex_lock(&pool->lock);
    grt_lane *lane = lane_index < pool->n_lanes ? pool->lanes[lane_index] : NULL;
    const bool closing = pool->closing;
    pthread_mutex_unlock(&pool->lock);
    if (lane && lane->processes)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "grt_pool_replace_session: the lane has its sessions in processes "
                        "of their own, which replaces them itself");
    if (!lane || index >= lane->n_sessions || lane->model != session->model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_replace_session: %s",
                        !lane                       ? "there is no such lane"
                        : index >= lane->n_sessions ? "the lane has no such session"
                                                    : "the session is of another model than the lane");
    *out_lane = lane;
    return closing ? grt_fail(GRT_STATUS_CANCELLED, "the pool was shut down") : GRT_OK;
}

static grt_status make_changes(const grt_lane *lane, size_t index, grt_session *session, change *changes,
                               size_t *out_n)
{
    for (size_t i = 0; i < lane->n_workers; i++) {
        if (lane->workers[i].session != index)
            continue;
        change *c = &changes[(*out_n)++];
        c->worker = &lane->workers[i];
        GRT_TRY(grt_context_create(session, &c->context));
        if (lane->batching.most_rows)
            GRT_TRY(grt_batch_create(session, &c->batch));
    }
    return GRT_OK;
}

static void release_changes(change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        grt_batch_release(&changes[i].batch);
        grt_context_release(changes[i].context);
    }
    free(changes);
}

/* With the lock, when none of the workers is at work. */
static void swap_workers(change *changes, size_t n, grt_session *session)
{
    for (size_t i = 0; i < n; i++) {
        grt_worker *w = changes[i].worker;
        const change had = {.worker = w, .context = w->context, .batch = w->batch};
        w->context = changes[i].context;
        w->batch = changes[i].batch;
        w->on = session;
        w->name = session->name;
        changes[i] = had;
    }
}

static void put_in_place(grt_lane *lane, size_t index, grt_session *session, grt_pool_device *device,
                         change *changes, size_t n)
{
    grt_pool *pool = lane->pool;
    grt_lane_session *s = &lane->sessions[index];
    pthread_mutex_lock(&pool->lock);
    s->held = true;
    pool->n_watchers++;
    while (s->busy)
        pthread_cond_wait(&pool->closed, &pool->lock);
    pool->n_watchers--;
    swap_workers(changes, n, session);
    s->device = device;
    s->lends = session->on_device || session->threads == 1;
    s->held = s->lost = false;
    grt_schedule_find_sessions(lane);
    grt_schedule_dispatch(pool, grt_now_ms());
    pthread_mutex_unlock(&pool->lock);
}

grt_status grt_pool_replace_session(grt_pool *pool, size_t lane_index, size_t index, grt_session *session)
{
    grt_lane *lane;
    grt_pool_device *device;
    size_t n = 0;
    GRT_TRY(grt_caller_check_may_wait(pool, "grt_pool_replace_session"));
    if (!session)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_replace_session: session is NULL");
    GRT_TRY(find_place(pool, lane_index, index, session, &lane));
    GRT_TRY(grt_session_check(session));
    change *changes = calloc(lane->n_workers, sizeof *changes);
    if (!changes)
        return grt_fail_memory(lane->n_workers * sizeof *changes);
    grt_status status = make_changes(lane, index, session, changes, &n);
    if (status == GRT_OK)
        status = grt_lane_take_device(pool, session->device, session->name, n, &device);
    if (status == GRT_OK)
        put_in_place(lane, index, session, device, changes, n);
    release_changes(changes, n);
    return status;
}
