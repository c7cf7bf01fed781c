/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/latencies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int compare_latencies(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double nearest_rank(const double *sorted, size_t n, size_t per_mille)
{
    return sorted[(n * per_mille + 999) / 1000 - 1];
}

latencies latencies_of(double *samples, size_t n)
{
    if (n == 0)
        return (latencies){0};
    qsort(samples, n, sizeof *samples, compare_latencies);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (samples[i] - mean) * (samples[i] - mean);
    return (latencies){.n = n,
                       .min = samples[0],
                       .p50 = nearest_rank(samples, n, 500),
                       .p90 = nearest_rank(samples, n, 900),
                       .p95 = nearest_rank(samples, n, 950),
                       .p99 = nearest_rank(samples, n, 990),
                       .p999 = nearest_rank(samples, n, 999),
                       .max = samples[n - 1],
                       .mean = mean,
                       .deviation = sqrt(squares / (double)n)};
}

const char *latencies_text(const latencies *l, char out[LATENCIES_TEXT_SIZE])
{
    if (l->n)
        snprintf(out, LATENCIES_TEXT_SIZE,
                 "min %.3f  p50 %.3f  p90 %.3f  p95 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms", l->min, l->p50,
                 l->p90, l->p95, l->p99, l->p999, l->max);
    else
        snprintf(out, LATENCIES_TEXT_SIZE, "-");
    return out;
}

json_t *latencies_json(const latencies *l)
{
    if (!l->n)
        return json_null();
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "min", l->min, "p50", l->p50, "p90", l->p90,
                     "p95", l->p95, "p99", l->p99, "p99_9", l->p999, "max", l->max, "mean", l->mean,
                     "standard_deviation", l->deviation);
}
