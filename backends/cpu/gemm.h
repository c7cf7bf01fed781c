/* SPDX-License-Identifier: Apache-2.0 */
/* Single-precision matrix products with a fused epilogue, for the CPU backend.
 *
 *   C[m,n] = act(alpha * A x B + beta * C + bias + residual)
 *
 * B is read best when packed once (a constant weight, at session creation): grt_gemm_pack_b. A plain B is
 * packed into scratch at run time. Nothing here allocates: the caller asks for sizes and brings the memory.
 * Every element of C is summed in the same order whatever the number of threads, so results are reproducible.
 * All matrices are row-major; leading dimensions and strides count floats. */
#ifndef GRT_BACKENDS_CPU_GEMM_H
#define GRT_BACKENDS_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/act.h"

typedef struct grt_gemm {
    int64_t batch;              /* matrices; 1 for a plain product, 0 does nothing */
    int64_t m, n, k;            /* C is m x n, A is m x k, B is k x n, after any transpose; 0 is allowed */
    int64_t lda, ldb, ldc;      /* distance of stored rows; ldb is not used when B is packed */
    int64_t stride_a, stride_c; /* distance of matrices in a batch; stride_a may be 0 */
    int64_t stride_b;           /* the same for B; 0: shared. For a packed B: 0 or grt_gemm_packed_b_floats */
    bool trans_a, trans_b;      /* A is stored k x m; B is stored n x k (plain B only) */
    bool b_packed;              /* b points to what grt_gemm_pack_b wrote */
    int64_t packed_k;           /* rows of a packed B that has more of them than k; 0: it has k */
    float alpha, beta;          /* beta == 0: C is not read */
    const float *bias;          /* n values added to every row, or NULL */
    int64_t stride_bias;        /* distance of a batch's biases; 0: shared */
    const float *bias_row;      /* m values, one added to each row, or NULL */
    const float *residual;      /* same shape as C, or NULL; not C's own memory: beta = 1 says that */
    int64_t ldr, stride_r;      /* its leading dimension and batch stride */
    grt_act act;                /* applied last */
} grt_gemm;

/* Floats that one packed k x n matrix takes. False: k or n negative, or the size does not fit. */
bool grt_gemm_packed_b_floats(int64_t k, int64_t n, size_t *out_floats);

/* Columns of a packed matrix from a multiple of this on are a packed matrix too: column j is at packed + j *
 * k.
 */
enum { GRT_GEMM_PANEL = 16 };

/* Packs one matrix. trans_b as in grt_gemm. `packed` should be 64-byte aligned. */
void grt_gemm_pack_b(int64_t k, int64_t n, const float *b, int64_t ldb, bool trans_b, float *packed);

/* Rows [first, first + rows) of a packed matrix of k rows, from as many rows of a plain one that is not
 * transposed. A product of these rows alone takes packed + first * GRT_GEMM_PANEL, and packed_k = k. */
void grt_gemm_pack_b_rows(int64_t k, int64_t n, int64_t first, int64_t rows, const float *b, int64_t ldb,
                          float *packed);

/* The way back: k x n (or, with trans_b, n x k) floats, rows without gaps. */
void grt_gemm_unpack_b(int64_t k, int64_t n, const float *packed, bool trans_b, float *b);

/* Bytes of 64-byte aligned scratch that grt_gemm_run wants with that many threads; may be 0. False: overflow.
 */
bool grt_gemm_scratch_bytes(const grt_gemm *g, int threads, size_t *out_bytes);

/* Runs on up to `threads` OpenMP threads (at least 1); with 1 it may be called from within a parallel region.
 * C must not overlap A or B. */
void grt_gemm_run(const grt_gemm *g, const float *a, const float *b, float *c, void *scratch, int threads);

/* Which micro-kernel this machine uses: "avx512", "avx2" or "c". For reports and tests. */
const char *grt_gemm_kernel_name(void);

#endif
