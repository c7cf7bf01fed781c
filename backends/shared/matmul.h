/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul: how products, batches and what is added to them lie in memory. */
#ifndef GRT_BACKENDS_SHARED_MATMUL_H
#define GRT_BACKENDS_SHARED_MATMUL_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_MATMUL_BIAS = 2, GRT_MATMUL_RESIDUAL = 3 }; /* Gemm's C is where the others have a bias */

/* Rows and columns as they are stored: a vector A is a row, a vector B a column. */
typedef struct grt_matrix {
    int64_t rows, cols;
} grt_matrix;

static inline int64_t grt_matrix_size(grt_matrix matrix)
{
    return matrix.rows * matrix.cols;
}

/* `calls` batches of `batch` products of m x k by k x n; steps and strides count matrices of A and of B, 0
 * where one serves all. */
typedef struct grt_matmul {
    bool is_gemm, trans_a, trans_b;
    int64_t m, n, k;
    grt_matrix a, b;
    int64_t batch, stride_a, stride_b;
    int32_t outer_rank; /* batch dims that no stride expresses */
    int64_t outer[GRT_MAX_RANK], step_a[GRT_MAX_RANK], step_b[GRT_MAX_RANK];
    int64_t calls, call_c, n_c; /* elements of the result in a call, and in all */
    bool bias_rows;             /* each matrix of the batch has a bias of its own */
    grt_matrix c;               /* Gemm's C: each 1 or the result's */
} grt_matmul;

grt_matrix grt_matrix_of(const grt_tensor *t, bool is_b);
/* Errors: INVALID_ARGUMENT if bias, residual or C do not fit the result. */
grt_status grt_matmul_fit(const grt_reshape *reshape, grt_matmul *out_matmul);
/* The matrices of A and of B that a call begins with. */
void grt_matmul_find(const grt_matmul *matmul, int64_t call, int64_t *out_a, int64_t *out_b);

#ifdef __cplusplus
}
#endif
#endif
