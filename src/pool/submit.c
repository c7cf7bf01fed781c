/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are submitted and waited for. */
#include "src/base/exit_guard.h"
#include "src/base/forked.h"
#include "src/base/structs.h"
#include "src/pool/caller.h"
#include "src/pool/chain.h"
#include "src/pool/clock.h"
#include "src/pool/lane.h"
#include "src/pool/schedule.h"
#include "src/pool/worker.h"

#include <math.h>

/* The thread that was woken for it has not come yet: who waits for it is quicker. In a callback only for what
 * is done, as it may be the callback's context that would serve it. */
static grt_status overtake_worker(grt_request *request, grt_worker **out_worker)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&request->lock);
    if (!request->done)
        status = grt_caller_check_may_wait(request->pool, "grt_request_wait");
    if (!request->done && status == GRT_OK) {
        pthread_mutex_lock(&request->pool->lock);
        *out_worker = grt_schedule_overtake(request);
        pthread_mutex_unlock(&request->pool->lock);
    }
    pthread_mutex_unlock(&request->lock);
    return status;
}

grt_status grt_request_wait(grt_request *request)
{
    grt_worker *w = NULL;
    if (!request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_request_wait: the request is NULL");
    if (!grt_forked_since(request->process))
        GRT_TRY(overtake_worker(request, &w));
    if (w)
        grt_worker_serve(w);
    return grt_request_await(request);
}

static grt_status fail_closing(void)
{
    return grt_fail(GRT_STATUS_CANCELLED, "the pool takes no more requests: it was shut down");
}

static grt_status pool_make_request(grt_pool *pool, const grt_submission *s, grt_request **out_request)
{
    grt_lane *lane;
    GRT_TRY(grt_lane_find(pool, s->lane, &lane));
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
    r->process = pool->process;
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
        grt_exit_guard_promise(1);
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
    GRT_TRY(grt_caller_check(pool, function));
    if (!submission)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: submission is NULL", function);
    GRT_TRY(grt_options_take(&s, sizeof s, submission, "grt_submission"));
    if (!out_request && !s.done)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: out_request is NULL, and there is no callback that would get the request",
                        function);
    GRT_TRY(pool_make_request(pool, &s, &r));
    grt_request *before = out_request ? *out_request : NULL;
    if (out_request)
        *out_request = r; /* the callback may be quick */
    const grt_status status = enqueue_request(r, wait && !grt_caller_is_called_back(pool));
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
        grt_exit_guard_promise(1);
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
    GRT_TRY(grt_caller_check_may_wait(pool, "grt_pool_run"));
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
