/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_dots.h. A line of the output is cut where taps begin or end to lie in the padding. */
#include "backends/cpu/conv_dots.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/rows.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

enum {
    MOST_OUTPUTS = 4, /* channels: from there on oneDNN's vectors are full enough */
    LEAST_ROW = 32,   /* floats of a window's line: shorter ones cost more to add up than to multiply */
    LEAST_POINT = 64, /* the same for each output of a window of one tap, which oneDNN multiplies fastest */
    CHUNK = 64        /* pixels of a line that are one thread's piece of work */
};

bool cpu_conv_dots_fits(const cpu_conv *c)
{
    const int32_t last = c->w.spatial - 1;
    if (!c->last || c->groups != 1 || c->out_channels > MOST_OUTPUTS || last < 0 || c->w.dilation[last] != 1)
        return false;
    const int64_t least = c->w.taps == 1 ? LEAST_POINT * c->out_channels : LEAST_ROW;
    return c->in_channels * c->w.kernel[last] >= least;
}

bool cpu_conv_dots_floats(const cpu_conv *c, size_t *out_floats)
{
    return grt_mul_size((size_t)c->in_channels, (size_t)c->w.taps, out_floats) &&
           grt_mul_size(*out_floats, (size_t)c->out_channels, out_floats) &&
           *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* [output][tap][input channel] */
void cpu_conv_dots_pack(const cpu_conv *c, const float *w, float *packed)
{
    const int64_t in = c->in_channels, taps = c->w.taps;
    for (int64_t o = 0; o < c->out_channels; o++, w += in * taps)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t i = 0; i < in; i++)
                *packed++ = w[i * taps + t];
}

bool cpu_conv_dots_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    (void)c;
    (void)threads;
    *out_bytes = 0;
    return true;
}

/* Neighbouring outputs of a line that have the same taps of the last dim, [from, to), the first of which
 * reads column `first`. */
typedef struct dots_run {
    int64_t o, count, from, to, first;
} dots_run;

/* The longest run from output o on, which ends before `end`. */
static dots_run run_of_outputs(const cpu_window *w, int64_t o, int64_t end)
{
    const int32_t last = w->spatial - 1;
    dots_run r = {.o = o};
    cpu_window_taps(w, last, o, &r.from, &r.to, &r.first);
    while (++o < end && o - r.o < CHUNK) {
        int64_t from, to, first;
        cpu_window_taps(w, last, o, &from, &to, &first);
        if (from != r.from || to != r.to)
            break;
    }
    r.count = o - r.o;
    return r;
}

/* Adds the products of one line of the window, whose first tap is `tap`; row: the line of the input. */
static void add_row(const cpu_conv *c, const dots_run *r, const float *row, const float *packed, int64_t tap,
                    float *y)
{
    const int64_t in = c->in_channels, outs = c->out_channels, size = (r->to - r->from) * in;
    const float *x = row + (r->first + r->from) * in;
    float sums[CHUNK];
    for (int64_t o = 0; o < outs; o++) {
        const float *w = packed + (o * c->w.taps + tap + r->from) * in;
        cpu_rows_best()->dots(w, x, c->w.stride[c->w.spatial - 1] * in, r->count, size, 1.0f, sums);
        for (int64_t i = 0; i < r->count; i++)
            y[i * outs + o] += sums[i];
    }
}

/* A run of outputs of line `line` of an image; y: the first of them, which holds the bias. */
static void add_window(const cpu_conv *c, const dots_run *r, int64_t line, const float *image,
                       const float *packed, float *y)
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
    for (int64_t t = 0; t < n && r->from < r->to; t++) {
        int64_t position = 0, tap = 0;
        for (int32_t i = 0; i < last; i++) {
            position = (position + at[i] + k[i] * w->dilation[i]) * w->in[i + 1];
            tap = (tap + k[i]) * w->kernel[i + 1];
        }
        add_row(c, r, image + position * c->in_channels, packed, tap, y);
        for (int32_t i = last - 1; i >= 0 && ++k[i] >= high[i]; i--)
            k[i] = low[i];
    }
}

static void begin_with(const float *bias, int64_t outs, int64_t count, float *y)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t o = 0; o < outs; o++)
            y[i * outs + o] = bias ? bias[o] : 0.0f;
}

void cpu_conv_dots_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                       const float *residual, float *y, void *workspace, int threads)
{
    (void)workspace;
    const cpu_window *w = &c->w;
    const int64_t width = w->out[w->spatial - 1], lines = width ? w->out_pixels / width : 0,
                  chunks = (width + CHUNK - 1) / CHUNK, outs = c->out_channels;
    const double work =
        (double)c->batch * (double)w->out_pixels * (double)outs * (double)c->in_channels * (double)w->taps;
#pragma omp parallel for num_threads(threads) if (threads > 1 && work > 8.0 * CPU_GRAIN) schedule(static)
    for (int64_t item = 0; item < c->batch * lines * chunks; item++) {
        const int64_t begin = item % chunks * CHUNK, end = grt_min64(begin + CHUNK, width),
                      line = item / chunks % lines, image = item / chunks / lines;
        const int64_t at = ((image * lines + line) * width + begin) * outs;
        const float *pixels = x + image * w->in_pixels * c->in_channels;
        begin_with(bias, outs, end - begin, y + at);
        for (int64_t o = begin; o < end;) {
            const dots_run r = run_of_outputs(w, o, end);
            add_window(c, &r, line, pixels, packed, y + at + (o - begin) * outs);
            o += r.count;
        }
        const grt_epilogue e = {.rows = 1,
                                .cols = (end - begin) * outs,
                                .residual = residual ? residual + at : NULL,
                                .act = c->act};
        grt_epilogue_run(&e, y + at, 1);
    }
}
