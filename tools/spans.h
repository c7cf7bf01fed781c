/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of runs and requests, recorded as they happen. */
#ifndef TOOLS_SPANS_H
#define TOOLS_SPANS_H

#include <graphrt/graphrt.h>

typedef struct recorded_span {
    grt_span_kind kind;
    int thread; /* from 1 on, in the order in which they were first seen */
    int32_t step;
    grt_status status;
    uint64_t request;
    size_t lane;
    double begin_ms, end_ms;
    const char *op, *name, *device;
} recorded_span;

const char *span_kind_text(grt_span_kind kind);

/* Record from now on, of all of the process, at most a million spans. */
void spans_start(void);
/* No more; those that are there stay. */
void spans_stop(void);
/* One after the other, in the order in which they ended. */
void spans_each(void (*each)(void *user, const recorded_span *span), void *user);
/* That had no room. */
size_t spans_left_out(void);
void spans_release(void);

#endif
