/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of 2, 4 and 8 bits as graphrt::WMatMul has them: what its inputs and attributes say. */
#ifndef GRT_BACKENDS_SHARED_WEIGHTS_H
#define GRT_BACKENDS_SHARED_WEIGHTS_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What w may be. */
#define GRT_WEIGHTS_INTEGERS \
    (GRT_BIT(UINT8) | GRT_BIT(INT8) | GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_BIT(UINT2) | GRT_BIT(INT2))
#define GRT_WEIGHTS_FLOATS ((GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0)) | GRT_BIT(FLOAT4E2M1))

enum {
    GRT_WEIGHTS_X,
    GRT_WEIGHTS_W,
    GRT_WEIGHTS_SCALE,
    GRT_WEIGHTS_ZERO,
    GRT_WEIGHTS_BIAS,
    GRT_WEIGHTS_RESIDUAL,
    GRT_WEIGHTS_NORM
};

/* Of attribute accuracy_level: x may be rounded to 8 bits for each block of k. */
enum { GRT_WEIGHTS_LEVEL_BYTES = 4 };

/* y = x * dequantised(w): w is a matrix of k rows and n columns. */
typedef struct grt_weights {
    bool transposed; /* stored as [n][k] */
    bool is_signed;  /* integers */
    bool is_float;   /* float8 or float4, whose zero points are 0 */
    bool by_block;   /* scales for blocks of k and columns */
    bool by_row;     /* a scale for each of the k rows */
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
/* Number i of a tensor of 2, 4 or 8 bits, its sign bit flipped if it is a signed integer: 0 is the lowest
 * number. */
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
