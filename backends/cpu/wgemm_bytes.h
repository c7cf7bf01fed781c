/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows that are rounded to 8 bits by integer weights of 4 or 8 bits. A row has a scale for each
 * block of k, so that sums of a block are integers:
 *
 *   Y[m,n] = sum over blocks of x_scale[m] * w_scale[n] * sum(X * (W - zero)) */
#ifndef GRT_BACKENDS_CPU_WGEMM_BYTES_H
#define GRT_BACKENDS_CPU_WGEMM_BYTES_H

#include "backends/cpu/wgemm_kernel.h"

#include <stddef.h>

enum { GRT_WGEMM_BYTE_ROWS = 12 };

/* Rows of x. Bytes lie in the order in which a kernel takes weights out of their words: of 4 bits, even ones
 * of eight come first. A block ends with zeros where its last word is not full. */
typedef struct grt_wgemm_rounded {
    int64_t ld; /* bytes of a row */
    int8_t *numbers;
    float *scales; /* [row][block] */
    int32_t *sums; /* [row][block]: of its numbers */
} grt_wgemm_rounded;

typedef struct grt_wgemm_byte_kernel {
    int rows; /* that are multiplied together, at most GRT_WGEMM_BYTE_ROWS */
    int bits; /* of weights at most */
    /* sums: rows x 16, of any number of rows. */
    void (*multiply)(const grt_wgemm *w, int64_t rows, const grt_wgemm_panel *p, const grt_wgemm_rounded *x,
                     float *sums);
} grt_wgemm_byte_kernel;

/* This process's kernel for such weights, or NULL. */
const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_of(const grt_wgemm *w);
const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx2(void);
const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx512_vnni(void);

/* Bytes of memory for m rows. False: overflow. */
bool grt_wgemm_rounded_bytes(const grt_wgemm *w, int64_t m, size_t *out_bytes);
/* Lays out rows in 64-byte aligned memory. */
grt_wgemm_rounded grt_wgemm_rounded_at(const grt_wgemm *w, int64_t m, void *memory);
/* Rows from `row` on. */
static inline grt_wgemm_rounded grt_wgemm_rounded_from(const grt_wgemm *w, const grt_wgemm_rounded *x,
                                                       int64_t row)
{
    return (grt_wgemm_rounded){x->ld, x->numbers + row * x->ld, x->scales + row * w->blocks,
                               x->sums + row * w->blocks};
}
/* Rounds a row of k numbers: to nearest, the largest of a block to 127. */
void grt_wgemm_round_row(const grt_wgemm *w, const grt_wgemm_rounded *x, int64_t row, const float *from);

#endif
