/* SPDX-License-Identifier: Apache-2.0 */
/* Strassen's product of 8-bit matrices in Winograd's form: 7 products of halves in place of 8.
 *
 * Sums of bytes are int16, and products are summed modulo 2^32, so that results have the bits that they have
 * without it. For kernels of int16 only: where an instruction multiplies bytes, sums of bytes have none. */
#ifndef GRT_BACKENDS_CPU_QSTRASSEN_H
#define GRT_BACKENDS_CPU_QSTRASSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grt_qgemm_kernel;

/* Rows, terms and columns are cut into two parts each; the second ones are filled up with zeros. */
typedef struct grt_qstrassen {
    const struct grt_qgemm_kernel *kernel;  /* of the products */
    int64_t k, n;                           /* of B */
    int64_t k_part, n_part;                 /* n_part: a multiple of GRT_QGEMM_WIDTH */
    int64_t groups, panel_bytes, row_bytes; /* of a product */
} grt_qstrassen;

/* True if it makes products of `rows` rows, -1 if that is not known, and a constant matrix faster. kernel:
 * the one that multiplies without it. */
bool grt_qstrassen_pays(const struct grt_qgemm_kernel *kernel, int64_t rows, int64_t k, int64_t n);
/* k and n fit 31 bits. */
grt_qstrassen grt_qstrassen_of(const struct grt_qgemm_kernel *kernel, int64_t k, int64_t n);

/* Bytes of B as packed. False: overflow. */
bool grt_qstrassen_packed_bytes(const grt_qstrassen *s, size_t *out_bytes);
/* B's element (x, j) is from[x * step_k + j * step_n], int8 when changed by `flip`. Adds up its columns. `to`
 * has zeros. */
void grt_qstrassen_pack(const grt_qstrassen *s, const uint8_t *from, int64_t step_k, int64_t step_n,
                        uint8_t flip, int32_t *sums, char *to);

/* Of tiles: their rows at most, those of a part, and how many columns of each part are multiplied together
 * where they have at most `rows` rows. */
int64_t grt_qstrassen_rows(const grt_qstrassen *s);
int64_t grt_qstrassen_columns(const grt_qstrassen *s, int64_t rows);
static inline int64_t grt_qstrassen_part(int64_t rows)
{
    return (rows + 1) / 2;
}

/* Bytes for rows of tiles of at most so many as kernels read them, and for their sums. False: overflow. */
bool grt_qstrassen_scratch_bytes(const grt_qstrassen *s, int64_t rows, size_t *out_rows, size_t *out_sums);
/* `rows` rows of k bytes, ld bytes apart and changed by `flip`, as rows of all products. */
void grt_qstrassen_split(const grt_qstrassen *s, const uint8_t *bytes, int64_t ld, int64_t rows, uint8_t flip,
                         char *to);
/* Sums of columns [col, col + cols) of both parts, cols being a multiple of GRT_QGEMM_WIDTH and at most
 * what grt_qstrassen_columns has. */
void grt_qstrassen_multiply(const grt_qstrassen *s, int64_t rows, const char *a, const char *packed,
                            int64_t col, int64_t cols, int32_t *sums);
/* Where that has GRT_QGEMM_WIDTH columns from `col` + x on of such parts of the rows and of the columns. */
static inline const int32_t *grt_qstrassen_block(int64_t rows, int64_t cols, int row_part, int col_part,
                                                 int64_t x, const int32_t *sums)
{
    return sums + ((2 * row_part + col_part) * cols + x) * grt_qstrassen_part(rows);
}

#endif
