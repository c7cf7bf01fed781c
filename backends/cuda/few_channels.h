/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images and volumes with up to four channels, channels last, 16-bit: the first one of models
 * that begin with a large window. */
#ifndef GRT_BACKENDS_CUDA_FEW_CHANNELS_H
#define GRT_BACKENDS_CUDA_FEW_CHANNELS_H

#include "backends/cuda/conv_fold.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/few_channels_form.h"

typedef struct cuda_few_channels {
    grt_dtype dtype; /* FLOAT16 or BFLOAT16 */
    int64_t batch, channels, out_channels;
    cuda_conv_windows windows; /* dilation 1 */
    grt_act act;
    few_channels_form form; /* set by cuda_few_channels_plan, as what follows */
    int32_t column_tiles;   /* of a block, of 8 output channels each */
    size_t shared;
    int32_t multiprocessors;
} cuda_few_channels;

/* False if sizes or type are not for this kernel, or cuDNN is faster. */
bool cuda_few_channels_plan(cuda_few_channels *c, int multiprocessors);
/* w: [out_channels, window, channels]; bias may be NULL. False, with nothing done, if x is not aligned to 4
 * bytes or y to 16. */
bool cuda_few_channels_run(const cuda_few_channels *c, const void *x, const void *w, const void *bias,
                           void *y, cudaStream_t stream);

#endif
