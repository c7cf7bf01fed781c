/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between products of bfloat16 (bgemm.c) and their loops, one set for each instruction set. */
#ifndef GRT_BACKENDS_CPU_BGEMM_KERNEL_H
#define GRT_BACKENDS_CPU_BGEMM_KERNEL_H

#include "backends/cpu/gemm_kernel.h"

#include <stdbool.h>
#include <stdint.h>

/* B is packed in panels of 16 columns: of each two rows of k a word a column, the first row's number in its
 * lower half, zeros behind the last row and column. k is padded to a multiple of 32, as A is: what a tile
 * has. The format is the same for every kernel, so a packed weight in a plan serves any CPU. */
enum { GRT_BGEMM_NR = 16, GRT_BGEMM_K = 32, GRT_BGEMM_PANELS = 2, GRT_BGEMM_COLS = 32 };

/* Rows of A by one or two panels of B. */
typedef struct grt_bgemm_block {
    int rows, panels;
    int64_t k; /* a multiple of GRT_BGEMM_K */
    const void *a;
    int64_t lda; /* numbers */
    const uint16_t *b;
    int64_t panel_stride; /* numbers */
    const char *ahead;    /* cache lines of B that are read later; `lines` of them for each 32 of k */
    int64_t lines;
    bool adds;   /* to what the sums hold */
    float *sums; /* rows x 32 */
} grt_bgemm_block;

typedef struct grt_bgemm_kernel {
    const char *name;
    int rows;    /* of a block at most */
    bool wide_a; /* A's numbers are float32, rounded to bfloat16; else bfloat16 */
    void (*block)(const grt_bgemm_block *block);
    /* The epilogue of a block's sums, which it overwrites. */
    void (*finish)(int rows, int64_t cols, float *sums, const grt_gemm_store *store);
    void (*end)(void); /* after a thread's last block; NULL: nothing to do */
} grt_bgemm_kernel;

extern const grt_bgemm_kernel grt_bgemm_kernel_c;
/* NULL where the machine, the process's level or the build has no such kernel. */
const grt_bgemm_kernel *grt_bgemm_kernel_avx2(void);
const grt_bgemm_kernel *grt_bgemm_kernel_avx512(void);
const grt_bgemm_kernel *grt_bgemm_kernel_avx512_bf16(void);
const grt_bgemm_kernel *grt_bgemm_kernel_amx(void);

/* The epilogue for the kernels of AVX-512 and more; only where the build has them. */
void grt_bgemm_finish_avx512(int rows, int64_t cols, float *sums, const grt_gemm_store *store);

#endif
