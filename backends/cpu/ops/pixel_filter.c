/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::PixelFilter. float32 has loops of its own, along channels or along a line of pixels; other types
 * go element by element in double. */
#include "backends/cpu/cpu.h"
#include "backends/shared/pixel_filter.h"
#include "src/base/element.h"

#include <stdlib.h>
#include <string.h>

/* The taps along dim d for which output position o reads inside. */
static void taps_inside(const grt_pixel_filter *f, int d, int64_t o, int64_t *first, int64_t *from,
                        int64_t *to)
{
    const int64_t at = o * f->stride[d] - f->begin[d], dilation = f->dilation[d],
                  room = at < f->in[d] ? (f->in[d] - at + dilation - 1) / dilation : 0;
    *first = at;
    *from = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *to = room < f->kernel[d] ? room : f->kernel[d];
}

/* One pixel of all channels, which are last. */
static void filter_pixel(const grt_pixel_filter *f, const float *image, const float *w, int64_t row,
                         int64_t column, float *y)
{
    const int64_t taps = f->kernel[0] * f->kernel[1], each = f->channels / f->groups;
    int64_t top, from, to, left, begin, end;
    taps_inside(f, 0, row, &top, &from, &to);
    taps_inside(f, 1, column, &left, &begin, &end);
    memset(y, 0, (size_t)f->channels * sizeof *y);
    for (int64_t a = from; a < to; a++)
        for (int64_t b = begin; b < end; b++) {
            const float *x =
                image + ((top + a * f->dilation[0]) * f->in[1] + left + b * f->dilation[1]) * f->channels;
            for (int64_t g = 0; g < f->groups; g++) {
                const float weight = w[g * taps + a * f->kernel[1] + b];
                for (int64_t c = g * each; c < (g + 1) * each; c++)
                    y[c] += weight * x[c];
            }
        }
}

/* One line of results of one channel, which are first. w: the first tap's of its group and line. */
static void filter_line(const grt_pixel_filter *f, const float *plane, const float *w, int64_t row, float *y)
{
    const int64_t pixels = f->out[0] * f->out[1];
    int64_t top, from, to;
    taps_inside(f, 0, row, &top, &from, &to);
    memset(y, 0, (size_t)f->out[1] * sizeof *y);
    for (int64_t a = from; a < to; a++) {
        const float *line = plane + (top + a * f->dilation[0]) * f->in[1];
        for (int64_t b = 0; b < f->kernel[1]; b++) {
            const float *weights = w + (a * f->kernel[1] + b) * pixels;
            const int64_t offset = b * f->dilation[1] - f->begin[1];
            for (int64_t o = 0; o < f->out[1]; o++) {
                const int64_t at = o * f->stride[1] + offset;
                if (at >= 0 && at < f->in[1])
                    y[o] += weights[o] * line[at];
            }
        }
    }
}

static void pixel_filter_floats(const grt_run *r, const grt_pixel_filter *f)
{
    const float *x = r->in[0]->data, *w = r->in[1]->data;
    float *y = r->out[0]->data;
    const int64_t taps = f->kernel[0] * f->kernel[1], in = f->in[0] * f->in[1], out = f->out[0] * f->out[1],
                  each = f->channels / f->groups, lines = f->batch * (f->last ? 1 : f->channels) * f->out[0];
#pragma omp parallel for num_threads(r->threads) schedule(static) if (f->n * taps > CPU_GRAIN)
    for (int64_t i = 0; i < lines; i++) {
        const int64_t row = i % f->out[0], plane = i / f->out[0];
        if (!f->last) {
            const int64_t channel = plane % f->channels, image = plane / f->channels;
            filter_line(f, x + plane * in,
                        w + (image * f->groups + channel / each) * taps * out + row * f->out[1], row,
                        y + i * f->out[1]);
            continue;
        }
        for (int64_t column = 0; column < f->out[1]; column++) {
            const int64_t pixel = i * f->out[1] + column;
            filter_pixel(f, x + plane * in * f->channels, w + pixel * f->groups * taps, row, column,
                         y + pixel * f->channels);
        }
    }
}

static void pixel_filter_element(const grt_run *r, const grt_pixel_filter *f, int64_t i)
{
    const int64_t out = f->out[0] * f->out[1], in = f->in[0] * f->in[1], taps = f->kernel[0] * f->kernel[1],
                  numbers = f->groups * taps, channel = f->last ? i % f->channels : i / out % f->channels,
                  image = i / (out * f->channels), pixel = f->last ? i / f->channels % out : i % out,
                  first = channel / (f->channels / f->groups) * taps;
    int64_t top, from, to, left, begin, end;
    double sum = 0;
    taps_inside(f, 0, pixel / f->out[1], &top, &from, &to);
    taps_inside(f, 1, pixel % f->out[1], &left, &begin, &end);
    for (int64_t a = from; a < to; a++)
        for (int64_t b = begin; b < end; b++) {
            const int64_t at = (top + a * f->dilation[0]) * f->in[1] + left + b * f->dilation[1],
                          tap = first + a * f->kernel[1] + b;
            sum += grt_element_get(r->in[0], f->last ? (image * in + at) * f->channels + channel
                                                     : (image * f->channels + channel) * in + at) *
                   grt_element_get(r->in[1], f->last ? (image * out + pixel) * numbers + tap
                                                     : (image * numbers + tap) * out + pixel);
        }
    grt_element_put(r->out[0], i, sum);
}

static grt_status run_pixel_filter(const grt_run *r)
{
    const grt_pixel_filter *f = r->shape;
    if (r->in[0]->dtype == GRT_DTYPE_FLOAT) {
        pixel_filter_floats(r, f);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(r->threads) schedule(static) if (f->n > CPU_GRAIN / 8)
    for (int64_t i = 0; i < f->n; i++)
        pixel_filter_element(r, f, i);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "PixelFilter",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .reshape = grt_pixel_filter_reshape,
     .release_shape = free,
     .run = run_pixel_filter},
};
CPU_KERNELS(pixel_filter, rows);
