/* SPDX-License-Identifier: Apache-2.0 */
/* A sliding window over concrete sizes: what convolutions and pools read from their attributes. */
#ifndef GRT_BACKENDS_SHARED_WINDOW_H
#define GRT_BACKENDS_SHARED_WINDOW_H

#include "src/base/checked.h"
#include "src/base/op_desc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_MAX_SPATIAL = GRT_MAX_RANK - 2 };

typedef struct cpu_window {
    int32_t spatial;
    int64_t in[CPU_MAX_SPATIAL], out[CPU_MAX_SPATIAL];
    int64_t kernel[CPU_MAX_SPATIAL], stride[CPU_MAX_SPATIAL], dilation[CPU_MAX_SPATIAL];
    int64_t begin[CPU_MAX_SPATIAL], end[CPU_MAX_SPATIAL]; /* padding; may be negative */
    int64_t in_pixels, out_pixels, taps; /* products; taps is saturated, as a pool's kernel has no weights */
} cpu_window;

/* How many positions of the input a window covers. Sizes may be what somebody claims of a tensor without
 * elements, so that this and what is made of it saturates. */
static inline int64_t cpu_window_extent(int64_t kernel, int64_t dilation)
{
    return grt_add_saturated(grt_mul_saturated(grt_sub_saturated(kernel, 1), dilation), 1);
}
/* How many positions of the large side (a convolution's input, a transpose's output) n windows cover. */
static inline int64_t cpu_window_span(const cpu_window *w, int32_t i, int64_t n)
{
    return grt_add_saturated(grt_mul_saturated(grt_sub_saturated(n, 1), w->stride[i]),
                             cpu_window_extent(w->kernel[i], w->dilation[i]));
}

/* Fill the window from the attributes, which lie in the ranges of the op's row, and from sizes, -1 where they
 * are not known; automatic padding is worked out of these. kernel NULL: attribute kernel_shape. transposed:
 * of a ConvTranspose, `in` being the input of that. */
void cpu_window_read(const grt_op_desc *desc, int32_t spatial, const int64_t *in, const int64_t *out,
                     const int64_t *kernel, bool transposed, cpu_window *w);

/* For kernels that count in 32 bits: true if sizes, steps, padding and what a window covers are at most
 * GRT_WINDOW_SMALL, so that every place that a window looks at, in the padding too, fits into int32_t. */
enum { GRT_WINDOW_SMALL = 1 << 29 };
bool cpu_window_is_small(const cpu_window *w);

/* The taps k of dim i for which output position o reads inside the input: [*from, *to); position of tap k is
 * *first + k * dilation. */
static inline void cpu_window_taps(const cpu_window *w, int32_t i, int64_t o, int64_t *from, int64_t *to,
                                   int64_t *first)
{
    const int64_t at = o * w->stride[i] - w->begin[i], d = w->dilation[i];
    *first = at;
    *from = at < 0 ? -at : 0;
    int64_t last = at < w->in[i] ? w->in[i] - at : 0;
    if (d != 1) { /* divisions cost more than the rest of a small window */
        *from = (*from + d - 1) / d;
        last = (last + d - 1) / d;
    }
    *to = last < w->kernel[i] ? last : w->kernel[i];
    if (*from > *to)
        *from = *to;
}

#ifdef __cplusplus
}
#endif

#endif
