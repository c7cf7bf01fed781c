/* SPDX-License-Identifier: Apache-2.0 */
/* The portable GEMM micro-kernel: plain C that any compiler vectorises for the target it is given. It is what
 * machines without AVX2 run, and what the vector kernels are tested against. */
#include "backends/cpu/gemm_kernel.h"

#define ROWS 4

static void gemm_c_stream(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                          const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_store *store)
{
    (void)panel_stride;
    float acc[ROWS][GRT_GEMM_NR] = {{0}};
    for (int64_t x = 0; x < k; x++) {
        const float *row = b + x * ldb;
        for (int i = 0; i < rows; i++) {
            const float v = a[i * rsa + x * csa];
#pragma omp simd
            for (int j = 0; j < GRT_GEMM_NR; j++)
                acc[i][j] += v * row[j];
        }
    }
    grt_gemm_store_block(rows, cols, acc[0], GRT_GEMM_NR, store);
}

/* Fetches nothing ahead: hardware without a kernel of its own does that as it sees fit. */
static void gemm_c_block(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                         const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_ahead *ahead,
                         const grt_gemm_store *store)
{
    (void)ahead;
    gemm_c_stream(rows, cols, k, a, rsa, csa, b, ldb, panel_stride, store);
}

static const grt_gemm_few none = {0, 1, gemm_c_stream, NULL};
const grt_gemm_kernel grt_gemm_kernel_c = {"c", ROWS, 1, 1, gemm_c_block, &none};
