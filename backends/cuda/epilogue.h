/* SPDX-License-Identifier: Apache-2.0 */
/* What a fused step still owes after the vendor's kernel has written dst: bias, residual, activation, in one
 * pass. */
#ifndef GRT_BACKENDS_CUDA_EPILOGUE_H
#define GRT_BACKENDS_CUDA_EPILOGUE_H

#include "backends/cuda/cuda.h"
#include "src/base/activation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_epilogue {
    grt_dtype dtype; /* of dst and all that is added */
    int64_t n;       /* elements of dst */
    /* Bias of element i: bias[i / inner % channels]; if each `matrix` elements have a bias of their own,
     * bias[i / matrix * channels + i % channels]. */
    const void *bias;
    int64_t channels, inner, matrix; /* matrix 0: one bias for all */
    const void *residual;            /* as dst, or NULL */
    grt_act act;
} cuda_epilogue;

/* dst = act(dst + bias + residual); nothing is enqueued if that changes nothing. */
grt_status cuda_epilogue_run(const cuda_epilogue *e, void *dst, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
