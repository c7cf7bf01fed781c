/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_pixels.h. Pixels that a stride leaves out are dropped by copying the others together, a block of
 * them at a time. */
#include "backends/cpu/conv_pixels.h"

#include "backends/cpu/cpu.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    MOST_CACHED = 3 << 17, /* weights up to which oneDNN's kernel finds them in the second-level cache */
    BLOCK = 256,           /* pixels that are copied at a time */
};

/* Of weights with one, two and three spatial dims. */
static const char *const formats[] = {"ABc16b16a", "ABcd16b16a", "ABcde16b16a"};

static bool reads_all_pixels(const cpu_window *w)
{
    bool all = true;
    for (int32_t i = 0; i < w->spatial; i++)
        all &= w->stride[i] == 1;
    return all;
}

static bool is_padded(const cpu_window *w)
{
    bool padded = false;
    for (int32_t i = 0; i < w->spatial; i++)
        padded |= w->begin[i] != 0 || (w->out[i] - 1) * w->stride[i] >= w->in[i];
    return padded;
}

/* brgconv_1x1 is as fast as products. */
bool cpu_conv_pixels_fits(const cpu_conv *c, const char *impl)
{
    return c->last && c->groups == 1 && c->w.taps == 1 && !is_padded(&c->w) && c->out_channels > 0 &&
           c->in_channels >= MOST_CACHED / c->out_channels && !strncmp(impl, "jit_1x1:", strlen("jit_1x1:"));
}

bool cpu_conv_pixels_reads(const cpu_conv *c, const char *format)
{
    return format && !strcmp(format, formats[c->w.spatial - 1]);
}

static grt_gemm pixels_product(const cpu_conv *c, int64_t pixels)
{
    return (grt_gemm){.batch = 1,
                      .m = pixels,
                      .n = c->out_channels,
                      .k = c->in_channels,
                      .lda = c->in_channels,
                      .ldc = c->out_channels,
                      .ldr = c->out_channels,
                      .b_packed = true,
                      .packed_k = (c->in_channels + GRT_GEMM_PANEL - 1) / GRT_GEMM_PANEL * GRT_GEMM_PANEL,
                      .alpha = 1.0f,
                      .act = c->act};
}

static int64_t pixels_at_a_time(const cpu_conv *c)
{
    const int64_t pixels = c->batch * c->w.out_pixels;
    return reads_all_pixels(&c->w) ? pixels : grt_min64(pixels, BLOCK);
}

/* A block of copies; a product of packed weights needs no scratch. */
bool cpu_conv_pixels_bytes(const cpu_conv *c, size_t *out_bytes)
{
    cpu_layout layout = {0};
    if (!reads_all_pixels(&c->w))
        cpu_layout_add(&layout, pixels_at_a_time(c), (size_t)c->in_channels * sizeof(float));
    *out_bytes = layout.bytes;
    return !layout.overflow;
}

/* The input's pixel that pixel `at` of the output reads, counted over all images. */
static int64_t pixel_read(const cpu_conv *c, int64_t at)
{
    const cpu_window *w = &c->w;
    int64_t left = at % w->out_pixels, pixel = 0, step = 1;
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        pixel += left % w->out[i] * w->stride[i] * step;
        left /= w->out[i];
        step *= w->in[i];
    }
    return at / w->out_pixels * w->in_pixels + pixel;
}

static void copy_pixels(const cpu_conv *c, const float *x, int64_t first, int64_t count, float *to,
                        int threads)
{
    const int64_t k = c->in_channels;
#pragma omp parallel for num_threads(threads) if (threads > 1 && count * k > CPU_GRAIN) schedule(static)
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * k, x + pixel_read(c, first + i) * k, (size_t)k * sizeof *to);
}

void cpu_conv_pixels_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                         const float *residual, float *y, void *workspace, int threads)
{
    const int64_t pixels = c->batch * c->w.out_pixels, n = c->out_channels, block = pixels_at_a_time(c);
    const bool all = reads_all_pixels(&c->w);
    for (int64_t first = 0; first < pixels; first += block) {
        grt_gemm g = pixels_product(c, grt_min64(block, pixels - first));
        g.bias = bias;
        g.residual = residual ? residual + first * n : NULL;
        if (!all)
            copy_pixels(c, x, first, g.m, workspace, threads);
        grt_gemm_run(&g, all ? x : workspace, packed, y + first * n, NULL, threads);
    }
}
