/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a fused step that follows the vendor's kernel: bias, residual, activation, in one pass over
 * dst. */
#ifndef GRT_BACKENDS_CUDA_EPILOGUE_H
#define GRT_BACKENDS_CUDA_EPILOGUE_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The activations of graph/ops/fused.c. */
typedef enum cuda_act_kind {
    CUDA_ACT_NONE,
    CUDA_ACT_RELU,
    CUDA_ACT_LEAKY_RELU,
    CUDA_ACT_CLIP,
    CUDA_ACT_ELU,
    CUDA_ACT_SIGMOID,
    CUDA_ACT_TANH,
    CUDA_ACT_SILU,
    CUDA_ACT_GELU,
    CUDA_ACT_GELU_TANH,
    CUDA_ACT_HARD_SIGMOID,
    CUDA_ACT_HARD_SWISH,
    CUDA_ACT_SOFTPLUS,
} cuda_act_kind;

typedef struct cuda_act {
    cuda_act_kind kind;
    float a, b;
} cuda_act;

/* The activation of a node; false, with the reason in why (may be NULL), if it is none of these. */
bool cuda_act_read(const grt_op_desc *desc, cuda_act *out, grt_text *why);

typedef struct cuda_epilogue {
    grt_dtype dtype; /* of dst and all that is added */
    int64_t n;       /* elements of dst */
    /* Bias of element i: bias[i / inner % channels]; if each `matrix` elements have a bias of their own,
     * bias[i / matrix * channels + i % channels]. */
    const void *bias;
    int64_t channels, inner, matrix; /* matrix 0: one bias for all */
    const void *residual;            /* as dst, or NULL */
    cuda_act act;
} cuda_epilogue;

/* dst = act(dst + bias + residual); nothing is enqueued if that changes nothing. */
grt_status cuda_epilogue_run(const cuda_epilogue *e, void *dst, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
