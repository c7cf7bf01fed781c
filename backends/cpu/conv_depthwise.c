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

enum {
    CHUNK = 96,            /* pixels of a line that are one thread's piece of work */
    CACHED_BYTES = 1 << 19 /* of the lines that a window sees: with more, they would not stay in a cache */
};

bool cpu_depthwise_fits(const cpu_conv *c)
{
    return c->last && c->groups > 1 && c->in_channels == c->groups && c->out_channels == c->groups;
}

bool cpu_depthwise_is_dense(const cpu_conv *c)
{
    const depthwise_kernel *const kernel = cpu_depthwise_best();
    const int32_t last = c->w.spatial - 1;
    return kernel->run_line && c->groups >= kernel->lanes && c->w.stride[last] == 1 &&
           c->w.dilation[last] == 1 && c->w.kernel[last] > 1;
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
    for (int64_t block = 0; block < c->groups; block += lanes) {
        const int64_t first = c->groups < lanes ? block : grt_min64(block, c->groups - lanes);
        for (int64_t t = 0; t < c->w.taps; t++)
            for (int64_t channel = first; channel < first + lanes; channel++)
                *packed++ = channel < c->groups ? w[channel * c->w.taps + t] : 0.0f;
    }
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
    bool dense;            /* lines are run_line's */
    int64_t lines, chunks; /* of the output; of each line */
    int64_t parts, blocks; /* of the channels, and blocks of channels in each */
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

/* Outputs [begin, end) of the line at y. d: what is the same for all of it. */
static void run_cut_line(const depthwise_work *w, const depthwise_pixels *line, int64_t begin, int64_t end)
{
    const cpu_conv *c = w->c;
    const cpu_window *win = &c->w;
    const int32_t last = win->spatial - 1;
    const float *x = line->x;
    depthwise_pixels d = *line;
    for (int64_t o = begin, next; o < end; o = next) {
        int64_t first;
        cpu_window_taps(win, last, o, &d.from, &d.to, &first);
        next = same_taps_until(win, o, end, d.from, d.to);
        const bool some = d.from < d.to && line->n_outer > 0;
        d.n_outer = some ? line->n_outer : 0;
        /* Where nothing is read, not even an address is made. */
        d.x = some ? x + (first + d.from * win->dilation[last]) * c->in_channels : x;
        d.y = line->y + o * c->out_channels;
        d.count = next - o;
        w->kernel->run(&d);
    }
}

/* The same, of the channels of one part. */
static void run_dense_line(const depthwise_work *w, const depthwise_pixels *line, int64_t part, int64_t begin,
                           int64_t end)
{
    const cpu_window *win = &w->c->w;
    const int32_t last = win->spatial - 1;
    const depthwise_line d = {
        .x = line->x,
        .y = line->y,
        .from = begin,
        .to = end,
        .first_block = part * w->blocks,
        .end_block = grt_min64((part + 1) * w->blocks, channel_blocks(w->c)),
        .width = win->in[last],
        .begin = win->begin[last],
        .channels = line->channels,
        .line_taps = win->kernel[last],
        .taps = line->taps,
        .outer = line->outer,
        .n_outer = line->n_outer,
        .packed = line->packed,
        .bias = line->bias,
        .least = line->least,
        .most = line->most,
    };
    w->kernel->run_line(&d);
}

/* Residual and activation of `pixels` pixels from y on, of the channels of one part. */
static void finish_pixels(const depthwise_work *w, int64_t part, int64_t at, int64_t pixels)
{
    const int64_t channels = w->c->out_channels, first = part * w->blocks * w->kernel->lanes,
                  own = w->parts > 1 ? grt_min64(w->blocks * w->kernel->lanes, channels - first) : channels,
                  rows = w->parts > 1 ? pixels : 1, cols = w->parts > 1 ? own : pixels * channels;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t here = at + first + i * channels;
        const grt_epilogue e = {
            .rows = 1, .cols = cols, .residual = w->residual ? w->residual + here : NULL, .act = w->c->act};
        grt_epilogue_run(&e, w->y + here, 1);
    }
}

static void run_depthwise_chunk(const depthwise_work *w, int64_t item, depthwise_tap *outer)
{
    const cpu_conv *c = w->c;
    const cpu_window *win = &c->w;
    const int64_t width = win->out[win->spatial - 1], begin = item % w->chunks * CHUNK,
                  end = grt_min64(begin + CHUNK, width), line = item / w->chunks % w->lines,
                  part = item / w->chunks / w->lines % w->parts,
                  image = item / w->chunks / w->lines / w->parts;
    const int64_t at = (image * win->out_pixels + line * width) * c->out_channels;
    depthwise_pixels d = w->d;
    d.x = w->x + image * win->in_pixels * c->in_channels;
    d.y = w->y + at;
    d.outer = outer;
    d.n_outer = list_outer_taps(c, line, outer);
    if (w->dense)
        run_dense_line(w, &d, part, begin, end);
    else
        run_cut_line(w, &d, begin, end);
    if (!w->bounded)
        finish_pixels(w, part, at + begin * c->out_channels, end - begin);
}

/* Blocks of channels at a time. Parts have no channel in common, as the last block may have with the one
 * before. */
static int64_t blocks_of_a_part(const cpu_conv *c, int64_t lanes)
{
    const int32_t last = c->w.spatial - 1;
    const double bytes =
        (double)(c->w.taps / c->w.kernel[last]) * (double)c->w.in[last] * (double)lanes * sizeof(float);
    const int64_t blocks = channel_blocks(c);
    if (c->groups % lanes != 0 || bytes * (double)blocks <= 2.0 * CACHED_BYTES)
        return blocks;
    return bytes < CACHED_BYTES ? (int64_t)(CACHED_BYTES / bytes) : 1;
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
    const depthwise_kernel *const kernel = cpu_depthwise_best();
    const bool dense = cpu_depthwise_is_dense(c);
    const int64_t all = channel_blocks(c), blocks = dense ? blocks_of_a_part(c, kernel->lanes) : all;
    const depthwise_work w = {.c = c,
                              .kernel = kernel,
                              .d = all_pixels(c, packed, bias, bounded),
                              .bounded = bounded,
                              .dense = dense,
                              .lines = width ? c->w.out_pixels / width : 0,
                              .chunks = (width + CHUNK - 1) / CHUNK,
                              .parts = (all + blocks - 1) / blocks,
                              .blocks = blocks,
                              .x = x,
                              .residual = residual,
                              .y = y};
    const double work =
        (double)c->batch * (double)c->w.out_pixels * (double)c->out_channels * (double)c->w.taps;
#pragma omp parallel for num_threads(threads) if (threads > 1 && work > 8.0 * CPU_GRAIN) schedule(static)
    for (int64_t item = 0; item < c->batch * w.parts * w.lines * w.chunks; item++)
        run_depthwise_chunk(&w, item, (depthwise_tap *)workspace + (int64_t)cpu_thread() * c->w.taps);
}
