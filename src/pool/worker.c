/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/worker.h"

#include "src/base/exit_guard.h"
#include "src/base/span.h"
#include "src/base/uncancelled.h"
#include "src/exec/state.h"
#include "src/pool/answer.h"
#include "src/pool/clock.h"
#include "src/pool/linger.h"
#include "src/pool/remote.h"
#include "src/pool/schedule.h"
#include "src/session/session.h"

#include <graphrt/faults.h>

#include <stdlib.h>
#include <string.h>

/* ---- one request ---- */

static grt_status take_request_state(grt_context *context, grt_session *session, grt_state *state)
{
    if (state->session->device != session->device) {
        GRT_TRY(grt_session_check(state->session));
        GRT_TRY(grt_state_move(state, session));
    }
    return grt_context_use_state(context, state);
}

static grt_status bind_request_input(grt_context *context, const grt_request *r, size_t i)
{
    const grt_value *value = r->by_value ? r->values[i] : NULL;
    const grt_tensor *t = !r->by_value && r->inputs[i].dtype ? &r->inputs[i] : NULL;
    if (!value && !t && grt_state_has(r->with, false, i))
        return GRT_OK;
    return r->by_value ? grt_context_set_input_value(context, i, value)
                       : grt_context_set_input(context, i, t);
}

static grt_status bind_request(grt_worker *w, const grt_request *r)
{
    if (r->with)
        GRT_TRY(take_request_state(w->context, w->on, r->with));
    for (size_t i = 0; i < r->n_inputs; i++)
        GRT_TRY(bind_request_input(w->context, r, i));
    for (size_t i = 0; i < r->n_outputs; i++)
        if (r->outputs[i].dtype || !grt_state_has(r->with, true, i))
            GRT_TRY(grt_context_set_output(w->context, i, r->outputs[i].dtype ? &r->outputs[i] : NULL));
    return GRT_OK;
}

static grt_status keep_other_than_tensor(grt_context *context, size_t index, grt_value *out)
{
    grt_value *copy;
    GRT_TRY(grt_context_get_output_value(context, index, &copy));
    grt_value_clear(out);
    *out = *copy;
    free(copy);
    return GRT_OK;
}

/* Results of the CPU lie in the arena. */
static grt_status copy_result(grt_context *context, size_t index, grt_value *out)
{
    grt_tensor found;
    GRT_TRY(grt_context_get_output(context, index, &found));
    if (found.dtype == GRT_DTYPE_STRING)
        return grt_value_copy_tensor(out, &found);
    GRT_TRY(grt_value_realloc(out, found.dtype, found.rank, found.dims));
    const size_t bytes = grt_tensor_bytes(&found);
    if (bytes)
        memcpy(out->t.data, found.data, bytes);
    return GRT_OK;
}

/* Results on a device were copied to memory that can change hands: the context gets the request's in return.
 */
static grt_status take_result(grt_value *result, grt_value *out)
{
    if (!result->buffer || result->t.dtype == GRT_DTYPE_STRING)
        return grt_value_share(out, result);
    const grt_value taken = *result;
    *result = *out;
    *out = taken;
    return GRT_OK;
}

static grt_status keep_results(grt_context *context, grt_request *r)
{
    const grt_plan_body *body = grt_context_body(context);
    for (size_t i = 0; i < r->n_outputs; i++) {
        grt_value *out = &r->results[i];
        if (r->outputs[i].dtype)
            continue;
        if (grt_state_has(r->with, true, i)) {
            grt_value_clear(out);
            continue;
        }
        if (body->values[body->outputs[i]].kind != GRT_KIND_TENSOR)
            GRT_TRY(keep_other_than_tensor(context, i, out));
        else
            GRT_TRY(context->results ? take_result(&context->results[i], out) : copy_result(context, i, out));
    }
    return GRT_OK;
}

static bool worker_is_cancelled(void *user)
{
    return atomic_load_explicit(&((grt_request *)user)->cancelled, memory_order_relaxed) ||
           grt_exit_guard_stops();
}

static bool is_lost(const grt_worker *w)
{
    if (w->channel)
        return w->gone;
    if (!grt_session_is_lost(w->on))
        grt_session_probe(w->on);
    return grt_session_is_lost(w->on);
}

/* Of a process; with the lock. What may have ended two of them gets no third, nor company in a batch. */
static bool go_to_another_process(grt_worker *w, grt_request **slot)
{
    grt_request *r = *slot;
    grt_lane_session *s = &w->lane->sessions[w->session];
    s->coming = s->coming || !s->lost; /* the process's thread sees to it */
    if (r->again) {
        s->lost = true;
        return false;
    }
    r->again = true;
    r->rows = 0;
    return grt_schedule_go_elsewhere(w, slot);
}

/* True: the session is lost, and the request another's. */
static bool hand_over(grt_worker *w, grt_request **slot)
{
    grt_pool *pool = w->lane->pool;
    if (!is_lost(w))
        return false;
    pthread_mutex_lock(&pool->lock);
    const bool handed = w->channel ? go_to_another_process(w, slot) : grt_schedule_go_elsewhere(w, slot);
    grt_schedule_dispatch(pool, grt_now_ms());
    pthread_mutex_unlock(&pool->lock);
    return handed;
}

/* The message of the run stays. */
static void let_go_state(grt_context *context)
{
    if (context->state)
        (void)grt_context_use_state(context, NULL);
}

static void tell_queue(const grt_worker *w, const grt_request *r, double until_ms)
{
    if (r->span.number)
        grt_span_end_queue(r->span, w->lane->number, r->submitted_ms, until_ms);
}

/* *at_ms: when it begins, and then when it has ended. */
static grt_status bind_in_span(grt_worker *w, grt_request *r, double *at_ms)
{
    GRT_SPAN_ENTER_AT(span, *at_ms, .kind = GRT_SPAN_COPY_IN, .device = w->name, .lane = w->lane->number,
                      .request = r->span.number);
    const grt_status status = w->channel ? grt_remote_bind(w, &r, 1, 0) : bind_request(w, r);
    *at_ms = grt_span_leave_now(&span);
    return status;
}

static grt_status keep_in_span(grt_worker *w, grt_request *r, double *at_ms)
{
    GRT_SPAN_ENTER_AT(span, *at_ms, .kind = GRT_SPAN_COPY_OUT, .device = w->name, .lane = w->lane->number,
                      .request = r->span.number);
    const grt_status status = w->channel ? grt_remote_keep(w, r, 0, false) : keep_results(w->context, r);
    *at_ms = grt_span_leave_now(&span);
    return status;
}

static grt_status worker_run(grt_worker *w, double deadline_ms, bool (*cancelled)(void *user), void *user)
{
    const grt_run_options options = {
        .struct_size = sizeof options, .deadline_ms = deadline_ms, .cancel = cancelled, .user = user};
    if (!w->channel)
        return grt_context_run_with(w->context, &options);
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_RUN, .device = w->name);
    const grt_status status = grt_remote_run(w, deadline_ms, cancelled, user);
    GRT_SPAN_LEAVE(span);
    return status;
}

static grt_status fail_ending(void)
{
    return grt_fail(GRT_STATUS_CANCELLED, "the process is ending: requests of pools are no longer computed");
}

static void serve_alone(grt_worker *w, grt_request **slot)
{
    grt_request *r = *slot;
    const double begin = grt_now_ms();
    double bound = begin;
    grt_status status = grt_exit_guard_stops() ? fail_ending() : bind_in_span(w, r, &bound);
    if (status == GRT_OK)
        status = worker_run(w, r->queued.deadline_ms, worker_is_cancelled, r);
    const double ran = grt_now_ms();
    double kept = ran;
    if (status == GRT_OK)
        status = keep_in_span(w, r, &kept);
    if (r->with)
        let_go_state(w->context);
    if (status == GRT_STATUS_DEVICE && hand_over(w, slot))
        return;
    r->info = (grt_request_info){.session = w->session,
                                 .queued_ms = begin - r->submitted_ms,
                                 .copy_in_ms = bound - begin,
                                 .run_ms = ran - bound,
                                 .copy_out_ms = kept - ran};
    w->n_served++;
    grt_answer(r, status, slot);
}

/* ---- a batch ---- */

/* Their inputs are copied: those that were cancelled meanwhile leave, the others may from now on. */
static void let_leave(grt_worker *w)
{
    grt_pool *pool = w->lane->pool;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < w->n_requests; i++) {
        grt_request *r = w->requests[i];
        r->stage = GRT_REQUEST_BATCHED;
        if (r->queued.deadline_ms != 0)
            grt_queue_add(&pool->deadlines, &r->queued);
        if (atomic_load_explicit(&r->cancelled, memory_order_relaxed))
            grt_schedule_leave(r, GRT_STATUS_CANCELLED);
        else if (r->queued.deadline_ms != 0)
            grt_schedule_wake_keeper(pool, r->queued.deadline_ms);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Nobody leaves any more. */
static void hold_back(grt_worker *w, grt_request_stage stage)
{
    grt_pool *pool = w->lane->pool;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < w->n_requests; i++)
        if (w->requests[i]) {
            w->requests[i]->stage = stage;
            grt_queue_remove(&pool->deadlines, &w->requests[i]->queued);
        }
    pthread_mutex_unlock(&pool->lock);
}

static bool is_deserted(void *user)
{
    return !atomic_load_explicit(&((grt_worker *)user)->live, memory_order_relaxed) || grt_exit_guard_stops();
}

static grt_status worker_run_batch(grt_worker *w, double *out_bound)
{
    const grt_lane *lane = w->lane;
    const int64_t padded = grt_batching_padded(&lane->batching, w->rows);
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_COPY_IN, .device = w->name, .lane = lane->number);
    grt_status status = w->channel ? grt_remote_bind(w, w->requests, w->n_requests, padded)
                                   : grt_batch_bind(&w->batch, &lane->batching, w->context, w->requests,
                                                    w->n_requests, w->rows);
    GRT_SPAN_LEAVE(span);
    *out_bound = grt_now_ms();
    let_leave(w);
    if (status == GRT_OK)
        status = worker_run(w, 0, is_deserted, w);
    if (status == GRT_OK)
        status = w->channel ? grt_remote_check_rows(w, padded)
                            : grt_batch_find_results(&w->batch, w->context, padded);
    return status;
}

static void count_batch(grt_lane *lane, int64_t rows)
{
    pthread_mutex_lock(&lane->pool->lock);
    lane->stats.batches++;
    lane->stats.batch_rows += (uint64_t)rows;
    lane->stats.padded_rows += (uint64_t)(grt_batching_padded(&lane->batching, rows) - rows);
    pthread_mutex_unlock(&lane->pool->lock);
}

/* One after another, as none shall fail for what is wrong with another. */
static void serve_separately(grt_worker *w)
{
    hold_back(w, GRT_REQUEST_AT_WORK);
    for (size_t i = 0; i < w->n_requests; i++)
        if (w->requests[i])
            serve_alone(w, &w->requests[i]);
}

static grt_status give_in_span(grt_worker *w, size_t i)
{
    grt_request *r = w->requests[i];
    GRT_SPAN_ENTER(span, .kind = GRT_SPAN_COPY_OUT, .device = w->name, .lane = w->lane->number,
                   .request = r->span.number);
    const grt_status status = w->channel ? grt_remote_keep(w, r, w->first_rows[i], true)
                                         : grt_batch_give_results(&w->batch, r, w->first_rows[i]);
    GRT_SPAN_LEAVE(span);
    return status;
}

static void serve_batch(grt_worker *w)
{
    const double begin = grt_now_ms();
    double bound;
    atomic_store_explicit(&w->live, w->n_requests, memory_order_relaxed);
    if (worker_run_batch(w, &bound) != GRT_OK) { /* if it was cancelled, nobody is left */
        serve_separately(w);
        return;
    }
    const double ran = grt_now_ms();
    hold_back(w, GRT_REQUEST_ENDING);
    count_batch(w->lane, w->rows);
    for (size_t i = 0; i < w->n_requests; i++) {
        grt_request *r = w->requests[i];
        if (!r)
            continue;
        const double copied = grt_now_ms();
        const grt_status status = give_in_span(w, i);
        r->info = (grt_request_info){.session = w->session,
                                     .queued_ms = begin - r->submitted_ms,
                                     .copy_in_ms = bound - begin,
                                     .run_ms = ran - bound,
                                     .copy_out_ms = grt_now_ms() - copied,
                                     .batch_rows = grt_batching_padded(&w->lane->batching, w->rows)};
        w->n_served++;
        grt_answer(r, status, &w->requests[i]);
    }
}

/* ---- threads ---- */

void grt_worker_serve(grt_worker *w)
{
    grt_pool *pool = w->lane->pool;
    const double begin = grt_now_ms();
    const int before = grt_uncancelled_begin();
    grt_exit_guard_enter(); /* requests that are open are served */
    for (size_t i = 0; i < w->n_requests; i++)
        tell_queue(w, w->requests[i], begin);
    w->n_served = 0;
    if (grt_exit_guard_stops())
        serve_separately(w);
    else if (w->n_requests > 1 || (w->rows && grt_batching_padded(&w->lane->batching, w->rows) != w->rows))
        serve_batch(w);
    else
        serve_alone(w, &w->requests[0]);
    const double end = grt_now_ms();
    pthread_mutex_lock(&pool->lock);
    grt_schedule_become_idle(w, end);
    grt_answer_close(pool, w->n_served); /* those that left are the keeper's */
    grt_schedule_dispatch(pool, end);
    pthread_mutex_unlock(&pool->lock);
    grt_exit_guard_leave();
    grt_uncancelled_end(before);
}

static void *serve_requests(void *arg)
{
    grt_worker *w = arg;
    grt_pool *pool = w->lane->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        grt_linger_wait(w);
        if (!w->n_requests)
            break;
        w->begun = true;
        pthread_mutex_unlock(&pool->lock);
        grt_worker_serve(w);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static grt_status make_worker(grt_worker *w, grt_session *session)
{
    const size_t most = w->lane->batching.most_rows ? (size_t)w->lane->batching.most_rows : 1;
    grt_clock_cond_init(&w->wake);
    w->requests = calloc(most, sizeof *w->requests);
    w->first_rows = calloc(most, sizeof *w->first_rows);
    if (!w->requests || !w->first_rows)
        return grt_fail_memory(most * sizeof *w->requests);
    w->on = session;
    if (!session)
        return GRT_OK;
    w->name = session->name;
    GRT_TRY(grt_context_create(session, &w->context));
    return w->lane->batching.most_rows ? grt_batch_create(session, &w->batch) : GRT_OK;
}

grt_status grt_worker_start(grt_worker *w, grt_lane *lane, size_t index, grt_session *session,
                            grt_channel *channel)
{
    w->lane = lane;
    w->session = index;
    w->channel = channel;
    w->name = channel ? channel->process->device : "";
    GRT_TRY(make_worker(w, session));
    pthread_mutex_lock(&lane->pool->lock);
    w->next_idle = lane->sessions[index].idle;
    lane->sessions[index].idle = w;
    pthread_mutex_unlock(&lane->pool->lock);
    grt_exit_guard_register();
    w->started = pthread_create(&w->thread, NULL, serve_requests, w) == 0;
    return w->started ? GRT_OK : grt_fail(GRT_STATUS_OUT_OF_MEMORY, "a pool's thread cannot be made");
}

void grt_worker_join(grt_worker *w)
{
    if (w->started)
        pthread_join(w->thread, NULL);
}

void grt_worker_release(grt_worker *w)
{
    if (!w->lane)
        return;
    grt_batch_release(&w->batch);
    grt_context_release(w->context);
    pthread_cond_destroy(&w->wake);
    free(w->requests);
    free(w->first_rows);
}
