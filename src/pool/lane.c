/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/lane.h"

#include "src/pool/clock.h"
#include "src/pool/processes.h"
#include "src/pool/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONTEXTS = 64, DEVICE_CONTEXTS = 3, MOST_ROWS = 65536 };

static grt_status check_options(const grt_pool_options *options)
{
    if (options->contexts < 0 || options->contexts > MOST_CONTEXTS || options->queue < 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "contexts is %d, must be from 0 to %d; queue is %d, must not be negative",
                        options->contexts, MOST_CONTEXTS, options->queue);
    if (options->max_batch < 0 || options->max_batch > MOST_ROWS || !(options->max_delay_ms >= 0))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "max_batch is %d, must be from 0 to %d; max_delay_ms is %g, must not be negative",
                        options->max_batch, MOST_ROWS, options->max_delay_ms);
    if (!(options->share >= 0) || isinf(options->share) || options->device_runs < 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "share is %g, must be a number from 0 on; device_runs is %d, must not be negative",
                        options->share, options->device_runs);
    return GRT_OK;
}

grt_status grt_lane_check(grt_pool *pool, const grt_pool_options *options)
{
    if (options->device_runs)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "device_runs is an option of grt_pool_create");
    pthread_mutex_lock(&pool->lock);
    const bool closing = pool->closing;
    pthread_mutex_unlock(&pool->lock);
    if (closing)
        return grt_fail(GRT_STATUS_CANCELLED, "the pool takes no more requests: it was shut down");
    return check_options(options);
}

static grt_status check_sessions(grt_session *const *sessions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!sessions[i] || sessions[i]->model != sessions[0]->model)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a pool's session %zu is %s", i,
                            sessions[i] ? "of another model than the first" : "NULL");
    return GRT_OK;
}

static size_t contexts_of(const grt_session *session, const grt_pool_options *options)
{
    return options->contexts ? (size_t)options->contexts : session->on_device ? DEVICE_CONTEXTS : 1;
}

static grt_pool_device *find_device(grt_pool *pool, const grt_device *device, const char *name)
{
    grt_pool_device *d = pool->devices;
    while (d && (d->device != device || (!device && strcmp(d->name, name) != 0)))
        d = d->next;
    return d;
}

static void set_places(grt_pool_device *d, size_t device_runs, size_t contexts)
{
    const size_t most = contexts > d->most ? contexts : d->most;
    d->most = device_runs ? device_runs : most;
    d->more = !device_runs && d->device && d->device->backend->traits.own_memory;
}

grt_status grt_lane_take_device(grt_pool *pool, const grt_device *device, const char *name, size_t contexts,
                                grt_pool_device **out_device)
{
    pthread_mutex_lock(&pool->lock);
    grt_pool_device *d = find_device(pool, device, name);
    if (!d && (d = calloc(1, sizeof *d))) {
        *d = (grt_pool_device){.next = pool->devices, .device = device};
        snprintf(d->name, sizeof d->name, "%s", name);
        pool->devices = d;
    }
    if (d)
        set_places(d, pool->device_runs, contexts);
    pthread_mutex_unlock(&pool->lock);
    *out_device = d;
    return d ? GRT_OK : grt_fail_memory(sizeof *d);
}

typedef struct lane_places {
    grt_model *model;
    size_t n;
    grt_session *const *sessions;
    grt_lane_processes *processes; /* in place of sessions */
    const grt_pool_options *options;
} lane_places;

static size_t contexts_at(const lane_places *p, size_t i)
{
    return p->sessions ? contexts_of(p->sessions[i], p->options) : p->processes->list[i].process->n;
}

static const grt_device *device_at(const lane_places *p, size_t i)
{
    return p->sessions ? p->sessions[i]->device : NULL;
}

static const char *name_at(const lane_places *p, size_t i)
{
    return p->sessions ? p->sessions[i]->name : p->processes->list[i].device;
}

static bool lends_at(const lane_places *p, size_t i)
{
    return p->sessions ? p->sessions[i]->on_device || p->sessions[i]->threads == 1
                       : p->processes->list[i].process->lends;
}

/* A device may be named more than once. */
static size_t contexts_beside(const lane_places *p, size_t index)
{
    size_t contexts = 0;
    for (size_t i = 0; i < p->n; i++)
        if (device_at(p, i) == device_at(p, index) && !strcmp(name_at(p, i), name_at(p, index)))
            contexts += contexts_at(p, i);
    return contexts;
}

static grt_status init_lane(grt_lane *lane, const lane_places *places)
{
    const grt_pool_options *options = places->options;
    size_t workers = 0;
    for (size_t i = 0; i < places->n; i++)
        workers += contexts_at(places, i);
    lane->model = grt_model_retain(places->model);
    lane->n_sessions = places->n;
    lane->share = options->share > 0 ? options->share : 1;
    lane->max_delay_ms = options->max_delay_ms;
    lane->sessions = calloc(places->n, sizeof *lane->sessions);
    lane->workers = calloc(workers, sizeof *lane->workers);
    if (!lane->sessions || !lane->workers)
        return grt_fail_memory(workers * sizeof *lane->workers);
    GRT_TRY(grt_batching_create(lane->model->plan, options->max_batch, options->padding, &lane->batching));
    const size_t most_rows = lane->batching.most_rows ? (size_t)lane->batching.most_rows : 1;
    lane->most_waiting = options->queue ? (size_t)options->queue : workers * most_rows;
    /* those whose session is lost wait again, whether there is room or not */
    GRT_TRY(grt_queue_reserve(&lane->queue, lane->most_waiting + workers * most_rows));
    for (size_t i = 0; i < places->n; i++)
        GRT_TRY(grt_queue_reserve(&lane->sessions[i].own, lane->most_waiting + 1));
    pthread_mutex_lock(&lane->pool->lock);
    grt_queue *deadlines = &lane->pool->deadlines;
    const grt_status status =
        grt_queue_reserve(deadlines, deadlines->capacity + lane->most_waiting + workers * most_rows);
    pthread_mutex_unlock(&lane->pool->lock);
    return status;
}

static grt_status start_workers(grt_lane *lane, const lane_places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        lane->sessions[i].lends = lends_at(places, i);
        GRT_TRY(grt_lane_take_device(lane->pool, device_at(places, i), name_at(places, i),
                                     contexts_beside(places, i), &lane->sessions[i].device));
        for (size_t k = 0; k < contexts_at(places, i); k++)
            GRT_TRY(grt_worker_start(
                &lane->workers[lane->n_workers++], lane, i, places->sessions ? places->sessions[i] : NULL,
                places->sessions ? NULL : &places->processes->list[i].process->channels[k]));
    }
    return places->processes ? grt_lane_processes_watch(places->processes, lane) : GRT_OK;
}

static grt_status list_lane(grt_pool *pool, grt_lane *lane, size_t *out_lane)
{
    pthread_mutex_lock(&pool->lock);
    grt_lane **grown = realloc(pool->lanes, (pool->n_lanes + 1) * sizeof(grt_lane *));
    if (grown) {
        pool->lanes = grown;
        *out_lane = lane->number = pool->n_lanes;
        pool->lanes[pool->n_lanes++] = lane;
    }
    pthread_mutex_unlock(&pool->lock);
    return grown ? GRT_OK : grt_fail_memory(0);
}

static grt_status add_lane(grt_pool *pool, const lane_places *places, size_t *out_lane)
{
    grt_lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        grt_lane_processes_release(places->processes);
        return grt_fail_memory(sizeof *lane);
    }
    lane->pool = pool;
    lane->processes = places->processes;
    grt_clock_cond_init(&lane->room);
    grt_status status = init_lane(lane, places);
    if (status == GRT_OK)
        status = start_workers(lane, places);
    if (status == GRT_OK)
        status = list_lane(pool, lane, out_lane);
    if (status != GRT_OK) {
        grt_lane_end(lane);
        grt_lane_release(lane);
        return status;
    }
    return GRT_OK;
}

grt_status grt_lane_add(grt_pool *pool, grt_session *const *sessions, size_t n,
                        const grt_pool_options *options, size_t *out_lane)
{
    GRT_TRY(check_options(options));
    GRT_TRY(check_sessions(sessions, n));
    const lane_places places = {
        .model = sessions[0]->model, .n = n, .sessions = sessions, .options = options};
    return add_lane(pool, &places, out_lane);
}

grt_status grt_lane_add_processes(grt_pool *pool, grt_model *model, grt_lane_processes *processes,
                                  const grt_pool_options *options, size_t *out_lane)
{
    const lane_places places = {
        .model = model, .n = processes->n, .processes = processes, .options = options};
    return add_lane(pool, &places, out_lane);
}

void grt_lane_end(grt_lane *lane)
{
    if (lane->processes)
        grt_lane_processes_stop(lane->processes);
    pthread_mutex_lock(&lane->pool->lock);
    lane->ending = true;
    for (size_t i = 0; i < lane->n_workers; i++)
        pthread_cond_signal(&lane->workers[i].wake);
    pthread_mutex_unlock(&lane->pool->lock);
    for (size_t i = 0; i < lane->n_workers; i++)
        grt_worker_join(&lane->workers[i]);
}

void grt_lane_release(grt_lane *lane)
{
    for (size_t i = 0; i < lane->n_workers; i++)
        grt_worker_release(&lane->workers[i]);
    grt_lane_processes_release(lane->processes);
    grt_batching_release(&lane->batching);
    grt_queue_release(&lane->queue);
    for (size_t i = 0; lane->sessions && i < lane->n_sessions; i++)
        grt_queue_release(&lane->sessions[i].own);
    pthread_cond_destroy(&lane->room);
    grt_model_release(lane->model);
    free(lane->sessions);
    free(lane->workers);
    free(lane);
}

grt_status grt_lane_find(grt_pool *pool, size_t index, grt_lane **out_lane)
{
    pthread_mutex_lock(&pool->lock);
    grt_lane *lane = index < pool->n_lanes ? pool->lanes[index] : NULL;
    pthread_mutex_unlock(&pool->lock);
    *out_lane = lane;
    return lane ? GRT_OK : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the pool has no lane %zu", index);
}
