/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of volumes with channels last, as depthwise.h has for images. */
#ifndef GRT_BACKENDS_CUDA_DEPTHWISE_VOLUME_H
#define GRT_BACKENDS_CUDA_DEPTHWISE_VOLUME_H

#include "backends/cuda/conv_fold.h"
#include "backends/cuda/epilogue.h"

struct cuda_depthwise_volume {
    grt_dtype dtype; /* FLOAT, FLOAT16 or BFLOAT16 */
    int64_t batch, channels;
    cuda_conv_windows windows;
    grt_act act;
};

/* False: sizes do not fit in 31 bits. */
bool cuda_depthwise_volume_fits(const cuda_depthwise_volume *d);
/* w: [window, channels]; bias and residual may be NULL. False, with nothing done, if a pointer is not aligned
 * to the vectors that channels allow, 16 bytes at most. */
bool cuda_depthwise_volume_run(const cuda_depthwise_volume *d, const void *x, const void *w, const void *bias,
                               const void *residual, void *y, cudaStream_t stream);

#endif
