/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in the order in which products of bytes read them. */
#ifndef GRT_BACKENDS_CUDA_QPACK_H
#define GRT_BACKENDS_CUDA_QPACK_H

#include "backends/cuda/qproduct.h"

/* Rows of `width` bytes, padded to multiples of CUDA_QCHUNK, of a tensor with any strides: element (a, b, c,
 * d) is from[a * step[0] + b * step[1] + c * step[2] + d * step[3]], and rows are in the order of a, b, c. */
struct cuda_qrows {
    int64_t count[3], width, step[4];
};

static inline int64_t cuda_qrow_bytes(int64_t width)
{
    return (width + CUDA_QCHUNK - 1) / CUDA_QCHUNK * CUDA_QCHUNK;
}

/* Copies x; the bytes behind a row are `fill`'s, a byte in device memory, or 0 if that is NULL. */
grt_status cuda_qrows_copy(const cuda_qrows *rows, const void *from, const void *fill, void *to,
                           cudaStream_t stream);
/* Lines of an image, unfolded: for each result of a line the taps that its window has in it, [taps,
 * channels], padded as rows are. */
struct cuda_qlines {
    int64_t lines, in, out, taps, channels, stride, dilation, begin, step_image, step_line, step_pixel,
        step_channel, per_image; /* per_image: lines of it */
};

/* What is outside of a line, and behind a row, is `fill`'s, a byte in device memory, or 0 if that is NULL. */
grt_status cuda_qlines_unfold(const cuda_qlines *lines, const void *from, const void *fill, void *to,
                              cudaStream_t stream);
/* Weights, on the host: a and b count filters, c their taps, d channels; unsigned ones less 128. sums: of
 * each filter. to is zeroed. */
void cuda_qweights_pack(const cuda_qrows *rows, const void *from, bool is_signed, void *to, int32_t *sums);
/* The same on the device, of filters of one tap: a counts matrices, b their columns. */
grt_status cuda_qweights_enqueue(const cuda_qrows *rows, const void *from, bool is_signed, void *to,
                                 int32_t *sums, cudaStream_t stream);

#endif
