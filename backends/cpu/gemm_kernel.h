/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the GEMM driver (gemm.c) and its micro-kernels (gemm_c.c, gemm_avx2.c,
 * gemm_avx512.c).
 *
 * B is packed in panels of GRT_GEMM_NR columns: panel p holds k rows of 16 floats, columns 16p..16p+15, zeros
 * past column n. The format is the same for every kernel, so a packed weight in a plan serves any CPU. */
#ifndef GRT_BACKENDS_CPU_GEMM_KERNEL_H
#define GRT_BACKENDS_CPU_GEMM_KERNEL_H

#include "backends/cpu/act.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GRT_GEMM_NR 16

/* What a kernel does with a block of sums: which part of the epilogue is due, and where. Pointers are already
 * moved to the block's first row and column. */
typedef struct grt_gemm_store {
    float *c;
    int64_t ldc;
    float alpha;
    float beta; /* factor of what C holds; 1 when C holds the sums of earlier k blocks */
    const float *bias, *bias_row, *residual;
    int64_t ldr;
    grt_act act;
    bool simple; /* beta is 0 or 1, no row bias, no residual, act is none or relu */
} grt_gemm_store;

/* Cache lines of B that are read later. A kernel asks for one of each of its panels (the next panel's is
 * panel_stride behind) every GRT_GEMM_AHEAD_STEPS steps: a burst would fill the queue of misses, and loads
 * would wait behind it. */
typedef struct grt_gemm_ahead {
    const float *next,
        *last; /* the first panel's; the same: asked for again and again, which costs nothing */
} grt_gemm_ahead;

#define GRT_GEMM_AHEAD_STEPS 4
#define GRT_GEMM_LINE        16 /* floats */

/* rows x cols (cols <= 16 * panels) of C from k steps. A's element (i, x) is a[i * rsa + x * csa]; B's panel
 * p starts at b + p * panel_stride and its rows are ldb floats apart. */
typedef void grt_gemm_micro(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                            const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_store *store);
/* The same, while the lines of `ahead` are fetched into the second-level cache. By its address: two pointers
 * that are handed on by value are copied as one vector, which waits for the stores of both. */
typedef void grt_gemm_block(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                            const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_ahead *ahead,
                            const grt_gemm_store *store);

/* Products of a few rows, where B is what costs. */
typedef struct grt_gemm_few {
    int most;               /* rows */
    int panels;             /* that one call of stream takes at most */
    grt_gemm_micro *stream; /* reads B once, front to back */
    /* The same for plain B: row by row, sequential in memory. NULL: stream is used. */
    grt_gemm_micro *sweep;
} grt_gemm_few;

typedef struct grt_gemm_kernel {
    const char *name;
    int mr;     /* rows of a full block */
    int least;  /* fewer rows take as long as these: so many sums hide the latency of a multiply-add */
    int panels; /* of a full block */
    grt_gemm_block *block;
    const grt_gemm_few *few;
} grt_gemm_kernel;

extern const grt_gemm_kernel grt_gemm_kernel_c;
/* NULL where the machine or the build has no such kernel. */
const grt_gemm_kernel *grt_gemm_kernel_avx2(void);
const grt_gemm_kernel *grt_gemm_kernel_avx512(void);

GRT_ACT_INLINE void grt_gemm_fetch(grt_gemm_ahead *ahead, int panels, int64_t panel_stride)
{
    for (int p = 0; p < panels; p++)
        __builtin_prefetch(ahead->next + p * panel_stride, 0, 2);
    ahead->next += ahead->next < ahead->last ? GRT_GEMM_LINE : 0;
}

/* The general epilogue, from a block of sums in `acc` (rows of `acc_ld` floats). Inlined into each kernel's
 * file so that it is compiled for that kernel's instruction set. */
GRT_ACT_INLINE void grt_gemm_store_block(int rows, int64_t cols, float *acc, int64_t acc_ld,
                                         const grt_gemm_store *s)
{
    for (int i = 0; i < rows; i++) {
        float *v = acc + i * acc_ld;
        float *c = s->c + i * s->ldc;
        const float alpha = s->alpha, beta = s->beta;
        if (alpha != 1.0f) {
#pragma omp simd
            for (int64_t j = 0; j < cols; j++)
                v[j] *= alpha;
        }
        if (beta != 0.0f) {
#pragma omp simd
            for (int64_t j = 0; j < cols; j++)
                v[j] += beta * c[j];
        }
        if (s->bias) {
#pragma omp simd
            for (int64_t j = 0; j < cols; j++)
                v[j] += s->bias[j];
        }
        if (s->bias_row) {
            const float r = s->bias_row[i];
#pragma omp simd
            for (int64_t j = 0; j < cols; j++)
                v[j] += r;
        }
        if (s->residual) {
            const float *r = s->residual + i * s->ldr;
#pragma omp simd
            for (int64_t j = 0; j < cols; j++)
                v[j] += r[j];
        }
        grt_act_apply(s->act, v, cols);
        memcpy(c, v, (size_t)cols * sizeof *c);
    }
}

#endif
