/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows over concrete sizes. */
#include "backends/shared/window.h"

#include <string.h>

static int64_t window_entry(const int64_t *values, size_t n, int32_t i, int64_t fallback)
{
    return values && (size_t)i < n ? values[i] : fallback;
}

void cpu_window_read(const grt_op_desc *desc, int32_t spatial, const int64_t *in, const int64_t *out,
                     const int64_t *kernel, bool transposed, cpu_window *w)
{
    size_t n_kernel, n_stride, n_dilation, n_pads, n_extra, n_shape;
    const int64_t *shape = grt_attr_ints(desc, "kernel_shape", &n_kernel),
                  *strides = grt_attr_ints(desc, "strides", &n_stride);
    const int64_t *dilations = grt_attr_ints(desc, "dilations", &n_dilation),
                  *pads = grt_attr_ints(desc, "pads", &n_pads);
    const int64_t *extra = grt_attr_ints(desc, "output_padding", &n_extra);
    const char *mode = grt_attr_string(desc, "auto_pad", "NOTSET");
    const bool upper = !strcmp(mode, "SAME_UPPER"), lower = !strcmp(mode, "SAME_LOWER"),
               valid = !strcmp(mode, "VALID");
    const bool sized = transposed && grt_attr_ints(desc, "output_shape", &n_shape) != NULL;
    *w = (cpu_window){.spatial = spatial, .in_pixels = 1, .out_pixels = 1, .taps = 1};
    for (int32_t i = 0; i < spatial; i++) {
        w->in[i] = in[i];
        w->out[i] = out[i];
        w->kernel[i] = kernel ? kernel[i] : window_entry(shape, n_kernel, i, 1);
        w->stride[i] = window_entry(strides, n_stride, i, 1);
        w->dilation[i] = window_entry(dilations, n_dilation, i, 1);
        w->in_pixels = grt_mul_saturated(w->in_pixels, in[i]);
        w->out_pixels = grt_mul_saturated(w->out_pixels, out[i]);
        w->taps = grt_mul_saturated(w->taps, w->kernel[i]);
        if (upper || lower || sized) {
            int64_t total = grt_sub_saturated(cpu_window_span(w, i, transposed ? in[i] : out[i]),
                                              transposed ? out[i] : in[i]);
            if (transposed)
                total = grt_add_saturated(total, window_entry(extra, n_extra, i, 0));
            total = total < 0 ? 0 : total;
            /* A pool's or convolution's odd pixel goes where the mode says; ConvTranspose's definition has it
             * the other way. */
            const bool small_first = transposed ? upper : !lower;
            w->begin[i] = small_first ? total / 2 : total - total / 2;
            w->end[i] = total - w->begin[i];
        } else if (!valid) {
            w->begin[i] = window_entry(pads, n_pads, i, 0);
            w->end[i] = window_entry(pads, n_pads, i + spatial, 0);
        }
    }
}

bool cpu_window_is_small(const cpu_window *w)
{
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t numbers[] = {
            w->in[i],       w->out[i],   w->kernel[i], w->stride[i],
            w->dilation[i], w->begin[i], w->end[i],    cpu_window_extent(w->kernel[i], w->dilation[i])};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (numbers[k] < -GRT_WINDOW_SMALL || numbers[k] > GRT_WINDOW_SMALL)
                return false;
    }
    return true;
}
