/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks of services measure: a model with one input and one output of floats, whose first dim
 * is symbolic, on a device. */
#ifndef GRT_BENCH_SUBJECT_H
#define GRT_BENCH_SUBJECT_H

#include <graphrt/graphrt.h>

typedef struct subject {
    grt_model *model;
    grt_session *session; /* NULL: the device cannot be divided so; grt_last_error() says why */
    grt_tensor in, out;   /* of one row, without data */
} subject;

/* Ends the program with a message, unless the status is OK. */
void must(grt_status status, const char *what);

/* path: an ONNX model, which is compiled for the device, or a plan. multiprocessors 0: the whole device. */
subject open_subject(grt_runtime *runtime, const char *path, const char *device, int32_t priority,
                     int64_t multiprocessors);
void close_subject(const subject *s);

/* `row` is s->in or s->out. Zeros. */
grt_tensor alloc_rows(const subject *s, const grt_tensor *row, int64_t rows, grt_memory memory);
void free_rows(const subject *s, const grt_tensor *t);

/* For qsort() of doubles. */
int compare_times(const void *a, const void *b);

#endif
