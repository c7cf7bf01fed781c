/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and its transpose in double, for every float type: plain loops over the window. */
#include "backends/cpu/conv.h"
#include "src/base/element.h"

/* Elements from one channel, and from one pixel, to the next. */
static int64_t channel_step(const cpu_conv *c)
{
    return c->last ? 1 : c->w.in_pixels;
}

static int64_t pixel_step(const cpu_conv *c)
{
    return c->last ? c->in_channels : 1;
}

/* Sums x over the taps that reach output pixel `o` of a convolution. */
static double conv_exact_gather(const cpu_conv *c, grt_dtype dtype, const void *x, int64_t image,
                                const void *w, int64_t filter, const int64_t *o)
{
    const cpu_window *win = &c->w;
    const int64_t channels = c->in_channels / c->groups;
    double sum = 0.0;
    for (int64_t tap = 0; channels && tap < win->taps; tap++) {
        int64_t at = 0, rest = tap, unit = 1;
        bool inside = true;
        for (int32_t i = win->spatial - 1; i >= 0 && inside; i--) {
            const int64_t p =
                o[i] * win->stride[i] + rest % win->kernel[i] * win->dilation[i] - win->begin[i];
            rest /= win->kernel[i];
            inside = p >= 0 && p < win->in[i];
            at += p * unit;
            unit *= win->in[i];
        }
        for (int64_t ch = 0; inside && ch < channels; ch++)
            sum += grt_element_load(dtype, x, image + ch * channel_step(c) + at * pixel_step(c)) *
                   grt_element_load(dtype, w, filter + ch * win->taps + tap);
    }
    return sum;
}

/* The same for the transpose: tap k of input pixel p lands on p * stride + k * dilation - begin. */
static double gather_transposed(const cpu_conv *c, grt_dtype dtype, const void *x, int64_t image,
                                const void *w, int64_t filter, int64_t filter_step, const int64_t *o)
{
    const cpu_window *win = &c->w;
    const int64_t channels = c->in_channels / c->groups;
    double sum = 0.0;
    for (int64_t tap = 0; channels && tap < win->taps; tap++) {
        int64_t at = 0, rest = tap, unit = 1;
        bool inside = true;
        for (int32_t i = win->spatial - 1; i >= 0 && inside; i--) {
            const int64_t p = o[i] + win->begin[i] - rest % win->kernel[i] * win->dilation[i];
            rest /= win->kernel[i];
            inside = p >= 0 && p % win->stride[i] == 0 && p / win->stride[i] < win->in[i];
            at += p / win->stride[i] * unit;
            unit *= win->in[i];
        }
        for (int64_t ch = 0; inside && ch < channels; ch++)
            sum += grt_element_load(dtype, x, image + ch * channel_step(c) + at * pixel_step(c)) *
                   grt_element_load(dtype, w, filter + ch * filter_step + tap);
    }
    return sum;
}

static void conv_exact_run(const cpu_conv *c, grt_dtype dtype, const void *x, const void *w, const void *bias,
                           void *y, int threads, bool transposed)
{
    const int64_t oc = c->out_channels / c->groups, ic = c->in_channels / c->groups;
#pragma omp parallel for num_threads(threads)
    for (int64_t plane = 0; plane < c->batch * c->out_channels; plane++) {
        const int64_t b = plane / c->out_channels, m = plane % c->out_channels, group = m / oc;
        const int64_t image = b * c->in_channels * c->w.in_pixels + group * ic * channel_step(c);
        const double start = bias ? grt_element_load(dtype, bias, m) : 0.0;
        for (int64_t pixel = 0; pixel < c->w.out_pixels; pixel++) {
            int64_t o[CPU_MAX_SPATIAL], rest = pixel;
            for (int32_t i = c->w.spatial - 1; i >= 0; i--) {
                o[i] = rest % c->w.out[i];
                rest /= c->w.out[i];
            }
            const double sum =
                transposed ? gather_transposed(c, dtype, x, image, w, (group * ic * oc + m % oc) * c->w.taps,
                                               oc * c->w.taps, o)
                           : conv_exact_gather(c, dtype, x, image, w, m * ic * c->w.taps, o);
            const int64_t at = c->last ? (b * c->w.out_pixels + pixel) * c->out_channels + m
                                       : plane * c->w.out_pixels + pixel;
            grt_element_store(dtype, y, at, start + sum);
        }
    }
}

void cpu_conv_exact(const cpu_conv *c, grt_dtype dtype, const void *x, const void *w, const void *bias,
                    void *y, int threads)
{
    conv_exact_run(c, dtype, x, w, bias, y, threads, false);
}

void cpu_conv_transpose_exact(const cpu_conv *c, grt_dtype dtype, const void *x, const void *w,
                              const void *bias, void *y, int threads)
{
    conv_exact_run(c, dtype, x, w, bias, y, threads, true);
}
