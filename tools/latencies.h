/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of latencies, as text and as JSON. */
#ifndef TOOLS_LATENCIES_H
#define TOOLS_LATENCIES_H

#include <jansson.h>
#include <stddef.h>

/* Of n samples in milliseconds; all 0 if there are none. */
typedef struct latencies {
    size_t n;
    double min, p50, p90, p95, p99, p999, max, mean, deviation;
} latencies;

/* Sorts the samples. Percentiles are values that were measured: nearest rank. */
latencies latencies_of(double *samples, size_t n);
/* "min 0.1  p50 0.2 ... max 3.0 ms", or "-" if there are none; returns out. */
enum { LATENCIES_TEXT_SIZE = 256 };
const char *latencies_text(const latencies *l, char out[LATENCIES_TEXT_SIZE]);
/* Null if there are none. */
json_t *latencies_json(const latencies *l);

#endif
