/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/span.h"

#include "src/base/nvtx.h"

#include <pthread.h>

atomic_bool grt_spans_wanted;

/* Written by grt_trace_set, read by whoever tells something. */
static pthread_rwlock_t spans_lock = PTHREAD_RWLOCK_INITIALIZER;
static void (*spans_listener)(void *user, const grt_span *span);
static void *spans_user;
static pthread_once_t spans_looked = PTHREAD_ONCE_INIT;
static atomic_uint_least64_t spans_requests;

/* With the lock. */
static void note_wanted(void)
{
    atomic_store_explicit(&grt_spans_wanted, spans_listener || grt_nvtx_is_on(), memory_order_relaxed);
}

void grt_trace_set(void (*span)(void *user, const grt_span *span), void *user)
{
    pthread_rwlock_wrlock(&spans_lock);
    spans_listener = span;
    spans_user = user;
    note_wanted();
    pthread_rwlock_unlock(&spans_lock);
}

static void look_for_profilers(void)
{
    pthread_rwlock_wrlock(&spans_lock);
    grt_nvtx_look();
    note_wanted();
    pthread_rwlock_unlock(&spans_lock);
}

void grt_spans_look(void)
{
    (void)pthread_once(&spans_looked, look_for_profilers);
}

static void tell_span(grt_span *span)
{
    span->struct_size = sizeof *span;
    span->op = span->op ? span->op : "";
    span->name = span->name ? span->name : "";
    span->device = span->device ? span->device : "";
    pthread_rwlock_rdlock(&spans_lock);
    if (spans_listener)
        spans_listener(spans_user, span);
    pthread_rwlock_unlock(&spans_lock);
}

void grt_span_enter_at(grt_span_scope *scope, double begin_ms)
{
    if (scope->span.kind != GRT_SPAN_STEP)
        scope->span.step = -1;
    grt_nvtx_push(&scope->span);
    scope->span.begin_ms = begin_ms;
}

void grt_span_enter_on(grt_span_scope *scope)
{
    grt_span_enter_at(scope, 0);
    scope->span.begin_ms = grt_now_ms();
}

double grt_span_leave_on(grt_span_scope *scope)
{
    const double end_ms = scope->span.end_ms = grt_now_ms();
    grt_nvtx_pop();
    tell_span(&scope->span);
    return end_ms;
}

grt_span_request grt_span_begin_request(size_t lane)
{
    const grt_span_request request = {
        .number = atomic_fetch_add_explicit(&spans_requests, 1, memory_order_relaxed) + 1};
    return (grt_span_request){.number = request.number, .range = grt_nvtx_start(request.number, lane)};
}

void grt_span_end_queue(grt_span_request request, size_t lane, double begin_ms, double end_ms)
{
    tell_span(&(grt_span){.kind = GRT_SPAN_QUEUE,
                          .step = -1,
                          .lane = lane,
                          .request = request.number,
                          .begin_ms = begin_ms,
                          .end_ms = end_ms});
}

void grt_span_end_request(grt_span_request request, size_t lane, double begin_ms, double end_ms,
                          grt_status status)
{
    grt_nvtx_end(request.range);
    tell_span(&(grt_span){.kind = GRT_SPAN_REQUEST,
                          .step = -1,
                          .lane = lane,
                          .request = request.number,
                          .status = status,
                          .begin_ms = begin_ms,
                          .end_ms = end_ms});
}
