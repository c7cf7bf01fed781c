/* SPDX-License-Identifier: Apache-2.0 */
/* Products of numbers rounded to bfloat16, summed in float32, by a constant B:
 *
 *   C[m,n] = act(alpha * bfloat16(A) x bfloat16(B) + bias + residual)
 *
 * A product of two such numbers is exact in float32, so kernels differ from each other in the order of a sum
 * and, with instructions for bfloat16, in how numbers below 2^-126 count: as zeros. Every element of C is
 * summed in the same order whatever the number of threads. Nothing here allocates. */
#ifndef GRT_BACKENDS_CPU_BGEMM_H
#define GRT_BACKENDS_CPU_BGEMM_H

#include <graphrt/graphrt.h>

#include "backends/cpu/act.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows [row, row + rows) of A for a product whose A is no matrix in memory: k numbers each, rounded to
 * bfloat16 and stored as `dtype`, lda numbers apart. What is behind a row's k numbers is left as it is. */
typedef void grt_bgemm_rows(const void *user, int64_t row, int64_t rows, grt_dtype dtype, void *out,
                            int64_t lda);

typedef struct grt_bgemm {
    int64_t m, n, k;
    grt_dtype a_dtype; /* FLOAT or BFLOAT16 */
    grt_dtype c_dtype; /* the same, of C and residual */
    int64_t lda, ldc, ldr;
    grt_bgemm_rows *rows; /* where A comes from; NULL: from memory */
    const void *user;
    float alpha;
    const float *bias;    /* n, or NULL */
    const void *residual; /* of C's shape, or NULL */
    grt_act act;
} grt_bgemm;

/* Bytes of a packed k x n matrix. False: k or n negative, or the size does not fit. */
bool grt_bgemm_packed_bytes(int64_t k, int64_t n, size_t *out_bytes);
/* Packs one matrix of FLOAT or BFLOAT16, rounded; trans_b: it is stored n x k. ldb: distance of
 * stored rows. `packed` should be 64-byte aligned. */
void grt_bgemm_pack(int64_t k, int64_t n, grt_dtype dtype, const void *b, int64_t ldb, bool trans_b,
                    uint16_t *packed);
/* The way back, as FLOAT or BFLOAT16: k x n (or, with trans_b, n x k) numbers, rows without gaps. */
void grt_bgemm_unpack(int64_t k, int64_t n, const uint16_t *packed, bool trans_b, grt_dtype dtype, void *b);

/* Bytes of 64-byte aligned scratch that grt_bgemm_run wants with that many threads. False: overflow. */
bool grt_bgemm_scratch_bytes(const grt_bgemm *g, int threads, size_t *out_bytes);
/* Runs on up to `threads` OpenMP threads (at least 1). C must not overlap A or B. */
void grt_bgemm_run(const grt_bgemm *g, const void *a, const uint16_t *packed, void *c, void *scratch,
                   int threads);

/* Which kernel this machine uses: "amx", "avx512_bf16", "avx512", "avx2" or "c". For reports and tests. */
const char *grt_bgemm_kernel_name(void);

#endif
