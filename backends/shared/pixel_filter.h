/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of graphrt::PixelFilter, once the inputs' are known. */
#ifndef GRT_BACKENDS_SHARED_PIXEL_FILTER_H
#define GRT_BACKENDS_SHARED_PIXEL_FILTER_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_pixel_filter {
    bool last;                          /* channels */
    int64_t batch, channels, groups, n; /* n: results */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
} grt_pixel_filter;

/* r->shape becomes one, from malloc. */
grt_status grt_pixel_filter_reshape(grt_reshape *r);

#ifdef __cplusplus
}
#endif
#endif
