/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_taps.h. A block of outputs stays in a cache while the taps' products are added to it; those that a
 * tap finds in the padding are left out of its product. Blocks do not depend on the number of threads, so
 * that results do not. */
#include "backends/cpu/conv_taps.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/epilogue.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    BLOCK = 96,          /* outputs */
    LEAST_CHANNELS = 16, /* on either side */
};

bool cpu_conv_taps_fits(const cpu_conv *c)
{
    return c->last && c->groups > 0 && c->w.spatial == 1 && c->in_channels / c->groups >= LEAST_CHANNELS &&
           c->out_channels / c->groups >= LEAST_CHANNELS;
}

/* Of one group. */
static size_t floats_of_tap(const cpu_conv *c)
{
    size_t floats = 0;
    grt_gemm_packed_b_floats(c->in_channels / c->groups, c->out_channels / c->groups, &floats);
    return floats;
}

bool cpu_conv_taps_floats(const cpu_conv *c, size_t *out_floats)
{
    return grt_gemm_packed_b_floats(c->in_channels / c->groups, c->out_channels / c->groups, out_floats) &&
           grt_mul_size(*out_floats, (size_t)c->w.taps, out_floats) &&
           grt_mul_size(*out_floats, (size_t)c->groups, out_floats) &&
           *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* For each group each tap's matrix, by panels of outputs. */
void cpu_conv_taps_pack(const cpu_conv *c, const float *w, float *packed)
{
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups, taps = c->w.taps;
    for (int64_t g = 0; g < c->groups; g++, w += out * in * taps)
        for (int64_t t = 0; t < taps; t++, packed += floats_of_tap(c))
            for (int64_t panel = 0; panel < out; panel += GRT_GEMM_PANEL)
                for (int64_t i = 0; i < in; i++)
                    for (int64_t j = 0; j < GRT_GEMM_PANEL; j++)
                        packed[panel * in + i * GRT_GEMM_PANEL + j] =
                            panel + j < out ? w[((panel + j) * in + i) * taps + t] : 0.0f;
}

bool cpu_conv_taps_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    (void)c;
    (void)threads;
    *out_bytes = 0;
    return true;
}

/* Outputs [*from, *to) of [first, end) for which tap t reads inside the input. */
static void outputs_inside(const cpu_window *w, int64_t t, int64_t first, int64_t end, int64_t *from,
                           int64_t *to)
{
    const int64_t shift = t * w->dilation[0] - w->begin[0], stride = w->stride[0], left = w->in[0] - shift;
    const int64_t low = shift < 0 ? (stride - 1 - shift) / stride : 0,
                  high = left > 0 ? (left + stride - 1) / stride : 0;
    *from = grt_max64(low, first);
    *to = grt_max64(grt_min64(high, end), *from);
}

/* Of one group. */
typedef struct taps_work {
    const cpu_conv *c;
    const float *packed, *bias;
    size_t step; /* floats of a tap's matrix */
    int64_t in, out;
} taps_work;

/* The product of tap t for outputs [from, to); adds: to what y holds. */
static void multiply_tap(const taps_work *w, const float *x, int64_t t, int64_t from, int64_t to, bool adds,
                         float *y)
{
    const cpu_conv *c = w->c;
    const int64_t first = from * c->w.stride[0] + t * c->w.dilation[0] - c->w.begin[0];
    const grt_gemm product = {.batch = 1,
                              .m = to - from,
                              .n = w->out,
                              .k = w->in,
                              .lda = c->w.stride[0] * c->in_channels,
                              .ldc = c->out_channels,
                              .b_packed = true,
                              .alpha = 1.0f,
                              .beta = adds ? 1.0f : 0.0f,
                              .bias = adds ? NULL : w->bias};
    grt_gemm_run(&product, x + first * c->in_channels, w->packed + (size_t)t * w->step,
                 y + from * c->out_channels, NULL, 1);
}

/* Outputs that no single tap begins. */
static void begin_with_bias(const taps_work *w, int64_t first, int64_t end, float *y)
{
    const size_t bytes = (size_t)w->out * sizeof *y;
    for (int64_t o = first; o < end; o++)
        if (w->bias)
            memcpy(y + o * w->c->out_channels, w->bias, bytes);
        else
            memset(y + o * w->c->out_channels, 0, bytes);
}

/* Outputs [first, end) of the line at y from the one at x. */
static void run_taps(const taps_work *w, const float *x, int64_t first, int64_t end, float *y)
{
    const cpu_conv *c = w->c;
    int64_t from, to, begun = 0;
    for (; begun < c->w.taps; begun++) {
        outputs_inside(&c->w, begun, first, end, &from, &to);
        if (from == first && to == end)
            break;
    }
    if (begun < c->w.taps)
        multiply_tap(w, x, begun, first, end, false, y);
    else
        begin_with_bias(w, first, end, y);
    for (int64_t t = 0; t < c->w.taps; t++) {
        outputs_inside(&c->w, t, first, end, &from, &to);
        if (t != begun && from < to)
            multiply_tap(w, x, t, from, to, true, y);
    }
}

void cpu_conv_taps_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads)
{
    (void)workspace;
    const size_t step = floats_of_tap(c);
    const int64_t outputs = c->w.out[0], blocks = (outputs + BLOCK - 1) / BLOCK, groups = c->groups,
                  in = c->in_channels / groups, out = c->out_channels / groups;
#pragma omp parallel for num_threads(threads) if (threads > 1 && c->batch * blocks * groups > 1) \
    schedule(static)
    for (int64_t item = 0; item < c->batch * blocks * groups; item++) {
        const int64_t group = item % groups, block = item / groups % blocks, image = item / groups / blocks,
                      first = block * BLOCK, end = grt_min64(first + BLOCK, outputs),
                      at = image * outputs * c->out_channels + group * out,
                      mine = at + first * c->out_channels;
        const taps_work w = {
            c, packed + (size_t)(group * c->w.taps) * step, bias ? bias + group * out : NULL, step, in, out};
        run_taps(&w, x + image * c->w.in[0] * c->in_channels + group * in, first, end, y + at);
        const int64_t lines = groups > 1 ? end - first : 1; /* one group's are one line */
        for (int64_t i = 0; i < lines; i++) {
            const int64_t line = mine + i * c->out_channels;
            const grt_epilogue e = {.rows = 1,
                                    .cols = (end - first) / lines * out,
                                    .residual = residual ? residual + line : NULL,
                                    .act = c->act};
            grt_epilogue_run(&e, y + line, 1);
        }
    }
}
