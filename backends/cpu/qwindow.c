/* SPDX-License-Identifier: Apache-2.0 */
/* Unfolding 8-bit images. */
#include "backends/cpu/qwindow.h"

#include <string.h>

/* An output pixel, as positions. */
static void locate(const cpu_window *w, int64_t pixel, int64_t *at)
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

static void copy_bytes(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip)
{
    if (!flip)
        memcpy(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i] ^ flip;
}

/* A line of the window: kernel[last] pixels of `used` channels. */
static uint8_t *fill_line(const cpu_qwindow *q, const uint8_t *line, int64_t o, uint8_t *out)
{
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    int64_t from, to, first;
    cpu_window_taps(w, last, o, &from, &to, &first);
    memset(out, q->zero, (size_t)(from * q->used));
    const uint8_t *x = line + (first + from * w->dilation[last]) * q->channels + q->first;
    if (w->dilation[last] == 1 && q->used == q->channels)
        copy_bytes(out + from * q->used, x, (to - from) * q->used, q->flip);
    else
        for (int64_t k = from; k < to; k++, x += w->dilation[last] * q->channels)
            copy_bytes(out + k * q->used, x, q->used, q->flip);
    memset(out + to * q->used, q->zero, (size_t)((w->kernel[last] - to) * q->used));
    return out + w->kernel[last] * q->used;
}

void cpu_qwindow_rows(const void *window, int64_t row, int64_t rows, uint8_t *out, int64_t ld)
{
    const cpu_qwindow *q = window;
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const int64_t lines = w->taps / w->kernel[last], line_bytes = w->kernel[last] * q->used;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at[CPU_MAX_SPATIAL];
        const int64_t image = (row + i) / w->out_pixels;
        uint8_t *to = out + i * ld;
        locate(w, (row + i) % w->out_pixels, at);
        for (int64_t tap = 0; tap < lines; tap++) {
            const int64_t line = line_of(w, at, tap);
            if (line < 0) {
                memset(to, q->zero, (size_t)line_bytes);
                to += line_bytes;
            } else {
                to = fill_line(q, q->x + (image * w->in_pixels + line * w->in[last]) * q->channels, at[last],
                               to);
            }
        }
    }
}

void cpu_qwindow_taps(const cpu_qwindow *q, int64_t pixel, const uint8_t *outside, const uint8_t **taps)
{
    const cpu_window *w = q->w;
    const int32_t last = w->spatial - 1;
    const int64_t lines = w->taps / w->kernel[last], image = pixel / w->out_pixels;
    int64_t at[CPU_MAX_SPATIAL];
    locate(w, pixel % w->out_pixels, at);
    const int64_t first = at[last] * w->stride[last] - w->begin[last];
    for (int64_t tap = 0; tap < lines; tap++) {
        const int64_t line = line_of(w, at, tap);
        for (int64_t k = 0; k < w->kernel[last]; k++) {
            const int64_t p = first + k * w->dilation[last];
            const bool inside = line >= 0 && p >= 0 && p < w->in[last];
            *taps++ = inside ? q->x + (image * w->in_pixels + line * w->in[last] + p) * q->channels : outside;
        }
    }
}

bool cpu_qwindow_is_plain(const cpu_window *w)
{
    for (int32_t i = 0; i < w->spatial; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->out[i] != w->in[i])
            return false;
    return true;
}
