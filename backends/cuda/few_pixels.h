/* SPDX-License-Identifier: Apache-2.0 */
/* 1 x 1 convolutions of a few pixels, as those of squeeze-and-excitation blocks and of classifiers: vendors'
 * engines take as long for them as for a whole image, and refuse or copy odd numbers of channels. */
#ifndef GRT_BACKENDS_CUDA_FEW_PIXELS_H
#define GRT_BACKENDS_CUDA_FEW_PIXELS_H

#include "backends/cuda/epilogue.h"

/* y = act(x w' + bias + residual): x is [pixels, channels], w [out_channels, channels]. */
struct cuda_few_pixels {
    grt_dtype dtype; /* FLOAT, FLOAT16 or BFLOAT16; sums are float32 */
    int64_t pixels, channels, out_channels;
    grt_act act;
};

/* False where tensor cores are faster. */
bool cuda_few_pixels_fits(const cuda_few_pixels *p);
/* bias and residual may be NULL. */
void cuda_few_pixels_run(const cuda_few_pixels *p, const void *x, const void *w, const void *bias,
                         const void *residual, void *y, cudaStream_t stream);

#endif
