/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between products by weights of few bits (wgemm.c) and their loops, one set for each
 * instruction set (wgemm_loops.inc). */
#ifndef GRT_BACKENDS_CPU_WGEMM_KERNEL_H
#define GRT_BACKENDS_CPU_WGEMM_KERNEL_H

#include <graphrt/graphrt.h>

#include <stdbool.h>
#include <stdint.h>

enum { GRT_WGEMM_NR = 16, GRT_WGEMM_ROWS = 12, GRT_WGEMM_FEW = 16 };

/* Panels of 16 columns. Numbers are unsigned; a group is 16 words, one a column, of consecutive numbers, as
 * many as fit, the first in the lowest bits. Each block of k begins with a group of its own. */
typedef struct grt_wgemm {
    int64_t k, n, block, blocks; /* blocks: of k, each of `block` but the last */
    int bits;                    /* 2, 4 or 8 */
    grt_dtype floats;            /* float8 or float4, whose zeros are 0; NONE: integers */
    bool may_round;              /* rows of x to 8 bits for each block */
    int64_t groups;              /* of a block */
    uint32_t *numbers;           /* [panel][block][group][16] */
    float *scales;               /* [panel][block][16] */
    uint8_t *zeros;              /* the same */
} grt_wgemm;

/* 16 columns of the weights. */
typedef struct grt_wgemm_panel {
    const uint32_t *numbers;
    const uint8_t *zeros;
    const float *scales;
} grt_wgemm_panel;

typedef struct grt_wgemm_kernel {
    int few_rows; /* up to so many, at most GRT_WGEMM_FEW, `few` is faster than `widen` and a product */
    /* sums: rows x 16, of rows of a, which are w->k apart. */
    void (*few)(const grt_wgemm *w, int rows, const grt_wgemm_panel *p, const float *a, float *sums);
    /* out: w->k x 16, the panel as the float32 product has it. */
    void (*widen)(const grt_wgemm *w, const grt_wgemm_panel *p, float *out);
} grt_wgemm_kernel;

const grt_wgemm_kernel *grt_wgemm_kernel_c(void);
const grt_wgemm_kernel *grt_wgemm_kernel_avx2(void);
const grt_wgemm_kernel *grt_wgemm_kernel_avx512(void);

#endif
