/* SPDX-License-Identifier: Apache-2.0 */
/* Unfolding 8-bit images. */
#include "backends/cpu/qwindow.h"

#include <string.h>

/* An output pixel, as positions. */
static void qwindow_locate(const cpu_window *w, int64_t pixel, int64_t *at)
{
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        at[i] = pixel % w->out[i];
        pixel /= w->out[i];
    }
}

/* The line of the image that outer tap `tap` (all dims but the last) reads for output position `at`; -1: it
 * lies in the padding. */
static int64_t line_of(const cpu_window *w, const int64_t *at, int64_t tap)
{
    int64_t line = 0, step = 1;
    for (int32_t i = w->spatial - 2; i >= 0; i--) {
        const int64_t p = at[i] * w->stride[i] - w->begin[i] + tap % w->kernel[i] * w->dilation[i];
        tap /= w->kernel[i];
        if (p < 0 || p >= w->in[i])
            return -1;
        line += p * step;
        step *= w->in[i];
    }
    return line;
}

/* Rows of windows, as they are written. */
typedef struct filler {
    const cpu_qwindow *q;
    const uint8_t *end;      /* of what may be read */
    uint8_t *limit;          /* of what may be written */
    int64_t from, to, first; /* taps of the last dim that lie inside, and the first one's position */
} filler;

enum { CHUNK = 32 };

/* Short runs are copied as a chunk, where that stays within the memory: what is too much is overwritten by
 * the next run, or is not looked at. */
static inline void copy_run(const filler *f, uint8_t *to, const uint8_t *from, int64_t n)
{
    const uint8_t flip = f->q->flip;
    if (!flip && n <= CHUNK && f->end - from >= CHUNK && f->limit - to >= CHUNK)
        memcpy(to, from, CHUNK);
    else if (!flip)
        memcpy(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i] ^ flip;
}

static inline void fill_zero(const filler *f, uint8_t *to, int64_t n)
{
    if (n > 0)
        memset(to, f->q->zero, (size_t)n);
}

/* A line of the window: kernel[last] pixels of `used` channels. */
static inline void fill_line(const filler *f, const uint8_t *line, uint8_t *out)
{
    const cpu_qwindow *q = f->q;
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const uint8_t *x = line + (f->first + f->from * w->dilation[last]) * q->channels + q->first;
    fill_zero(f, out, f->from * q->used);
    if (w->dilation[last] == 1 && q->used == q->channels)
        copy_run(f, out + f->from * q->used, x, (f->to - f->from) * q->used);
    else
        for (int64_t k = f->from; k < f->to; k++, x += w->dilation[last] * q->channels)
            copy_run(f, out + k * q->used, x, q->used);
    fill_zero(f, out + f->to * q->used, (w->kernel[last] - f->to) * q->used);
}

/* The next output pixel; images follow each other. */
static void qwindow_advance(const cpu_window *w, int64_t *at, int64_t *image)
{
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        if (++at[i] < w->out[i])
            return;
        at[i] = 0;
    }
    ++*image;
}

/* The line of the image that outer tap `tap` reads, or NULL: it lies in the padding. */
static const uint8_t *find_line(const cpu_qwindow *q, const int64_t *at, int64_t image, int64_t tap)
{
    const cpu_window *w = q->w;
    const int64_t line = line_of(w, at, tap);
    return line < 0 ? NULL : q->x + (image * w->in_pixels + line * w->in[w->spatial - 1]) * q->channels;
}

/* Taps of the last dim; most pixels' windows lie inside the image. */
static inline void find_taps(const cpu_window *w, int64_t at, filler *f)
{
    const int32_t last = w->spatial - 1;
    const int64_t first = at * w->stride[last] - w->begin[last];
    if (first >= 0 && first + (w->kernel[last] - 1) * w->dilation[last] < w->in[last]) {
        f->from = 0;
        f->to = w->kernel[last];
        f->first = first;
    } else {
        cpu_window_taps(w, last, at, &f->from, &f->to, &f->first);
    }
}

/* ---- runs of pixels whose windows lie inside the image ---- */

/* Copies n bytes to each of `count` rows that are ld bytes apart, from places that are `step` apart. Chunks
 * of a known size may write behind the n bytes. */
static void copy_runs(uint8_t *to, int64_t ld, const uint8_t *from, int64_t step, int64_t n, int64_t count,
                      bool by_chunks)
{
    if (by_chunks && n <= CHUNK / 2)
        for (int64_t i = 0; i < count; i++, to += ld, from += step)
            memcpy(to, from, CHUNK / 2);
    else if (by_chunks && n <= CHUNK)
        for (int64_t i = 0; i < count; i++, to += ld, from += step)
            memcpy(to, from, CHUNK);
    else
        for (int64_t i = 0; i < count; i++, to += ld, from += step)
            memcpy(to, from, (size_t)n);
}

/* `count` pixels of a line, tap by tap: what a chunk writes too much is overwritten by the next tap, and what
 * it reads too much lies inside the image. */
static void fill_inner(const filler *f, const uint8_t *const *line, int64_t lines, int64_t count,
                       uint8_t *out, int64_t ld)
{
    const cpu_qwindow *q = f->q;
    const int32_t last = q->w->spatial - 1;
    const int64_t n = q->w->kernel[last] * q->used, step = q->w->stride[last] * q->channels;
    for (int64_t tap = 0; tap < lines; tap++) {
        uint8_t *to = out + tap * n;
        if (!line[tap]) {
            for (int64_t i = 0; i < count; i++)
                fill_zero(f, to + i * ld, n);
            continue;
        }
        const uint8_t *from = line[tap] + f->first * q->channels;
        const bool fits = tap * n + CHUNK <= ld && f->end - (from + (count - 1) * step) >= CHUNK;
        copy_runs(to, ld, from, step, n, count, fits);
    }
}

/* Pixels from position `at` of a line on whose windows lie inside, or 0 if they cannot be copied as runs. */
static int64_t inner_pixels(const cpu_qwindow *q, int64_t at)
{
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    if (q->flip || w->dilation[last] != 1 || q->used != q->channels ||
        at * w->stride[last] < w->begin[last] || w->in[last] < w->kernel[last])
        return 0;
    const int64_t end = (w->in[last] - w->kernel[last] + w->begin[last]) / w->stride[last] + 1;
    return (end < w->out[last] ? end : w->out[last]) - at;
}

/* ---- rows ---- */

enum { MOST_LINES = 16 };

/* One pixel's window; `known`: its first lines. */
static void fill_pixel(filler *f, const uint8_t *const *known, int64_t lines, const int64_t *at,
                       int64_t image, uint8_t *to)
{
    const cpu_qwindow *q = f->q;
    const int64_t line_bytes = q->w->kernel[q->w->spatial - 1] * q->used;
    for (int64_t tap = 0; tap < lines; tap++, to += line_bytes) {
        const uint8_t *line = tap < MOST_LINES ? known[tap] : find_line(q, at, image, tap);
        if (line)
            fill_line(f, line, to);
        else
            fill_zero(f, to, line_bytes);
    }
}

void cpu_qwindow_rows(const void *window, int64_t row, int64_t rows, uint8_t *out, int64_t ld)
{
    const cpu_qwindow *q = window;
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const int64_t lines = w->taps / w->kernel[last];
    const uint8_t *known[MOST_LINES]; /* of all pixels of an output line */
    int64_t at[CPU_MAX_SPATIAL], image = row / w->out_pixels;
    filler f = {.q = q, .end = q->x + q->images * w->in_pixels * q->channels};
    qwindow_locate(w, row % w->out_pixels, at);
    for (int64_t i = 0, now; i < rows; i += now, qwindow_advance(w, at, &image)) {
        uint8_t *to = out + i * ld;
        f.limit = to + ld;
        find_taps(w, at[last], &f);
        for (int64_t tap = 0; tap < lines && tap < MOST_LINES && (i == 0 || at[last] == 0); tap++)
            known[tap] = find_line(q, at, image, tap);
        now = lines <= MOST_LINES ? inner_pixels(q, at[last]) : 0;
        now = now < rows - i ? now : rows - i;
        if (now > 1) {
            fill_inner(&f, known, lines, now, to, ld);
            at[last] += now - 1;
        } else {
            fill_pixel(&f, known, lines, at, image, to);
            now = 1;
        }
    }
}

void cpu_qwindow_columns(const cpu_qwindow *q, int64_t pixel, int64_t columns, const uint8_t *outside,
                         const uint8_t **out)
{
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const int64_t lines = w->taps / w->kernel[last], image = pixel / w->out_pixels;
    int64_t at[CPU_MAX_SPATIAL];
    qwindow_locate(w, pixel % w->out_pixels, at);
    const int64_t first = at[last] * w->stride[last] - w->begin[last];
    for (int64_t tap = 0; tap < lines; tap++) {
        const int64_t line = line_of(w, at, tap);
        const uint8_t *x = q->x + (image * w->in_pixels + (line < 0 ? 0 : line) * w->in[last]) * q->channels;
        for (int64_t c = 0, p = first; c < columns; c++, p++)
            out[c * lines + tap] = line >= 0 && p >= 0 && p < w->in[last] ? x + p * q->channels : outside;
    }
}

bool cpu_qwindow_is_plain(const cpu_window *w)
{
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->out[i] != w->in[i])
            return false;
    return true;
}
