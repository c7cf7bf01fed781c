/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 8-bit images with channels last: unfolded into rows for products, and per channel. */
#ifndef GRT_BACKENDS_CPU_QWINDOW_H
#define GRT_BACKENDS_CPU_QWINDOW_H

#include "backends/shared/window.h"

#include <stdbool.h>

typedef struct cpu_qwindow {
    const cpu_window *w;
    const uint8_t *x;
    int64_t images, channels; /* of a pixel */
    int64_t first, used;      /* those that a row has: a group's */
    uint8_t flip;             /* 0x80: x is int8 */
    uint8_t zero;             /* x's zero point after that */
} cpu_qwindow;

/* A grt_qgemm_fill: row i is output pixel i's window, tap by tap. */
void cpu_qwindow_rows(const void *window, int64_t row, int64_t rows, uint8_t *out, int64_t ld);

/* Where the pixels of `columns` neighbouring columns begin, the first being the first one of output pixel i's
 * window: for each column one for each line of the window; `outside` for those in the padding. */
void cpu_qwindow_columns(const cpu_qwindow *window, int64_t pixel, int64_t columns, const uint8_t *outside,
                         const uint8_t **out);

/* True if row i is pixel i of the image as it is. */
bool cpu_qwindow_is_plain(const cpu_window *w);

#endif
