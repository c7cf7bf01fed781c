/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_depthwise.h. A line of the output is cut where taps begin or end to lie in the padding; what has
 * the same taps goes to the loops together. */
#include "backends/cpu/conv_depthwise.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/depthwise_kernel.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <math.h>

enum { CHUNK = 96 }; /* pixels of a line that are one thread's piece of work */

bool cpu_depthwise_fits(const cpu_conv *c)
{
    return c->last && c->groups > 1 && c->in_channels == c->groups && c->out_channels == c->groups;
}

static int64_t channel_blocks(const cpu_conv *c)
{
    const int64_t lanes = cpu_depthwise_best()->lanes;
    return c->groups / lanes + (c->groups % lanes != 0);
}

bool cpu_depthwise_floats(const cpu_conv *c, size_t *out_floats)
{
    return grt_mul_size((size_t)(channel_blocks(c) * cpu_depthwise_best()->lanes), (size_t)c->w.taps,
                        out_floats) &&
           *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

void cpu_depthwise_pack(const cpu_conv *c, const float *w, float *packed)
{
    const int64_t lanes = cpu_depthwise_best()->lanes;
    for (int64_t block = 0; block < c->groups; block += lanes)
        for (int64_t t = 0; t < c->w.taps; t++)
            for (int64_t channel = block; channel < block + lanes; channel++)
                *packed++ = channel < c->groups ? w[channel * c->w.taps + t] : 0.0f;
}

bool cpu_depthwise_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    return grt_mul_size((size_t)c->w.taps, sizeof(depthwise_tap) * (size_t)threads, out_bytes);
}

/* A run; d: what is the same for all pixels. */
typedef struct depthwise_work {
    const cpu_conv *c;
    const depthwise_kernel *kernel;
    depthwise_pixels d;
    bool bounded;          /* the loops apply the activation */
    int64_t lines, chunks; /* of the output; of each line */
    const float *x, *residual;
    float *y;
} depthwise_work;

/* The taps of line `line` of the output that lie inside in all dims but the last. */
static int64_t list_outer_taps(const cpu_conv *c, int64_t line, depthwise_tap *taps)
{
    const cpu_window *w = &c->w;
    const int32_t last = w->spatial - 1;
    int64_t k[CPU_MAX_SPATIAL], low[CPU_MAX_SPATIAL], high[CPU_MAX_SPATIAL], at[CPU_MAX_SPATIAL], n = 1;
    for (int32_t i = last - 1; i >= 0; i--) {
        cpu_window_taps(w, i, line % w->out[i], &low[i], &high[i], &at[i]);
        line /= w->out[i];
        k[i] = low[i];
        n *= high[i] - low[i];
    }
    for (int64_t t = 0; t < n; t++) {
        int64_t position = 0, weights = 0;
        for (int32_t i = 0; i < last; i++) {
            position = (position + at[i] + k[i] * w->dilation[i]) * w->in[i + 1];
            weights = (weights + k[i]) * w->kernel[i + 1];
        }
        taps[t] = (depthwise_tap){position * c->in_channels, weights};
        for (int32_t i = last - 1; i >= 0 && ++k[i] >= high[i]; i--)
            k[i] = low[i];
    }
    return n;
}

/* The first output of the line behind o whose taps are others. */
static int64_t same_taps_until(const cpu_window *w, int64_t o, int64_t end, int64_t from, int64_t to)
{
    const int32_t last = w->spatial - 1;
    while (++o < end) {
        int64_t next_from, next_to, first;
        cpu_window_taps(w, last, o, &next_from, &next_to, &first);
        if (next_from != from || next_to != to)
            break;
    }
    return o;
}

static void run_depthwise_chunk(const depthwise_work *w, int64_t item, depthwise_tap *outer)
{
    const cpu_conv *c = w->c;
    const cpu_window *win = &c->w;
    const int32_t last = win->spatial - 1;
    const int64_t begin = item % w->chunks * CHUNK, end = grt_min64(begin + CHUNK, win->out[last]),
                  line = item / w->chunks % w->lines, image = item / w->chunks / w->lines;
    const int64_t at = (image * win->out_pixels + line * win->out[last]) * c->out_channels,
                  mine = at + begin * c->out_channels;
    const float *x = w->x + image * win->in_pixels * c->in_channels;
    const int64_t n_outer = list_outer_taps(c, line, outer);
    depthwise_pixels d = w->d;
    d.outer = outer;
    for (int64_t o = begin, next; o < end; o = next) {
        int64_t first;
        cpu_window_taps(win, last, o, &d.from, &d.to, &first);
        next = same_taps_until(win, o, end, d.from, d.to);
        const bool some = d.from < d.to && n_outer > 0;
        d.n_outer = some ? n_outer : 0;
        /* Where nothing is read, not even an address is made. */
        d.x = some ? x + (first + d.from * win->dilation[last]) * c->in_channels : x;
        d.y = w->y + at + o * c->out_channels;
        d.count = next - o;
        w->kernel->run(&d);
    }
    if (w->bounded)
        return;
    const grt_epilogue e = {.rows = 1,
                            .cols = (end - begin) * c->out_channels,
                            .residual = w->residual ? w->residual + mine : NULL,
                            .act = c->act};
    grt_epilogue_run(&e, w->y + mine, 1);
}

static depthwise_pixels all_pixels(const cpu_conv *c, const float *packed, const float *bias, bool bounded)
{
    const int32_t last = c->w.spatial - 1;
    const bool clip = bounded && c->act.kind == GRT_ACT_CLIP, relu = bounded && c->act.kind == GRT_ACT_RELU;
    return (depthwise_pixels){
        .step = c->w.stride[last] * c->in_channels,
        .tap_step = c->w.dilation[last] * c->in_channels,
        .channels = c->out_channels,
        .taps = c->w.taps,
        .packed = packed,
        .bias = bias,
        .least = clip   ? c->act.a
                 : relu ? 0.0f
                        : -INFINITY,
        .most = clip ? c->act.b : INFINITY,
    };
}

void cpu_depthwise_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads)
{
    const int64_t width = c->w.out[c->w.spatial - 1];
    const bool bounded = !residual && (c->act.kind == GRT_ACT_NONE || c->act.kind == GRT_ACT_RELU ||
                                       c->act.kind == GRT_ACT_CLIP);
    const depthwise_work w = {.c = c,
                              .kernel = cpu_depthwise_best(),
                              .d = all_pixels(c, packed, bias, bounded),
                              .bounded = bounded,
                              .lines = width ? c->w.out_pixels / width : 0,
                              .chunks = (width + CHUNK - 1) / CHUNK,
                              .x = x,
                              .residual = residual,
                              .y = y};
    const double work =
        (double)c->batch * (double)c->w.out_pixels * (double)c->out_channels * (double)c->w.taps;
#pragma omp parallel for num_threads(threads) if (threads > 1 && work > 8.0 * CPU_GRAIN) schedule(static)
    for (int64_t item = 0; item < c->batch * w.lines * w.chunks; item++)
        run_depthwise_chunk(&w, item, (depthwise_tap *)workspace + (int64_t)cpu_thread() * c->w.taps);
}
