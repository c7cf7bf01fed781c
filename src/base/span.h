/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: what runs and pools do, for those who listen (grt_trace_set) and for profilers (nvtx.h). While
 * nobody wants them, a span costs a load and a comparison. */
#ifndef GRT_BASE_SPAN_H
#define GRT_BASE_SPAN_H

#include "src/base/clock.h"

#include <graphrt/trace.h>

#include <stdatomic.h>
#include <stddef.h>

extern atomic_bool grt_spans_wanted;

static inline bool grt_spans_are_on(void)
{
    return atomic_load_explicit(&grt_spans_wanted, memory_order_relaxed);
}

/* Profilers that were started with this process are asked for, once. */
void grt_spans_look(void);

/* One that this thread is in. They are nested; leave each, whatever happens. */
typedef struct grt_span_scope {
    grt_span span;
    bool entered;
} grt_span_scope;

void grt_span_enter_on(grt_span_scope *scope);
/* For what begins where another span ended: reading the clock is most of what a span costs. */
void grt_span_enter_at(grt_span_scope *scope, double begin_ms);
double grt_span_leave_on(grt_span_scope *scope); /* when it ended */

/* The strings of the span are used until it is left. */
#define GRT_SPAN_ENTER_BY(scope, enter, ...)  \
    grt_span_scope scope;                     \
    scope.entered = grt_spans_are_on();       \
    if (scope.entered) {                      \
        scope.span = (grt_span){__VA_ARGS__}; \
        enter;                                \
    }
#define GRT_SPAN_ENTER(scope, ...) GRT_SPAN_ENTER_BY(scope, grt_span_enter_on(&scope), __VA_ARGS__)
#define GRT_SPAN_ENTER_AT(scope, begin_ms, ...) \
    GRT_SPAN_ENTER_BY(scope, grt_span_enter_at(&scope, begin_ms), __VA_ARGS__)
#define GRT_SPAN_LEAVE(scope)                \
    do {                                     \
        if (scope.entered)                   \
            (void)grt_span_leave_on(&scope); \
    } while (0)
/* Leaves it, too; what time it is, spans or not. */
static inline double grt_span_leave_now(grt_span_scope *scope)
{
    return scope->entered ? grt_span_leave_on(scope) : grt_now_ms();
}

/* Spans that begin on one thread and end on another: those of a request, which has a number among all of the
 * process. 0: nobody wanted them when it began. */
typedef struct grt_span_request {
    uint64_t number;
    uint64_t range; /* of profilers */
} grt_span_request;
grt_span_request grt_span_begin_request(size_t lane);
/* It has waited until then. */
void grt_span_end_queue(grt_span_request request, size_t lane, double begin_ms, double end_ms);
void grt_span_end_request(grt_span_request request, size_t lane, double begin_ms, double end_ms,
                          grt_status status);

#endif
