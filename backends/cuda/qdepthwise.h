/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes with a filter for each channel, in any layout, with the epilogue of qproduct.h. */
#ifndef GRT_BACKENDS_CUDA_QDEPTHWISE_H
#define GRT_BACKENDS_CUDA_QDEPTHWISE_H

#include "backends/cuda/qproduct.h"

struct cuda_qdepthwise {
    bool x_signed, sum;
    grt_dtype y, residual; /* residual NONE: there is none */
    grt_act act;           /* what limits do not do */
    int32_t images, channels, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    int64_t x_image, x_pixel, x_channel, y_image, y_pixel, y_channel; /* elements from one to the next */
};

/* w: [taps, channels] less their zero points. The finish has no offsets but the bias. */
grt_status cuda_qdepthwise_enqueue(const cuda_qdepthwise *d, const void *x, const int16_t *w,
                                   const void *residual, const cuda_qfinish *finish, void *y,
                                   cudaStream_t stream);

#endif
