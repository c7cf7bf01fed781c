/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: attributes, and how many samples a bin has. */
#ifndef GRT_BACKENDS_SHARED_ROI_ALIGN_H
#define GRT_BACKENDS_SHARED_ROI_ALIGN_H

#include "src/base/float.h"
#include "src/base/op_desc.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_roi_align {
    bool max, shifted; /* shifted: by half a pixel */
    int64_t ratio;
    double scale;
} grt_roi_align;

grt_roi_align grt_roi_align_read(const grt_op_desc *desc);

/* Of a bin, at most. Real models stay far below; malformed ones would run for hours. */
enum { GRT_ROI_MOST_SAMPLES = 1 << 20 };

/* Samples along one axis of bins of that size. */
GRT_INLINE int64_t grt_roi_samples(const grt_roi_align *s, double bin)
{
    if (s->ratio > 0)
        return s->ratio;
    return bin > 0 ? (int64_t)ceil(fmin(bin, GRT_ROI_MOST_SAMPLES)) : 0; /* NaN has no samples */
}

/* Whether a bin may have so many, along its two axes. */
GRT_INLINE bool grt_roi_is_bounded(int64_t rows, int64_t cols)
{
    return rows <= GRT_ROI_MOST_SAMPLES && cols <= GRT_ROI_MOST_SAMPLES &&
           rows * cols <= GRT_ROI_MOST_SAMPLES;
}

#ifdef __cplusplus
}
#endif
#endif
