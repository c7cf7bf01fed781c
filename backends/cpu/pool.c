/* SPDX-License-Identifier: Apache-2.0 */
/* Pools by loops over the channels of a pixel (channels last), and a general version in double. */
#include "backends/cpu/pool.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "src/base/element.h"
#include "src/base/checked.h"

#include <math.h>
#include <string.h>

/* GCC may turn the selections below into vector selects only if comparisons need not trap. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

static inline __attribute__((always_inline)) void next(int64_t *index, const int64_t *from, const int64_t *to,
                                                       int32_t rank)
{
    for (int32_t i = rank - 1; i >= 0 && ++index[i] >= to[i]; i--)
        index[i] = from[i];
}

/* Pixels that one pass over the channels takes together: a window of 3 x 3 is read once and written once. */
enum { GROUP = 9 };

/* One pass: the pixels v0 to v<n-1> and, unless they are the first ones, what `to` holds. */
#define POOL_PASS(max_of, sum_of)                                       \
    do {                                                                \
        if (max) {                                                      \
            _Pragma("omp simd") for (i = 0; i < n; i++) to[i] = max_of; \
        } else {                                                        \
            _Pragma("omp simd") for (i = 0; i < n; i++) to[i] = sum_of; \
        }                                                               \
    } while (0)

static inline __attribute__((always_inline)) float larger(float a, float b)
{
    return b > a ? b : a;
}

/* The first value of a maximum: NaN counts as nothing, wherever it is in the window. */
static inline __attribute__((always_inline)) float begun(float a)
{
    return larger(-INFINITY, a);
}

/* Sums are made from left to right, whatever the number of pixels in a pass. */
static inline __attribute__((always_inline)) void
pool_take_pixels(const float *const *v, int32_t count, int64_t n, bool max, bool first, float *restrict to)
{
    const float *a = v[0];
    int64_t i;
    if (first && count == GROUP) {
        const float *b = v[1], *c = v[2], *d = v[3], *e = v[4], *f = v[5], *g = v[6], *h = v[7], *k = v[8];
        POOL_PASS(
            larger(larger(larger(larger(larger(larger(larger(larger(begun(a[i]), b[i]), c[i]), d[i]), e[i]),
                                        f[i]),
                                 g[i]),
                          h[i]),
                   k[i]),
            a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + k[i]);
        return;
    }
    int32_t at = 0;
    if (first && count >= 4) {
        const float *b = v[1], *c = v[2], *d = v[3];
        POOL_PASS(larger(larger(larger(begun(a[i]), b[i]), c[i]), d[i]), a[i] + b[i] + c[i] + d[i]);
        at = 4;
    } else if (first) {
        POOL_PASS(begun(a[i]), a[i]);
        at = 1;
    }
    for (; at + 4 <= count; at += 4) {
        const float *b = v[at], *c = v[at + 1], *d = v[at + 2], *e = v[at + 3];
        POOL_PASS(larger(larger(larger(larger(to[i], b[i]), c[i]), d[i]), e[i]),
                  to[i] + b[i] + c[i] + d[i] + e[i]);
    }
    for (; at < count; at++) {
        const float *b = v[at];
        POOL_PASS(larger(to[i], b[i]), to[i] + b[i]);
    }
}

CPU_BODY scale_pixel_body(float *to, int64_t n, float factor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] *= factor;
}

/* y: the line's output pixels. What the outer dims contribute to the window is worked out once. */
CPU_BODY pool_pixels_body(const cpu_pool *p, const float *image, int64_t line, float *y)
{
    const cpu_window *w = &p->w;
    const int32_t last = w->spatial - 1;
    const int64_t channels = p->channels;
    int64_t k[CPU_MAX_SPATIAL], from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], at[CPU_MAX_SPATIAL];
    int64_t outer = 1, outer_count = 1;
    for (int32_t i = last - 1; i >= 0; i--) {
        const int64_t o = line % w->out[i];
        line /= w->out[i];
        cpu_window_taps(w, i, o, &from[i], &to[i], &at[i]);
        outer *= to[i] - from[i];
        outer_count = grt_mul_saturated(outer_count, cpu_pool_count(p, i, o));
    }
    for (int64_t x = 0; x < w->out[last]; x++, y += channels) {
        const float *group[GROUP];
        int32_t count = 0;
        bool first = true;
        cpu_window_taps(w, last, x, &from[last], &to[last], &at[last]);
        for (int32_t i = 0; i < last; i++)
            k[i] = from[i];
        for (int64_t t = 0; t < outer; t++) {
            int64_t position = 0;
            for (int32_t i = 0; i < last; i++)
                position = (position + at[i] + k[i] * w->dilation[i]) * w->in[i + 1];
            const float *row = image + (position + at[last]) * channels;
            for (int64_t tap = from[last]; tap < to[last]; tap++) {
                group[count++] = row + tap * w->dilation[last] * channels;
                if (count == GROUP) {
                    pool_take_pixels(group, GROUP, channels, p->max, first, y);
                    first = false;
                    count = 0;
                }
            }
            next(k, from, to, last);
        }
        if (count)
            pool_take_pixels(group, count, channels, p->max, first, y);
        else if (first)
            for (int64_t i = 0; i < channels; i++)
                y[i] = p->max ? -INFINITY : 0.0f;
        if (!p->max && (count || !first))
            scale_pixel_body(y, channels,
                             1.0f / (float)grt_mul_saturated(outer_count, cpu_pool_count(p, last, x)));
    }
}
CPU_DISPATCH(pool_pixels, (const cpu_pool *p, const float *image, int64_t line, float *y),
             (p, image, line, y))

void cpu_pool_pixels(const cpu_pool *p, const float *x, float *y)
{
    const cpu_window *w = &p->w;
    const int64_t width = w->out[w->spatial - 1], lines = width ? w->out_pixels / width : 0;
    const bool many = grt_mul_saturated(p->batch * p->channels * w->out_pixels, w->taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(p->threads) if (many)
    for (int64_t i = 0; i < p->batch * lines; i++)
        pool_pixels(p, x + i / lines * w->in_pixels * p->channels, i % lines, y + i * width * p->channels);
}

/* flip: 0x80 makes int8 and uint8 of the same order. */
CPU_BODY largest_body(const uint8_t *from, int64_t n, uint8_t flip, uint8_t *to)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const uint8_t a = from[i] ^ flip, b = to[i] ^ flip;
        to[i] = (a > b ? a : b) ^ flip;
    }
}
CPU_DISPATCH(largest, (const uint8_t *from, int64_t n, uint8_t flip, uint8_t *to), (from, n, flip, to))

static void pool_byte_pixel(const cpu_pool *p, const uint8_t *image, int64_t pixel, uint8_t flip, uint8_t *y)
{
    const cpu_window *w = &p->w;
    int64_t k[CPU_MAX_SPATIAL], from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], first[CPU_MAX_SPATIAL], taps = 1;
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        cpu_window_taps(w, i, pixel % w->out[i], &from[i], &to[i], &first[i]);
        pixel /= w->out[i];
        k[i] = from[i];
        taps *= to[i] - from[i];
    }
    memset(y, flip, (size_t)p->channels); /* the least */
    for (int64_t t = 0; t < taps; t++) {
        int64_t position = 0;
        for (int32_t i = 0; i < w->spatial; i++)
            position = position * w->in[i] + first[i] + k[i] * w->dilation[i];
        largest(image + position * p->channels, p->channels, flip, y);
        next(k, from, to, w->spatial);
    }
}

void cpu_pool_largest_bytes(const cpu_pool *p, grt_dtype dtype, const uint8_t *x, uint8_t *y)
{
    const uint8_t flip = dtype == GRT_DTYPE_INT8 ? 0x80 : 0;
    const int64_t pixels = p->w.out_pixels;
    const bool many = grt_mul_saturated(p->batch * p->channels * pixels, p->w.taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(p->threads) if (many)
    for (int64_t i = 0; i < p->batch * pixels; i++)
        pool_byte_pixel(p, x + i / pixels * p->w.in_pixels * p->channels, i % pixels, flip,
                        y + i * p->channels);
}

/* Position in the plane, in the order that the attribute storage_order asks for. */
static int64_t flatten(const cpu_pool *p, const int64_t *at, bool column_major)
{
    int64_t flat = 0;
    for (int32_t i = 0; i < p->w.spatial; i++) {
        const int32_t dim = column_major ? p->w.spatial - 1 - i : i;
        flat = flat * p->w.in[dim] + at[dim];
    }
    return flat;
}

static void pool_element(const cpu_pool *p, grt_dtype dtype, const void *x, int64_t plane, int64_t pixel,
                         void *y, int64_t *indices)
{
    const cpu_window *w = &p->w;
    int64_t k[CPU_MAX_SPATIAL], from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], first[CPU_MAX_SPATIAL],
        at[CPU_MAX_SPATIAL];
    int64_t taps = 1, count = 1, rest = pixel, best_at = 0;
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        const int64_t o = rest % w->out[i];
        rest /= w->out[i];
        cpu_window_taps(w, i, o, &from[i], &to[i], &first[i]);
        k[i] = from[i];
        taps *= to[i] - from[i];
        count = grt_mul_saturated(count, cpu_pool_count(p, i, o));
    }
    double value = p->max ? -INFINITY : 0.0;
    for (int64_t t = 0; t < taps; t++) {
        for (int32_t i = 0; i < w->spatial; i++)
            at[i] = first[i] + k[i] * w->dilation[i];
        const double v = grt_element_load(dtype, x, plane * w->in_pixels + flatten(p, at, false));
        if (!p->max) {
            value += v;
        } else if (t == 0 || v > value) {
            value = v;
            best_at = flatten(p, at, p->column_major);
        }
        next(k, from, to, w->spatial);
    }
    grt_element_store(dtype, y, plane * w->out_pixels + pixel,
                      p->max || count == 0 ? value : value / (double)count);
    if (indices)
        indices[plane * w->out_pixels + pixel] = plane * w->in_pixels + best_at;
}

/* Of a line's outputs first to last, one tap each: the larger of what is there and what the tap has. */
CPU_BODY raise_line_body(const float *x, int64_t stride, int64_t n, int64_t position, int64_t step, float *y,
                         int64_t *indices)
{
    if (stride == 1 || stride == 2) {
        const int64_t s = stride == 1 ? 1 : 2;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const float v = x[i * s];
            const bool more = v > y[i];
            indices[i] = more ? position + i * step : indices[i];
            y[i] = more ? v : y[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (x[i * stride] > y[i]) {
            y[i] = x[i * stride];
            indices[i] = position + i * step;
        }
}
CPU_DISPATCH(raise_line,
             (const float *x, int64_t stride, int64_t n, int64_t position, int64_t step, float *y,
              int64_t *indices),
             (x, stride, n, position, step, y, indices))

/* A tap's outputs along the last dim, and the input of the first of them. */
typedef struct tap_span {
    int64_t low, high, at;
} tap_span;

static tap_span span_of(const cpu_window *w, int32_t i, int64_t tap)
{
    const int64_t shift = tap * w->dilation[i] - w->begin[i], stride = w->stride[i];
    tap_span s = {.low = shift < 0 ? (-shift + stride - 1) / stride : 0,
                  .high = w->in[i] > shift ? (w->in[i] - shift - 1) / stride + 1 : 0};
    s.high = s.high < w->out[i] ? s.high : w->out[i];
    s.at = s.low * stride + shift;
    return s;
}

/* Each output's first tap in a row of the input. */
static void begin_line(const cpu_window *w, const float *row, int64_t position, int64_t step, float *y,
                       int64_t *indices)
{
    const int32_t last = w->spatial - 1;
    const int64_t dilation = w->dilation[last];
    for (int64_t i = 0; i < w->out[last]; i++) {
        int64_t at = i * w->stride[last] - w->begin[last];
        const int64_t taps = at < 0 ? (-at + dilation - 1) / dilation : 0;
        at += taps * dilation;
        if (taps < w->kernel[last] && at < w->in[last]) {
            y[i] = row[at];
            indices[i] = position + at * step;
        }
    }
}

/* One line of a plane's outputs. A window's first tap is taken whatever it holds, and later ones if they are
 * larger. */
static void largest_line(const cpu_pool *p, const float *plane, int64_t line, int64_t base, float *y,
                         int64_t *indices)
{
    const cpu_window *w = &p->w;
    const int32_t last = w->spatial - 1;
    int64_t k[CPU_MAX_SPATIAL], from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], first[CPU_MAX_SPATIAL], outer = 1;
    int64_t scale[CPU_MAX_SPATIAL] = {1}; /* of positions, column by column */
    for (int32_t i = 1; i < w->spatial; i++)
        scale[i] = scale[i - 1] * w->in[i - 1];
    for (int32_t i = last - 1; i >= 0; i--) {
        cpu_window_taps(w, i, line % w->out[i], &from[i], &to[i], &first[i]);
        line /= w->out[i];
        k[i] = from[i];
        outer *= to[i] - from[i];
    }
    for (int64_t i = 0; i < w->out[last]; i++) {
        y[i] = -INFINITY;
        indices[i] = base;
    }
    for (int64_t t = 0; t < outer; t++) {
        int64_t row = 0, position = base;
        for (int32_t i = 0; i < last; i++) {
            const int64_t at = first[i] + k[i] * w->dilation[i];
            row = (row + at) * w->in[i + 1];
            position += p->column_major ? at * scale[i] : 0;
        }
        const int64_t step = p->column_major ? scale[last] : 1;
        position += p->column_major ? 0 : row;
        if (t == 0)
            begin_line(w, plane + row, position, step, y, indices);
        for (int64_t tap = 0; tap < w->kernel[last]; tap++) {
            const tap_span s = span_of(w, last, tap);
            if (s.low < s.high)
                raise_line(plane + row + s.at, w->stride[last], s.high - s.low, position + s.at * step,
                           w->stride[last] * step, y + s.low, indices + s.low);
        }
        next(k, from, to, last);
    }
}

void cpu_pool_exact(const cpu_pool *p, grt_dtype dtype, const void *x, void *y, int64_t *indices)
{
    const int64_t planes = p->batch * p->channels, width = p->w.spatial ? p->w.out[p->w.spatial - 1] : 0;
    const bool many = grt_mul_saturated(planes * p->w.out_pixels, p->w.taps) > CPU_GRAIN;
    if (indices && p->max && dtype == GRT_DTYPE_FLOAT && width > 0) {
#pragma omp parallel for num_threads(p->threads) if (many)
        for (int64_t plane = 0; plane < planes; plane++)
            for (int64_t line = 0; line < p->w.out_pixels / width; line++)
                largest_line(p, (const float *)x + plane * p->w.in_pixels, line, plane * p->w.in_pixels,
                             (float *)y + plane * p->w.out_pixels + line * width,
                             indices + plane * p->w.out_pixels + line * width);
        return;
    }
#pragma omp parallel for num_threads(p->threads) if (many)
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t pixel = 0; pixel < p->w.out_pixels; pixel++)
            pool_element(p, dtype, x, plane, pixel, y, indices);
}
