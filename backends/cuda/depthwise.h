/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution with channels last: one filter a channel, or several, bias, residual and activation
 * in the same pass. cuDNN's engines for these are slow with channels last (docs/decisions/cuda.md). */
#ifndef GRT_BACKENDS_CUDA_DEPTHWISE_H
#define GRT_BACKENDS_CUDA_DEPTHWISE_H

#include "backends/cuda/epilogue.h"

/* Two spatial dims. */
struct cuda_depthwise {
    grt_dtype dtype;                  /* FLOAT, FLOAT16 or BFLOAT16 */
    int64_t batch, channels, filters; /* channels of the input; filters of each */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    grt_act act;
};

/* Sizes must fit in 31 bits. */
bool cuda_depthwise_fits(const cuda_depthwise *d);
/* w: [window, channels * filters]; bias and residual may be NULL. False, with nothing done, if a pointer is
 * not aligned to 16 bytes. */
bool cuda_depthwise_run(const cuda_depthwise *d, const void *x, const void *w, const void *bias,
                        const void *residual, void *y, cudaStream_t stream);

#endif
