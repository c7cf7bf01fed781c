/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of QuantizeLinear: scales, zero points, and weights of 8 and 4 bits. */
#ifndef GRT_SRC_QUANTIZE_SCALE_H
#define GRT_SRC_QUANTIZE_SCALE_H

#include "src/base/arena.h"
#include "src/quantize/statistics.h"

typedef struct scale_zero {
    float scale;
    int32_t zero;
} scale_zero;

/* Of activations: UINT8 with a zero point, or INT8 or FLOAT8E4M3FN, symmetric. */
scale_zero scale_of_range(value_range range, grt_dtype dtype);

/* Weights, quantised along `axis`. block 0: a scale for each index of the axis, or one for all if the axis is
 * -1; else one for each `block` elements along it and each index of the other dims. */
typedef struct quantised_weights {
    grt_tensor data, scales; /* no zero points: symmetric */
    double error, signal;    /* sums of squares of what was lost, and of the weights */
} quantised_weights;

/* dtype: INT8, INT4 or FLOAT8E4M3FN. w is float32. `least`: scales per channel that must not be undercut, or
 * NULL. Tensors live in the arena. */
grt_status quantise_weights(const grt_tensor *w, grt_dtype dtype, int32_t axis, int64_t block,
                            const float *least, grt_arena *arena, quantised_weights *out);

#endif
