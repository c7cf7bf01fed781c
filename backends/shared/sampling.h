/* SPDX-License-Identifier: Apache-2.0 */
/* LpPool, MaxUnpool, DeformConv: windows, and what lies at positions between the pixels of an image. */
#ifndef GRT_BACKENDS_SHARED_SAMPLING_H
#define GRT_BACKENDS_SHARED_SAMPLING_H

#include "backends/kernel.h"
#include "backends/shared/window.h"
#include "src/base/element.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_lp_pool {
    cpu_window w;
    int64_t planes;
    double p;
} grt_lp_pool;

/* The shape that MaxUnpool's indices speak of: what kernel, strides and pads give. A larger output_shape pads
 * that. */
typedef struct grt_unpool {
    int32_t rank;
    int64_t dims[GRT_MAX_RANK], elements;
} grt_unpool;

enum { GRT_DEFORM_X, GRT_DEFORM_W, GRT_DEFORM_OFFSET, GRT_DEFORM_BIAS, GRT_DEFORM_MASK };

typedef struct grt_deform {
    cpu_window w;
    int64_t batch, groups, offset_groups, channels, out_channels;
} grt_deform;

/* For kernel rows: the shape is one of these, which free releases. Errors: INVALID_ARGUMENT if the inputs do
 * not fit together. */
grt_status grt_lp_pool_reshape(grt_reshape *reshape);
grt_status grt_unpool_reshape(grt_reshape *reshape);
bool grt_deform_supports(const grt_kernel_node *node, grt_text *why);
grt_status grt_deform_reshape(grt_reshape *reshape);

/* Place of the element that MaxUnpool's index names in an output of these dims; -1: there is none. */
GRT_INLINE int64_t grt_unpool_place(const grt_unpool *s, int64_t index, const int64_t *out_dims)
{
    int64_t at = 0, stride = 1;
    if (index < 0 || index >= s->elements)
        return -1;
    for (int32_t k = s->rank - 1; k >= 0; k--) {
        const int64_t i = index % s->dims[k];
        if (i >= out_dims[k])
            return -1;
        at += i * stride;
        index /= s->dims[k];
        stride *= out_dims[k];
    }
    return at;
}

/* Where a tap reads for output pixel `at`, before offsets. */
GRT_INLINE double grt_deform_row(const cpu_window *w, int64_t at, int64_t tap)
{
    return (double)(at / w->out[1] * w->stride[0] - w->begin[0] + tap / w->kernel[1] * w->dilation[0]);
}
GRT_INLINE double grt_deform_column(const cpu_window *w, int64_t at, int64_t tap)
{
    return (double)(at % w->out[1] * w->stride[1] - w->begin[1] + tap % w->kernel[1] * w->dilation[1]);
}

/* A pixel; 0 outside the image. */
GRT_INLINE double grt_deform_pixel(const cpu_window *w, grt_dtype dtype, const void *x, int64_t plane,
                                   int64_t row, int64_t column)
{
    if (row < 0 || row >= w->in[0] || column < 0 || column >= w->in[1])
        return 0;
    return grt_element_load(dtype, x, plane * w->in_pixels + row * w->in[1] + column);
}

/* Between four pixels. */
GRT_INLINE double grt_deform_sample(const cpu_window *w, grt_dtype dtype, const void *x, int64_t plane,
                                    double row, double column)
{
    if (!(row > -1 && row < (double)w->in[0] && column > -1 && column < (double)w->in[1]))
        return 0; /* NaN too */
    const int64_t r = (int64_t)floor(row), c = (int64_t)floor(column);
    const double down = row - (double)r, right = column - (double)c;
    const double upper = (1 - right) * grt_deform_pixel(w, dtype, x, plane, r, c) +
                         right * grt_deform_pixel(w, dtype, x, plane, r, c + 1);
    const double lower = (1 - right) * grt_deform_pixel(w, dtype, x, plane, r + 1, c) +
                         right * grt_deform_pixel(w, dtype, x, plane, r + 1, c + 1);
    return (1 - down) * upper + down * lower;
}

#ifdef __cplusplus
}
#endif
#endif
