/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of 4 and 8 bits as graphrt::WMatMul has them: what its inputs and attributes say. */
#ifndef GRT_BACKENDS_SHARED_WEIGHTS_H
#define GRT_BACKENDS_SHARED_WEIGHTS_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_WEIGHTS_X, GRT_WEIGHTS_W, GRT_WEIGHTS_SCALE, GRT_WEIGHTS_ZERO, GRT_WEIGHTS_BIAS };

/* y = x * dequantised(w): w is a matrix of k rows and n columns. */
typedef struct grt_weights {
    bool transposed; /* stored as [n][k] */
    bool is_signed, is_float8;
    bool by_block; /* scales for blocks of k and columns */
    bool by_row;   /* a scale for each of the k rows */
    int bits;
    int64_t k, n;
    int64_t block, blocks; /* elements of a column that share a scale: k in 1 block if not by_block */
    int64_t scales;        /* of the whole matrix */
    int64_t zeros;         /* zero points: 0, 1 or as many as there are scales */
} grt_weights;

/* False if the dims do not fit, or w has no data. */
bool grt_weights_read(const grt_kernel_node *node, grt_weights *out);
/* Which scale block b of column j has. Not by_row. */
int64_t grt_weights_scale(const grt_weights *w, int64_t b, int64_t j);
/* Number i of a tensor of 4 or 8 bits, its sign bit flipped if it is signed: 0 is the lowest number. */
uint8_t grt_weights_number(const grt_weights *w, const void *data, int64_t i);
/* What a zero point of 0 is then. */
static inline uint8_t grt_weights_flip(const grt_weights *w)
{
    return (uint8_t)(w->is_signed ? 1 << (w->bits - 1) : 0);
}

#ifdef __cplusplus
}
#endif
#endif
