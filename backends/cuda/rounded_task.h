/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel of rounded attention (rounded_attention.h) is called with. All levels are unsigned: signed
 * ones are flipped, and their zero points moved. */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_TASK_H
#define GRT_BACKENDS_CUDA_ROUNDED_TASK_H

#include "backends/cuda/cuda.h"

enum { ROUNDED_LEVELS = 256, ROUNDED_KEYS = 512 /* at most */ };

/* Levels by those that were rounded or read, k's as they are multiplied. */
struct cuda_rounded_levels {
    uint8_t share[ROUNDED_LEVELS], q[ROUNDED_LEVELS], k[ROUNDED_LEVELS];
};

/* exp(-i * scale) in units of 2^-23, as the float32 that is 2^23 more: its bits are summed as an integer, and
 * multiplied as a number. */
struct cuda_rounded_tables {
    uint32_t exponential[ROUNDED_LEVELS];
    cuda_rounded_levels levels;
};

/* A tensor of [batch, heads, tokens, ...]: bytes from one to the next. */
struct cuda_rounded_strides {
    int64_t batch, head, token;
};

struct cuda_rounded_attention {
    const uint8_t *q, *k, *v, *mask; /* mask NULL: there is none */
    uint8_t *y;
    const cuda_rounded_tables *tables;
    cuda_rounded_strides of_q, of_k, of_v, of_y, of_mask;
    int64_t mask_key;
    int32_t batch, heads, queries, keys, size;
    uint32_t flip_q, flip_k, flip_v, flip_mask, flip_y; /* of words */
    bool has_table, has_q_table, has_k_table;
    bool mask_pairs;                           /* two neighbours of the mask are read at once */
    bool y_eights;                             /* eight neighbours of the result are written at once */
    int32_t q_zero, k_zero, v_zero, read_zero; /* k's and v's less 128, as these are signed in products */
    int32_t score_zero, mask_zero, sum_zero, share_zero, y_zero;
    float score_scale;         /* of sums of q and k, in units of the scores' */
    float sum_score, sum_mask; /* of both, in units of the sums' */
    float share_scale;         /* as the softmax is rounded */
    float y_scale;             /* of sums of shares and v, in units of y's */
};

#endif
