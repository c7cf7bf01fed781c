/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: contexts with a thread each, fed from one bounded queue.
 *
 * A request is handed to a thread that waits for one, of the session that has the fewest at work: a shared
 * queue that threads help themselves from would give two requests to one device while another is idle. */
#include "src/pool/request.h"

#include "src/base/structs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONTEXTS = 64, DEVICE_CONTEXTS = 3 };

typedef struct worker {
    grt_pool *pool;
    size_t session;
    grt_context *context;
    pthread_t thread;
    bool started;
    struct worker *next_idle; /* of the session's */
    grt_request *request;     /* to run; NULL: none yet */
    pthread_cond_t wake;
} worker;

typedef struct pool_session {
    worker *idle;
    size_t busy;
} pool_session;

struct grt_pool {
    size_t n_sessions, n_workers, n_inputs, n_outputs;
    worker *workers;
    pthread_mutex_t lock; /* of all that follows, and of workers' requests and idle lists */
    pthread_cond_t room, idled;
    pool_session *sessions;
    size_t turn;                /* the session that is asked first */
    grt_request *first, **last; /* the queue */
    size_t waiting, most_waiting;
    bool closing;
};

/* ---- the queue ---- */

/* Of equals, the one whose turn it is. */
static pool_session *least_busy(grt_pool *pool)
{
    pool_session *best = NULL;
    for (size_t i = 0; i < pool->n_sessions; i++) {
        pool_session *s = &pool->sessions[(pool->turn + i) % pool->n_sessions];
        if (s->idle && (!best || s->busy < best->busy))
            best = s;
    }
    if (best)
        pool->turn = (size_t)(best - pool->sessions) + 1;
    return best;
}

/* Hand out what waits, with the lock. */
static void dispatch_requests(grt_pool *pool)
{
    pool_session *s;
    while (pool->first && (s = least_busy(pool))) {
        worker *w = s->idle;
        grt_request *r = pool->first;
        s->idle = w->next_idle;
        s->busy++;
        pool->first = r->next;
        if (!pool->first)
            pool->last = &pool->first;
        pool->waiting--;
        w->request = r;
        pthread_cond_signal(&w->wake);
        pthread_cond_signal(&pool->room);
    }
}

static void become_idle(worker *w)
{
    pool_session *s = &w->pool->sessions[w->session];
    w->next_idle = s->idle;
    s->idle = w;
}

static void *serve_requests(void *arg)
{
    worker *w = arg;
    grt_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        dispatch_requests(pool);
        while (!w->request && !(pool->closing && !pool->first))
            pthread_cond_wait(&w->wake, &pool->lock);
        grt_request *r = w->request;
        if (!r)
            break;
        pthread_mutex_unlock(&pool->lock);
        grt_request_serve(r, w->context, w->session);
        pthread_mutex_lock(&pool->lock);
        w->request = NULL;
        pool->sessions[w->session].busy--;
        become_idle(w);
        pthread_cond_broadcast(&pool->idled);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Hand a request over, once there is room in the queue. */
static void enqueue_request(grt_pool *pool, grt_request *r)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->waiting >= pool->most_waiting)
        pthread_cond_wait(&pool->room, &pool->lock);
    *pool->last = r;
    pool->last = &r->next;
    pool->waiting++;
    dispatch_requests(pool);
    pthread_mutex_unlock(&pool->lock);
}

static grt_status submit_request(grt_pool *pool, const grt_submission *s, const char *function,
                                 grt_request **out_request)
{
    grt_request *r;
    if (!pool || !out_request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: %s is NULL", function,
                        pool ? "out_request" : "pool");
    if (s->n_inputs != pool->n_inputs || (s->n_inputs && !s->inputs && !s->values))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a request has %zu inputs, the model %zu", s->n_inputs,
                        pool->n_inputs);
    if (s->n_outputs > pool->n_outputs || (s->n_outputs && !s->outputs))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a request has %zu outputs, the model %zu", s->n_outputs,
                        pool->n_outputs);
    GRT_TRY(grt_request_create(s, pool->n_outputs, &r));
    *out_request = r;
    enqueue_request(pool, r);
    return GRT_OK;
}

grt_status grt_pool_submit(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs,
                           const grt_tensor *outputs, size_t n_outputs, grt_request **out_request)
{
    const grt_submission s = {
        .inputs = inputs, .outputs = outputs, .n_inputs = n_inputs, .n_outputs = n_outputs};
    return submit_request(pool, &s, "grt_pool_submit", out_request);
}

grt_status grt_pool_submit_values(grt_pool *pool, const grt_value *const *inputs, size_t n_inputs,
                                  grt_request **out_request)
{
    static const grt_value *const none[1];
    const grt_submission s = {.values = n_inputs ? inputs : none, .n_inputs = n_inputs};
    return submit_request(pool, &s, "grt_pool_submit_values", out_request);
}

grt_status grt_pool_run(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs, const grt_tensor *outputs,
                        size_t n_outputs)
{
    grt_request *request;
    GRT_TRY(grt_pool_submit(pool, inputs, n_inputs, outputs, n_outputs, &request));
    const grt_status status = grt_request_wait(request);
    grt_request_release(request);
    return status;
}

/* ---- life ---- */

static grt_status check_sessions(grt_session *const *sessions, size_t n, const grt_pool_options *options)
{
    if (options->contexts < 0 || options->contexts > MOST_CONTEXTS || options->queue < 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "contexts is %d, must be from 0 to %d; queue is %d, must not be negative",
                        options->contexts, MOST_CONTEXTS, options->queue);
    for (size_t i = 0; i < n; i++)
        if (!sessions[i] || sessions[i]->model != sessions[0]->model)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_pool_create: session %zu is %s", i,
                            sessions[i] ? "of another model than the first" : "NULL");
    return GRT_OK;
}

static int32_t contexts_of(const grt_session *session, const grt_pool_options *options)
{
    return options->contexts ? options->contexts : session->on_device ? DEVICE_CONTEXTS : 1;
}

static grt_status start_worker(grt_pool *pool, grt_session *session, size_t index)
{
    worker *w = &pool->workers[pool->n_workers];
    *w = (worker){.pool = pool, .session = index};
    pthread_cond_init(&w->wake, NULL);
    pool->n_workers++;
    GRT_TRY(grt_context_create(session, &w->context));
    pthread_mutex_lock(&pool->lock);
    become_idle(w);
    pthread_mutex_unlock(&pool->lock);
    w->started = pthread_create(&w->thread, NULL, serve_requests, w) == 0;
    return w->started
               ? GRT_OK
               : grt_fail(GRT_STATUS_OUT_OF_MEMORY, "a pool's thread %zu cannot be made", pool->n_workers);
}

static grt_status start_workers(grt_pool *pool, grt_session *const *sessions, size_t n,
                                const grt_pool_options *options)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += (size_t)contexts_of(sessions[i], options);
    pool->n_sessions = n;
    pool->n_inputs = grt_model_input_count(sessions[0]->model);
    pool->n_outputs = grt_model_output_count(sessions[0]->model);
    pool->most_waiting = options->queue ? (size_t)options->queue : total;
    pool->sessions = calloc(n, sizeof *pool->sessions);
    pool->workers = calloc(total, sizeof *pool->workers);
    if (!pool->sessions || !pool->workers)
        return grt_fail_memory(total * sizeof *pool->workers);
    for (size_t i = 0; i < n; i++)
        for (int32_t k = 0; k < contexts_of(sessions[i], options); k++)
            GRT_TRY(start_worker(pool, sessions[i], i));
    return GRT_OK;
}

grt_status grt_pool_create(grt_session *const *sessions, size_t n, const grt_pool_options *options,
                           grt_pool **out_pool)
{
    grt_pool_options used = {0};
    if (!sessions || !n || !out_pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_create: sessions or out_pool is NULL, or n is 0");
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_pool_options"));
    GRT_TRY(check_sessions(sessions, n, &used));
    grt_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return grt_fail_memory(sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->room, NULL);
    pthread_cond_init(&pool->idled, NULL);
    pool->last = &pool->first;
    const grt_status status = start_workers(pool, sessions, n, &used);
    if (status != GRT_OK) {
        grt_pool_release(pool);
        return status;
    }
    *out_pool = pool;
    return GRT_OK;
}

static grt_status replay_of_idle(const grt_pool *pool, size_t session, grt_replay_info *out_info)
{
    grt_status status = grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                 "grt_pool_get_replay: no idle context of session %zu has run", session);
    for (const worker *w = pool->sessions[session].idle; w && status != GRT_OK; w = w->next_idle)
        status = grt_context_get_replay(w->context, out_info);
    return status;
}

/* Idle contexts stay as they are while the lock is held. A request is done before its context is idle. */
grt_status grt_pool_get_replay(grt_pool *pool, size_t session, grt_replay_info *out_info)
{
    if (!pool || session >= pool->n_sessions)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_get_replay: the pool is NULL, or has no session %zu", session);
    pthread_mutex_lock(&pool->lock);
    grt_status status = replay_of_idle(pool, session, out_info);
    while (status != GRT_OK && pool->sessions[session].busy) {
        pthread_cond_wait(&pool->idled, &pool->lock);
        status = replay_of_idle(pool, session, out_info);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void grt_pool_release(grt_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    for (size_t i = 0; i < pool->n_workers; i++)
        pthread_cond_signal(&pool->workers[i].wake);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->n_workers; i++) {
        worker *w = &pool->workers[i];
        if (w->started)
            pthread_join(w->thread, NULL);
        grt_context_release(w->context);
        pthread_cond_destroy(&w->wake);
    }
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->room);
    pthread_cond_destroy(&pool->idled);
    free(pool->sessions);
    free(pool->workers);
    free(pool);
}
