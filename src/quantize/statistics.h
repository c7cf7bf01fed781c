/* SPDX-License-Identifier: Apache-2.0 */
/* What calibration keeps of a value: smallest, largest, and a histogram whose range grows with the data. The
 * result depends on the order of the data alone. */
#ifndef GRT_SRC_QUANTIZE_STATISTICS_H
#define GRT_SRC_QUANTIZE_STATISTICS_H

#include "src/base/status.h"

enum { STATISTICS_BINS = 2048 };

typedef struct statistics {
    float low, high; /* of finite elements; low > high: there were none */
    uint64_t count;  /* finite elements */
    uint64_t odd;    /* NaN and infinities */
    double width;    /* of a bin; 0: the histogram is empty */
    int64_t first;   /* bin i has elements from (first + i) * width on */
    uint64_t bins[STATISTICS_BINS];
} statistics;

void statistics_clear(statistics *s);
/* One more sample. */
void statistics_add(statistics *s, const float *data, int64_t n, bool histogram);

/* Part of the line; 0 is in it, always. */
typedef struct value_range {
    float low, high;
} value_range;

value_range statistics_extremes(const statistics *s);
/* Without the (100 - percent) / 2 percent of elements at each end. */
value_range statistics_percentile(const statistics *s, double percent);
/* The range whose `levels` steps have the least mean square error. symmetric: low is -high. */
value_range statistics_least_error(const statistics *s, int32_t levels, bool symmetric);

#endif
