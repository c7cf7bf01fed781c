/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/pool_tiles.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <math.h>
#include <string.h>

/* GCC may turn the selections below into vector selects only if comparisons need not trap. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#define INLINE static inline __attribute__((always_inline))

enum {
    TILE_FLOATS = 4096, /* of a tile's input lines, about */
    SHORT_LINE = 64,    /* floats; lines that are shorter are folded many at a time, from a padded copy */
    LEAST_LINE = 24,    /* outputs; shorter lines are folded together along windows, too */
    ALIGNED = 16,
};

/* ---- tiles ---- */

/* The geometry of a line and of the dim above it; a line alone is below one line of one. */
typedef struct lines {
    int64_t rows, in_rows, row_taps, row_step, row_stride, row_reach, row_begin;
    int64_t cols, in_cols, taps, step, stride, reach, begin;
    int64_t inner, planes, outer; /* floats of a pixel, images, output positions of the dims above */
} lines;

INLINE lines lines_of(const cpu_pool *p)
{
    const cpu_window *w = &p->w;
    const int32_t last = w->spatial - 1, row = last - 1;
    lines l = {.rows = 1, .in_rows = 1, .row_taps = 1, .row_step = 1, .row_stride = 1, .row_reach = 1};
    if (row >= 0) {
        l.rows = w->out[row];
        l.in_rows = w->in[row];
        l.row_taps = w->kernel[row];
        l.row_step = w->dilation[row];
        l.row_stride = w->stride[row];
        l.row_reach = cpu_window_extent(w->kernel[row], w->dilation[row]);
        l.row_begin = w->begin[row];
    }
    l.cols = w->out[last];
    l.in_cols = w->in[last];
    l.taps = w->kernel[last];
    l.step = w->dilation[last];
    l.stride = w->stride[last];
    l.reach = cpu_window_extent(w->kernel[last], w->dilation[last]);
    l.begin = w->begin[last];
    l.inner = p->last ? p->channels : 1;
    l.planes = p->last ? p->batch : p->batch * p->channels;
    l.outer = row > 0 ? grt_dims_product(w->out, 0, row) : 1;
    return l;
}

/* Input lines or columns that n outputs read. */
INLINE int64_t read_by(int64_t n, int64_t stride, int64_t reach)
{
    return (n - 1) * stride + reach;
}

/* True if windows reach past the image by no more than twice its size and a little, in each dim. */
static bool is_moderate(const cpu_window *w)
{
    enum { LITTLE = 64, MOST = 1 << 28 };
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t most = 2 * w->in[i] + LITTLE;
        if (w->in[i] > MOST || w->out[i] > MOST || w->kernel[i] > most || w->dilation[i] > most ||
            w->stride[i] > most || w->kernel[i] * w->dilation[i] > 2 * most || w->begin[i] > most ||
            w->begin[i] < 0)
            return false;
    }
    return true;
}

bool cpu_pool_cut(const cpu_pool *p, cpu_pool_tiles *t, size_t *out_bytes)
{
    *t = (cpu_pool_tiles){0};
    *out_bytes = 0;
    if (p->w.spatial < 1 || p->w.out_pixels == 0 || p->channels == 0 || !is_moderate(&p->w))
        return false;
    const lines l = lines_of(p);
    const int64_t widest = TILE_FLOATS / l.inner;
    t->cols = widest <= l.reach ? 1 : (widest - l.reach) / l.stride + 1;
    t->cols = t->cols < l.cols ? t->cols : l.cols;
    const int64_t width = read_by(t->cols, l.stride, l.reach) * l.inner;
    t->copied = width < SHORT_LINE;
    const int64_t most = TILE_FLOATS / width;
    t->rows = !t->copied ? most : most > l.row_reach ? (most - l.row_reach) / l.row_stride + 1 : 1;
    t->rows = t->rows > 1 ? t->rows : 1;
    t->rows = t->rows < l.rows ? t->rows : l.rows;
    const int64_t in_rows = t->copied ? read_by(t->rows, l.row_stride, l.row_reach) : 0;
    t->line = (width + ALIGNED - 1) / ALIGNED * ALIGNED;
    size_t floats;
    if (grt_mul_size((size_t)(in_rows + 2 * t->rows), (size_t)t->line, &floats) &&
        grt_mul_size(floats, sizeof(float) * (size_t)p->threads, out_bytes))
        return true;
    *t = (cpu_pool_tiles){0};
    return false;
}

/* ---- folds ---- */

INLINE float larger(float a, float b)
{
    return b > a ? b : a;
}

/* The first value of a maximum: NaN counts as nothing. */
INLINE float begun(float a)
{
    return larger(-INFINITY, a);
}

#define FOLD(max_of, sum_of)                                                    \
    do {                                                                        \
        if (max) {                                                              \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = max_of; \
        } else {                                                                \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = sum_of; \
        }                                                                       \
    } while (0)

/* to[i], of n, is the fold of from[i + k * step] for k < taps, and of what it was unless this is the first
 * part. Sums are made from left to right. */
INLINE void fold_taps(const float *from, int64_t step, int64_t taps, int64_t n, bool max, bool first,
                      float *restrict to)
{
    int64_t k = 0;
    if (first && taps == 2) {
        const float *a = from, *b = a + step;
        FOLD(larger(begun(a[i]), b[i]), a[i] + b[i]);
        k = 2;
    } else if (first && (taps == 3 || taps == 4 || taps == 6 || taps == 7)) {
        const float *a = from, *b = a + step, *c = b + step;
        FOLD(larger(larger(begun(a[i]), b[i]), c[i]), a[i] + b[i] + c[i]);
        k = 3;
    } else if (first && taps >= 5) {
        const float *a = from, *b = a + step, *c = b + step, *d = c + step, *e = d + step;
        FOLD(larger(larger(larger(larger(begun(a[i]), b[i]), c[i]), d[i]), e[i]),
             a[i] + b[i] + c[i] + d[i] + e[i]);
        k = 5;
    } else if (first) {
        FOLD(begun(from[i]), from[i]);
        k = 1;
    }
    for (; k + 4 <= taps; k += 4) {
        const float *a = from + k * step, *b = a + step, *c = b + step, *d = c + step;
        FOLD(larger(larger(larger(larger(to[i], a[i]), b[i]), c[i]), d[i]),
             to[i] + a[i] + b[i] + c[i] + d[i]);
    }
    for (; k < taps; k++) {
        const float *a = from + k * step;
        FOLD(larger(to[i], a[i]), to[i] + a[i]);
    }
}

/* The same for two or three taps of every second window. */
INLINE void fold_every_second(const float *from, int64_t step, int64_t taps, int64_t n, bool max,
                              float *restrict to)
{
    const float *a = from, *b = a + step, *c = b + step;
    if (taps == 2)
        FOLD(larger(begun(a[2 * i]), b[2 * i]), a[2 * i] + b[2 * i]);
    else
        FOLD(larger(larger(begun(a[2 * i]), b[2 * i]), c[2 * i]), a[2 * i] + b[2 * i] + c[2 * i]);
}

INLINE void fill(float *to, int64_t n, float value)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

/* Lines are short: what a call costs is more than the loop. */
INLINE void copy_floats(float *restrict to, const float *from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* Where a tile lies. */
typedef struct tile {
    const float *x; /* its image */
    float *y;       /* its first output */
    int64_t position, row, rows, col, cols;
    int64_t low, high, shift, width; /* input columns that are read, of `width` columns from `shift` on */
} tile;

/* What the dims above lines contribute: the fold of line `row`, taps `count`, over their taps. */
INLINE void fold_line(const cpu_pool *p, const lines *l, const tile *t, int64_t row, int64_t count, float *to)
{
    const cpu_window *w = &p->w;
    const int32_t above = w->spatial - 2;
    const float none = p->max ? -INFINITY : 0.0f;
    int64_t k[CPU_MAX_SPATIAL], from[CPU_MAX_SPATIAL], end[CPU_MAX_SPATIAL], at[CPU_MAX_SPATIAL],
        n = 1, rest = t->position;
    for (int32_t i = above - 1; i >= 0; i--) {
        cpu_window_taps(w, i, rest % w->out[i], &from[i], &end[i], &at[i]);
        rest /= w->out[i];
        k[i] = from[i];
        n *= end[i] - from[i];
    }
    const int64_t floats = t->high > t->low ? (t->high - t->low) * l->inner : 0,
                  left = floats ? (t->low - t->shift) * l->inner : 0, line = l->in_cols * l->inner;
    fill(to, left, none);
    fill(to + left + floats, t->width * l->inner - left - floats, none);
    if (n * count == 0)
        fill(to + left, floats, none);
    for (int64_t i = 0; i < n && count > 0 && floats > 0; i++) {
        int64_t plane = 0;
        for (int32_t d = 0; d < above; d++)
            plane = plane * w->in[d] + at[d] + k[d] * w->dilation[d];
        fold_taps(t->x + (plane * l->in_rows + row) * line + t->low * l->inner, l->row_step * line, count,
                  floats, p->max, i == 0, to + left);
        for (int32_t d = above - 1; d >= 0 && ++k[d] >= end[d]; d--)
            k[d] = from[d];
    }
}

/* Columns of a tile of short lines of images, folded where they lie: many lines at a time if nothing is
 * padded. */
INLINE void fold_image_columns(const cpu_pool *p, const lines *l, const tile *t, float *to)
{
    const int64_t width = t->width * l->inner, line = l->in_cols * l->inner,
                  begin = t->row * l->row_stride - l->row_begin;
    const bool whole = t->shift == 0 && t->width == l->in_cols && begin >= 0 &&
                       begin + read_by(t->rows, l->row_stride, l->row_reach) <= l->in_rows;
    if (whole && l->row_stride == 1) {
        fold_taps(t->x + begin * line, l->row_step * line, l->row_taps, t->rows * width, p->max, true, to);
        return;
    }
    const float none = p->max ? -INFINITY : 0.0f;
    const int64_t floats = t->high > t->low ? (t->high - t->low) * l->inner : 0,
                  left = floats ? (t->low - t->shift) * l->inner : 0;
    const float *x = t->x + t->low * l->inner;
    for (int64_t r = 0; r < t->rows; r++, to += width) {
        int64_t from = 0, end = l->row_taps, row = begin + r * l->row_stride;
        if (row < 0 || row + l->row_reach > l->in_rows)
            cpu_window_taps(&p->w, p->w.spatial - 2, t->row + r, &from, &end, &row);
        const int64_t n = end > from ? floats : 0;
        fill(to, n ? left : 0, none);
        if (n)
            fold_taps(x + (row + from * l->row_step) * line, l->row_step * line, end - from, n, p->max, true,
                      to + left);
        fill(to + (n ? left + n : 0), width - (n ? left + n : 0), none);
    }
}

/* Columns of the tile's lines, each folded along its window, `width` floats apart. */
INLINE void fold_columns(const cpu_pool *p, const lines *l, const tile *t, float *copy, float *to)
{
    const int64_t width = t->width * l->inner;
    if (!p->tiles.copied) {
        for (int64_t r = 0; r < t->rows; r++) {
            int64_t from = 0, end = 1, first = 0;
            if (p->w.spatial > 1)
                cpu_window_taps(&p->w, p->w.spatial - 2, t->row + r, &from, &end, &first);
            fold_line(p, l, t, first + from * l->row_step, end - from, to + r * width);
        }
        return;
    }
    if (p->w.spatial == 2) {
        fold_image_columns(p, l, t, to);
        return;
    }
    const int64_t begin = t->row * l->row_stride - l->row_begin,
                  in_rows = read_by(t->rows, l->row_stride, l->row_reach);
    for (int64_t r = 0; r < in_rows; r++) {
        const bool inside = begin + r >= 0 && begin + r < l->in_rows;
        fold_line(p, l, t, inside ? begin + r : 0, inside, copy + r * width);
    }
    if (l->row_stride == 1) {
        fold_taps(copy, l->row_step * width, l->row_taps, t->rows * width, p->max, true, to);
        return;
    }
    for (int64_t r = 0; r < t->rows; r++)
        fold_taps(copy + r * l->row_stride * width, l->row_step * width, l->row_taps, width, p->max, true,
                  to + r * width);
}

/* Each window is the fold of its columns. */
INLINE void fold_windows(const cpu_pool *p, const lines *l, const tile *t, const float *columns, float *whole)
{
    const int64_t width = t->width * l->inner, line = l->cols * l->inner;
    if (l->inner > 1 && l->stride > 1) {
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t i = 0; i < t->cols; i++)
                fold_taps(columns + r * width + i * l->stride * l->inner, l->step * l->inner, l->taps,
                          l->inner, p->max, true, t->y + r * line + i * l->inner);
        return;
    }
    if ((!p->tiles.copied || t->cols >= LEAST_LINE) && l->stride == 1) {
        for (int64_t r = 0; r < t->rows; r++)
            fold_taps(columns + r * width, l->step * l->inner, l->taps, t->cols * l->inner, p->max, true,
                      t->y + r * line);
        return;
    }
    if (l->inner == 1 && l->stride == 2 && (l->taps == 2 || l->taps == 3)) {
        for (int64_t r = 0; r < t->rows; r++)
            fold_every_second(columns + r * width, l->step, l->taps, t->cols, p->max, t->y + r * line);
        return;
    }
    const int64_t used = read_by(t->cols, l->stride, 1) * l->inner;
    fold_taps(columns, l->step * l->inner, l->taps, (t->rows - 1) * width + used, p->max, true, whole);
    for (int64_t r = 0; r < t->rows; r++) {
        const float *from = whole + r * width;
        float *to = t->y + r * line;
        if (l->stride == 1)
            copy_floats(to, from, used);
        else if (l->stride == 2)
#pragma omp simd
            for (int64_t i = 0; i < t->cols; i++)
                to[i] = from[2 * i];
        else
            for (int64_t i = 0; i < t->cols; i++)
                to[i] = from[i * l->stride];
    }
}

INLINE void scale(float *y, int64_t n, double share)
{
    const float factor = (float)share;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

/* One over the elements of the window at output position o of dim i. */
INLINE double share_of(const cpu_pool *p, int32_t i, int64_t o)
{
    const int64_t count = cpu_pool_count(p, i, o);
    return count > 0 ? 1.0 / (double)count : 0.0;
}

/* Outputs from *low to *high, of the n from `first` on, whose windows lie inside and so have all taps. */
INLINE void inside_of(int64_t first, int64_t n, int64_t stride, int64_t begin, int64_t in, int64_t reach,
                      int64_t *low, int64_t *high)
{
    int64_t from = (begin + stride - 1) / stride - first, to = in + begin - reach;
    to = to < 0 ? 0 : to / stride + 1 - first;
    *low = from < 0 ? 0 : from > n ? n : from;
    *high = to < *low ? *low : to > n ? n : to;
}

/* Sums become averages: all columns whose windows lie inside divide by the same number. Divisions are made
 * once a tile for the first columns at either edge, and for the lines inside, whose factors are in `line`
 * where lines are short. */
INLINE void divide_sums(const cpu_pool *p, const lines *l, const tile *t, float *restrict line)
{
    enum { EDGE = 8 };
    const int32_t last = p->w.spatial - 1;
    double outer = 1.0, left[EDGE], right[EDGE];
    int64_t rest = t->position, low, high, row_low, row_high;
    for (int32_t i = last - 2; i >= 0; i--) {
        outer *= share_of(p, i, rest % p->w.out[i]);
        rest /= p->w.out[i];
    }
    inside_of(t->col, t->cols, l->stride, l->begin, l->in_cols, l->reach, &low, &high);
    inside_of(t->row, t->rows, l->row_stride, l->row_begin, l->in_rows, l->row_reach, &row_low, &row_high);
    for (int64_t i = 0; i < low && i < EDGE; i++)
        left[i] = share_of(p, last, t->col + i);
    for (int64_t i = 0; i < t->cols - high && i < EDGE; i++)
        right[i] = share_of(p, last, t->col + high + i);
    const double inside = 1.0 / (double)l->taps, row_inside = 1.0 / (double)l->row_taps;
    const int64_t floats = t->cols * l->inner;
    const bool alike = p->tiles.copied && l->inner == 1 && row_high - row_low > 1;
    for (int64_t i = 0; alike && i < t->cols; i++)
        line[i] = (float)(outer * row_inside *
                          (i >= low && i < high ? inside
                           : i < low            ? (i < EDGE ? left[i] : share_of(p, last, t->col + i))
                           : i - high < EDGE    ? right[i - high]
                                                : share_of(p, last, t->col + i)));
    for (int64_t r = 0; r < t->rows; r++) {
        float *y = t->y + r * l->cols * l->inner;
        if (alike && last > 0 && r >= row_low && r < row_high) {
#pragma omp simd
            for (int64_t i = 0; i < floats; i++)
                y[i] *= line[i];
            continue;
        }
        const double row = last == 0                      ? outer
                           : r >= row_low && r < row_high ? outer * row_inside
                                                          : outer * share_of(p, last - 1, t->row + r);
        for (int64_t i = 0; i < low; i++)
            scale(y + i * l->inner, l->inner, row * (i < EDGE ? left[i] : share_of(p, last, t->col + i)));
        scale(y + low * l->inner, (high - low) * l->inner, row * inside);
        for (int64_t i = high; i < t->cols; i++)
            scale(y + i * l->inner, l->inner,
                  row * (i - high < EDGE ? right[i - high] : share_of(p, last, t->col + i)));
    }
}

/* memory: the thread's part of the workspace. */
CPU_BODY pool_tile_body(const cpu_pool *p, const float *x, float *y, int64_t item, float *memory)
{
    const lines l = lines_of(p);
    const cpu_pool_tiles *cut = &p->tiles;
    const int64_t across = (l.cols + cut->cols - 1) / cut->cols, down = (l.rows + cut->rows - 1) / cut->rows;
    tile t = {.col = item % across * cut->cols, .row = item / across % down * cut->rows};
    item /= across * down;
    t.position = item % l.outer;
    t.cols = l.cols - t.col < cut->cols ? l.cols - t.col : cut->cols;
    t.rows = l.rows - t.row < cut->rows ? l.rows - t.row : cut->rows;
    t.shift = t.col * l.stride - l.begin;
    t.width = read_by(t.cols, l.stride, l.reach);
    t.low = t.shift > 0 ? t.shift : 0;
    t.high = t.shift + t.width < l.in_cols ? t.shift + t.width : l.in_cols;
    t.x = x + item / l.outer * p->w.in_pixels * l.inner;
    t.y = y + ((item * l.rows + t.row) * l.cols + t.col) * l.inner;
    float *columns = memory, *whole = columns + cut->rows * cut->line, *copy = whole + cut->rows * cut->line;
    fold_columns(p, &l, &t, copy, columns);
    fold_windows(p, &l, &t, columns, whole);
    if (!p->max)
        divide_sums(p, &l, &t, whole);
}
CPU_DISPATCH(pool_tile, (const cpu_pool *p, const float *x, float *y, int64_t item, float *memory),
             (p, x, y, item, memory))

/* Tiles of an output, and floats that one takes of the workspace. */
static int64_t pool_tiles_of(const cpu_pool *p, int64_t *out_floats)
{
    const lines l = lines_of(p);
    const cpu_pool_tiles *t = &p->tiles;
    const int64_t in_rows = t->copied ? read_by(t->rows, l.row_stride, l.row_reach) : 0;
    *out_floats = (in_rows + 2 * t->rows) * t->line;
    return l.planes * l.outer * ((l.rows + t->rows - 1) / t->rows) * ((l.cols + t->cols - 1) / t->cols);
}

void cpu_pool_tiles_run_part(const cpu_pool *p, const float *x, float *y, float *workspace)
{
    int64_t floats;
    const int64_t tiles = pool_tiles_of(p, &floats);
    for (int64_t i = 0; i < tiles; i++)
        pool_tile(p, x, y, i, workspace);
}

void cpu_pool_tiles_run(const cpu_pool *p, const float *x, float *y, void *workspace)
{
    int64_t floats;
    const int64_t tiles = pool_tiles_of(p, &floats);
    const bool many = grt_mul_saturated(p->batch * p->channels * p->w.out_pixels, p->w.taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(p->threads) if (many) schedule(static)
    for (int64_t i = 0; i < tiles; i++)
        pool_tile(p, x, y, i, (float *)workspace + cpu_thread() * floats);
}
