/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of gemm_tile.cuh's kernel. */
#ifndef GRT_BACKENDS_CUDA_GEMM_FORMS_H
#define GRT_BACKENDS_CUDA_GEMM_FORMS_H

#include "src/base/activation.h"

#include <stdbool.h>

/* X(number, warpgroups, columns, stages, blocks on a multiprocessor, may split the sum) */
#define GEMM_FORMS(X)         \
    X(0, 1, 32, 6, 3, true)   \
    X(1, 1, 64, 6, 2, true)   \
    X(2, 1, 128, 4, 2, true)  \
    X(3, 2, 64, 4, 2, true)   \
    X(4, 2, 128, 3, 2, true)  \
    X(5, 2, 128, 6, 1, true)  \
    X(6, 2, 192, 5, 1, false) \
    X(7, 2, 256, 4, 1, true)  \
    X(8, 3, 128, 5, 1, true)  \
    X(9, 3, 192, 4, 1, false) \
    X(10, 1, 64, 12, 1, true) \
    X(11, 2, 64, 8, 1, true)

/* The same of strict float32, whose ring has two stages of lower parts of weights beside it. */
#define GEMM_STRICT_FORMS(X) \
    X(0, 1, 32, 8, 2, true)  \
    X(1, 1, 64, 5, 2, true)  \
    X(2, 1, 128, 3, 2, true) \
    X(3, 2, 64, 8, 1, true)  \
    X(4, 2, 128, 5, 1, true) \
    X(5, 1, 64, 12, 1, true) \
    X(6, 1, 32, 12, 1, true)

enum { GEMM_MOST_SPLITS = 8 };

/* Activations that only bound. */
static inline bool gemm_is_bounds(grt_act_kind kind)
{
    return kind == GRT_ACT_NONE || kind == GRT_ACT_RELU || kind == GRT_ACT_CLIP;
}

static inline bool gemm_is_gelu(grt_act_kind kind)
{
    return kind == GRT_ACT_GELU_ERF || kind == GRT_ACT_GELU_TANH;
}

#endif
