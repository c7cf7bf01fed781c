/* SPDX-License-Identifier: Apache-2.0 */
/* A sliding window over concrete sizes: what convolutions and pools read from their attributes. */
#ifndef GRT_BACKENDS_SHARED_WINDOW_H
#define GRT_BACKENDS_SHARED_WINDOW_H

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

/* Fill the window from the attributes and from known sizes; automatic padding is worked out. kernel NULL:
 * attribute kernel_shape. transposed: of a ConvTranspose, `in` being the input of that. */
void cpu_window_read(const grt_op_desc *desc, int32_t spatial, const int64_t *in, const int64_t *out,
                     const int64_t *kernel, bool transposed, cpu_window *w);

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
