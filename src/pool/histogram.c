/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/histogram.h"

#include <math.h>

/* Bucket 0 ends at 2^FIRST ns; from there on PARTS buckets are a power of two; the last has no limit. */
enum { FIRST = 10, PARTS = 4, PART_BITS = 2 };

static size_t bucket_of(uint64_t ns)
{
    if (ns <= UINT64_C(1) << FIRST)
        return 0;
    const unsigned power = 63 - (unsigned)__builtin_clzll(ns - 1);
    const size_t part = (ns - 1) >> (power - PART_BITS) & (PARTS - 1);
    const size_t bucket = 1 + (power - FIRST) * PARTS + part;
    return bucket < GRT_HISTOGRAM_BUCKETS ? bucket : GRT_HISTOGRAM_BUCKETS - 1;
}

double grt_histogram_limit_ms(size_t bucket)
{
    if (bucket + 1 >= GRT_HISTOGRAM_BUCKETS)
        return INFINITY;
    const size_t parts = PARTS + (bucket + PARTS - 1) % PARTS + 1;
    const int power = FIRST - PART_BITS + (int)((bucket + PARTS - 1) / PARTS) - 1;
    return ldexp((double)parts, power) * 1e-6;
}

void grt_times_add(grt_times *times, double ms)
{
    const double ns = ms * 1e6;
    times->count++;
    times->sum_ms += ms;
    if (ms > times->max_ms)
        times->max_ms = ms;
    times->buckets[ns > 0 ? bucket_of(ns < 1e18 ? (uint64_t)ceil(ns) : UINT64_C(1000000000000000000)) : 0]++;
}

/* No more than the largest time, which the limit of its bucket may be above. */
static double percentile(const grt_times *times, double part)
{
    const double wanted = part * (double)times->count;
    uint64_t seen = 0;
    for (size_t i = 0; i < GRT_HISTOGRAM_BUCKETS; i++) {
        seen += times->buckets[i];
        if (seen && (double)seen >= wanted)
            return fmin(grt_histogram_limit_ms(i), times->max_ms);
    }
    return 0;
}

void grt_times_report(const grt_times *times, grt_histogram *out_histogram)
{
    *out_histogram = (grt_histogram){.count = times->count,
                                     .sum_ms = times->sum_ms,
                                     .max_ms = times->max_ms,
                                     .p50_ms = percentile(times, 0.5),
                                     .p90_ms = percentile(times, 0.9),
                                     .p95_ms = percentile(times, 0.95),
                                     .p99_ms = percentile(times, 0.99),
                                     .p99_9_ms = percentile(times, 0.999)};
    for (size_t i = 0; i < GRT_HISTOGRAM_BUCKETS; i++)
        out_histogram->buckets[i] = times->buckets[i];
}
