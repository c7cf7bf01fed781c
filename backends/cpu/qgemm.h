/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit matrices, summed in int32 and requantised:
 *
 *   Y[m,n] = limit(scale[n] * sum((A - a_zero) * (B - b_zero[n])) + bias[n] + residual)
 *
 * Sums are exact (modulo 2^32, as ONNX has them) and the epilogue is the same arithmetic on every instruction
 * set, so that all levels give the same bits. B is packed once, for this process's kernel. Rows of A are used
 * in place where that can be, or made strip by strip: a convolution unfolds its windows so. */
#ifndef GRT_BACKENDS_CPU_QGEMM_H
#define GRT_BACKENDS_CPU_QGEMM_H

#include "backends/cpu/qgemm_finish.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes rows [row, row + rows) of A as bytes of 0 to 255, `ld` bytes apart; what is past column k of a row
 * is not looked at. */
typedef void grt_qgemm_fill(const void *user, int64_t row, int64_t rows, uint8_t *out, int64_t ld);

/* B as packed: matrices one behind the other. */
typedef struct grt_qgemm_b {
    const struct grt_qgemm_kernel *kernel;
    int64_t k, n, bytes; /* of one matrix */
    bool is_signed;
    bool halves; /* for Strassen's products, see qstrassen.h */
} grt_qgemm_b;

typedef struct grt_qgemm {
    int64_t m;
    const uint8_t *a; /* rows in place, or NULL: `fill` makes them */
    int64_t lda;
    bool a_signed; /* a's bytes are int8 */
    grt_qgemm_fill *fill;
    const void *user;
    const grt_qgemm_b *b;
    const void *packed;
    grt_qgemm_finish finish;
    void *y; /* m x n of the finish's dtype */
    int64_t ldy;
} grt_qgemm;

/* False: the sizes do not fit. kernel NULL: this process's best for that k. */
bool grt_qgemm_b_init(const struct grt_qgemm_kernel *kernel, int64_t k, int64_t n, bool is_signed,
                      grt_qgemm_b *out);
/* The same for a constant matrix that meets `rows` rows, -1 if that is not known. */
bool grt_qgemm_b_init_constant(const struct grt_qgemm_kernel *kernel, int64_t rows, int64_t k, int64_t n,
                               bool is_signed, grt_qgemm_b *out);
/* Strassen's products for it, fast or not, where its kernel multiplies int16. False: the sizes do not fit. */
bool grt_qgemm_b_halve(grt_qgemm_b *b);
/* Packs one matrix, whose element (x, j) is b[x * step_k + j * step_n]. `packed` is 64-byte aligned. */
void grt_qgemm_pack(const grt_qgemm_b *b, const uint8_t *from, int64_t step_k, int64_t step_n, void *packed);

/* Arrays of the finish for one product, of grt_qgemm_padded(n) elements each. */
typedef struct grt_qgemm_columns {
    int32_t *offset, *zero;
    float *scale, *bias;
} grt_qgemm_columns;

/* What the columns are made from. */
typedef struct grt_qgemm_params {
    int32_t a_zero;
    bool a_signed;
    float a_scale;
    const void *b_zero; /* n, or one, of B's type; NULL: zeros */
    bool b_zero_each;
    const float *b_scale;
    bool b_scale_each;
    const float *bias;       /* n, or NULL */
    const int32_t *int_bias; /* n, in units of the sums, or NULL */
    float y_scale;           /* 1 where the result is float */
} grt_qgemm_params;

static inline int64_t grt_qgemm_padded(int64_t n)
{
    return (n + GRT_QGEMM_WIDTH - 1) / GRT_QGEMM_WIDTH * GRT_QGEMM_WIDTH;
}

/* Fills the columns of one matrix. */
void grt_qgemm_set_columns(const grt_qgemm_b *b, const void *packed, const grt_qgemm_params *params,
                           const grt_qgemm_columns *columns);
/* Points the finish at filled columns. */
void grt_qgemm_use_columns(const grt_qgemm_b *b, const grt_qgemm_params *params,
                           const grt_qgemm_columns *columns, grt_qgemm_finish *finish);

/* Bytes of 64-byte aligned scratch that a run wants with that many threads. False: overflow. */
bool grt_qgemm_scratch_bytes(const grt_qgemm *g, int threads, size_t *out_bytes);
void grt_qgemm_run(const grt_qgemm *g, void *scratch, int threads);

/* Of B packed for few rows, as are those of recurrent networks. */
const struct grt_qgemm_kernel *grt_qgemm_kernel_of_few(void);
/* The same for products of `rows` rows, at least one, if it is faster for them than any other; else NULL. */
const struct grt_qgemm_kernel *grt_qgemm_kernel_of_rows(int64_t rows);
/* Bytes of a row of A as that kernel reads it. */
int64_t grt_qgemm_row_bytes(int64_t k);
/* k bytes of 0 to 255 as such a row, which is multiplied by that B. */
void grt_qgemm_put_row(const grt_qgemm_b *b, const uint8_t *from, void *row);
/* Sums of such rows, one behind the other, and columns [col, col + n) of B as it is packed: signed bytes, 128
 * less if B is unsigned. col is a multiple of GRT_QGEMM_WIDTH; sums has, for each block of that many columns
 * and each row, that many, those behind the last column unspecified. */
void grt_qgemm_sums(const grt_qgemm_b *b, const void *packed, const void *a, int rows, int64_t col, int64_t n,
                    int32_t *sums);
/* The sum of each column of B as it is packed. */
const int32_t *grt_qgemm_column_sums(const void *packed);

/* Which micro-kernel this process uses, for reports. */
const char *grt_qgemm_kernel_name(void);

#endif
