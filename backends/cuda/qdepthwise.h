/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes with a filter for each channel, in any layout, with the epilogue of qproduct.h. */
#ifndef GRT_BACKENDS_CUDA_QDEPTHWISE_H
#define GRT_BACKENDS_CUDA_QDEPTHWISE_H

#include "backends/cuda/qproduct.h"

struct cuda_qdepthwise {
    bool x_signed, sum;
    bool overlaps;         /* the kernel may begin before the one in front of it ends */
    grt_dtype y, residual; /* residual NONE: there is none */
    grt_act act;           /* what limits do not do */
    int32_t images, channels, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    int64_t x_image, x_pixel, x_channel, y_image, y_pixel, y_channel; /* elements from one to the next */
};

/* numbers: [taps, channels] less their zero points. words: the same where bytes have room for them, those of
 * four columns of a window side by side and zeros behind the last, [rows, CUDA_QDEPTHWISE_WORDS, channels];
 * NULL: they have not. */
struct cuda_qdepthwise_weights {
    const int16_t *numbers;
    const uint32_t *words;
};
#define CUDA_QDEPTHWISE_WORDS(columns) (((columns) + 3) / 4)

/* The finish has no offsets but the bias. */
grt_status cuda_qdepthwise_enqueue(const cuda_qdepthwise *d, const void *x, const cuda_qdepthwise_weights *w,
                                   const void *residual, const cuda_qfinish *finish, void *y,
                                   cudaStream_t stream);

#endif
