/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as unfolding and matrix product: any number of spatial dims, any window, weights known at run
 * time only. */
#include "backends/cpu/conv.h"

#include <string.h>

/* Steps an odometer over sizes; the last dim fastest. */
static void conv_unfold_step(int64_t *index, const int64_t *sizes, int32_t rank)
{
    for (int32_t i = rank - 1; i >= 0 && ++index[i] == sizes[i]; i--)
        index[i] = 0;
}

/* Channels first: row (channel, tap) of `columns` holds that tap's value for every output pixel. */
static void unfold_row(const cpu_window *w, const float *plane, int64_t tap, float *row)
{
    int64_t k[CPU_MAX_SPATIAL], o[CPU_MAX_SPATIAL] = {0};
    const int32_t last = w->spatial - 1;
    for (int32_t i = last; i >= 0; i--) {
        k[i] = tap % w->kernel[i];
        tap /= w->kernel[i];
    }
    const int64_t lines = w->out[last] ? w->out_pixels / w->out[last] : 0, stride = w->stride[last];
    const int64_t shift = k[last] * w->dilation[last] - w->begin[last];
    for (int64_t line = 0; line < lines; line++, row += w->out[last]) {
        int64_t at = 0;
        bool inside = true;
        for (int32_t i = 0; i < last; i++) {
            const int64_t p = o[i] * w->stride[i] + k[i] * w->dilation[i] - w->begin[i];
            inside = inside && p >= 0 && p < w->in[i];
            at = at * w->in[i] + p;
        }
        if (!inside) {
            memset(row, 0, (size_t)w->out[last] * sizeof *row);
        } else {
            const float *from = plane + at * w->in[last];
            for (int64_t x = 0; x < w->out[last]; x++) {
                const int64_t p = x * stride + shift;
                row[x] = p >= 0 && p < w->in[last] ? from[p] : 0.0f;
            }
        }
        conv_unfold_step(o, w->out, last);
    }
}

/* Channels last: row (output pixel) holds all (channel, tap) values, in the order of the weights. */
static void unfold_pixel(const cpu_conv *c, const float *image, int64_t first_channel, int64_t channels,
                         int64_t pixel, float *row)
{
    const cpu_window *w = &c->w;
    int64_t o[CPU_MAX_SPATIAL], k[CPU_MAX_SPATIAL] = {0};
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        o[i] = pixel % w->out[i];
        pixel /= w->out[i];
    }
    for (int64_t tap = 0; tap < w->taps; tap++) {
        int64_t at = 0;
        bool inside = true;
        for (int32_t i = 0; i < w->spatial; i++) {
            const int64_t p = o[i] * w->stride[i] + k[i] * w->dilation[i] - w->begin[i];
            inside = inside && p >= 0 && p < w->in[i];
            at = at * w->in[i] + p;
        }
        const float *from = image + at * c->in_channels + first_channel;
        for (int64_t ch = 0; ch < channels; ch++)
            row[ch * w->taps + tap] = inside ? from[ch] : 0.0f;
        conv_unfold_step(k, w->kernel, w->spatial);
    }
}

static grt_gemm conv_unfold_product(const cpu_conv *c)
{
    const int64_t k = c->in_channels / c->groups * c->w.taps, oc = c->out_channels / c->groups,
                  pixels = c->w.out_pixels;
    grt_gemm g = {.batch = 1, .k = k, .alpha = 1.0f, .act = c->act};
    g.m = c->last ? pixels : oc;
    g.n = c->last ? oc : pixels;
    g.lda = k;
    g.ldb = c->last ? k : pixels;
    g.trans_b = c->last;
    g.ldc = g.ldr = c->last ? c->out_channels : pixels;
    return g;
}

static size_t columns_floats(const cpu_conv *c, bool *overflow)
{
    cpu_layout layout = {0};
    int64_t n;
    if (!grt_mul_i64(c->in_channels / c->groups * c->w.taps, c->w.out_pixels, &n))
        layout.overflow = true;
    else
        cpu_layout_add(&layout, n, sizeof(float));
    *overflow = layout.overflow;
    return layout.bytes;
}

bool cpu_conv_unfold_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    const grt_gemm g = conv_unfold_product(c);
    bool overflow;
    size_t columns = columns_floats(c, &overflow), scratch;
    return !overflow && grt_gemm_scratch_bytes(&g, threads, &scratch) &&
           grt_add_size(columns, scratch, out_bytes);
}

void cpu_conv_unfold_run(const cpu_conv *c, const float *x, const float *w, const float *bias,
                         const float *residual, float *y, void *workspace, int threads)
{
    const int64_t ic = c->in_channels / c->groups, oc = c->out_channels / c->groups, k = ic * c->w.taps;
    const int64_t pixels = c->w.out_pixels;
    grt_gemm g = conv_unfold_product(c);
    bool overflow;
    float *columns = workspace;
    void *scratch = (char *)workspace + columns_floats(c, &overflow);
    for (int64_t item = 0; item < c->batch * c->groups; item++) {
        const int64_t b = item / c->groups, group = item % c->groups;
        const float *image = x + b * c->in_channels * c->w.in_pixels;
        if (c->last) {
#pragma omp parallel for num_threads(threads) if (pixels * k > 32768)
            for (int64_t p = 0; p < pixels; p++)
                unfold_pixel(c, image, group * ic, ic, p, columns + p * k);
        } else {
#pragma omp parallel for num_threads(threads) if (pixels * k > 32768)
            for (int64_t r = 0; r < k; r++)
                unfold_row(&c->w, image + (group * ic + r / c->w.taps) * c->w.in_pixels, r % c->w.taps,
                           columns + r * pixels);
        }
        const int64_t at = b * c->out_channels * pixels + group * oc * (c->last ? 1 : pixels);
        g.residual = residual ? residual + at : NULL;
        g.bias = bias && c->last ? bias + group * oc : NULL;
        g.bias_row = bias && !c->last ? bias + group * oc : NULL;
        const float *weights = w + group * oc * k;
        grt_gemm_run(&g, c->last ? columns : weights, c->last ? weights : columns, y + at, scratch, threads);
    }
}
