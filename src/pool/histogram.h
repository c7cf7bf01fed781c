/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of times, in buckets of which four make a power of two. */
#ifndef GRT_SRC_POOL_HISTOGRAM_H
#define GRT_SRC_POOL_HISTOGRAM_H

#include "src/base/status.h"

typedef struct grt_times {
    uint64_t count;
    double sum_ms, max_ms;
    uint64_t buckets[GRT_HISTOGRAM_BUCKETS];
} grt_times;

void grt_times_add(grt_times *times, double ms);
void grt_times_report(const grt_times *times, grt_histogram *out_histogram);

#endif
