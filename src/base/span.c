/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/span.h"

#include "src/base/nvtx.h"
#include "src/base/reader.h"
#include "src/base/span_clock.h"

#include <pthread.h>

atomic_bool grt_spans_wanted;

typedef struct listener {
    void (*tell)(void *user, const grt_span *span);
    void *user;
} listener;

/* Two take turns: nobody uses the one that was set before the one that is set. */
static listener spans_listeners[2];
static _Atomic(const listener *) spans_listener;
static pthread_mutex_t spans_lock = PTHREAD_MUTEX_INITIALIZER; /* of those who set */
static pthread_once_t spans_looked = PTHREAD_ONCE_INIT;
static atomic_uint_least64_t spans_requests;

/* With the lock. */
static void note_wanted(void)
{
    atomic_store_explicit(&grt_spans_wanted, atomic_load(&spans_listener) || grt_nvtx_is_on(),
                          memory_order_relaxed);
}

void grt_trace_set(void (*span)(void *user, const grt_span *span), void *user)
{
    pthread_mutex_lock(&spans_lock);
    listener *next = &spans_listeners[atomic_load(&spans_listener) == spans_listeners];
    *next = (listener){span, user};
    atomic_store(&spans_listener, span ? next : NULL);
    note_wanted();
    grt_readers_wait();
    pthread_mutex_unlock(&spans_lock);
}

static void look_for_profilers(void)
{
    pthread_mutex_lock(&spans_lock);
    grt_nvtx_look();
    note_wanted();
    pthread_mutex_unlock(&spans_lock);
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
    grt_reader *reader = grt_reader_enter();
    const listener *l = atomic_load(&spans_listener);
    if (l)
        l->tell(l->user, span);
    grt_reader_leave(reader);
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
    scope->span.begin_ms = grt_span_clock_ms();
}

double grt_span_leave_on(grt_span_scope *scope)
{
    const double now = grt_span_clock_ms(), end_ms = now > scope->span.begin_ms ? now : scope->span.begin_ms;
    scope->span.end_ms = end_ms;
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
