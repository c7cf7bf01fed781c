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
static uint8_t *fill_line(const filler *f, const uint8_t *line, uint8_t *out)
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
    return out + w->kernel[last] * q->used;
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

void cpu_qwindow_rows(const void *window, int64_t row, int64_t rows, uint8_t *out, int64_t ld)
{
    const cpu_qwindow *q = window;
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const int64_t lines = w->taps / w->kernel[last], line_bytes = w->kernel[last] * q->used;
    int64_t at[CPU_MAX_SPATIAL], image = row / w->out_pixels;
    filler f = {.q = q, .end = q->x + q->images * w->in_pixels * q->channels};
    qwindow_locate(w, row % w->out_pixels, at);
    for (int64_t i = 0; i < rows; i++, qwindow_advance(w, at, &image)) {
        uint8_t *to = out + i * ld;
        f.limit = to + ld;
        cpu_window_taps(w, last, at[last], &f.from, &f.to, &f.first);
        for (int64_t tap = 0; tap < lines; tap++) {
            const int64_t line = line_of(w, at, tap);
            if (line >= 0)
                to = fill_line(&f, q->x + (image * w->in_pixels + line * w->in[last]) * q->channels, to);
            else
                fill_zero(&f, to, line_bytes);
            to = line >= 0 ? to : to + line_bytes;
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
