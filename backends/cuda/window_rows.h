/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of images whose channels are no whole vectors become rows of a matrix, so that a convolution is a
 * product: the first one of image models. */
#ifndef GRT_BACKENDS_CUDA_WINDOW_ROWS_H
#define GRT_BACKENDS_CUDA_WINDOW_ROWS_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of numbers of 2 or 4 bytes with channels last. A row has the channels of its taps, then zeros up to
 * `length`, whole vectors of 16 bytes. */
typedef struct cuda_window_rows {
    grt_dtype dtype;
    int32_t images, channels, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2], length;
    bool overlaps; /* the kernel may begin before the one in front of it ends */
} cuda_window_rows;

/* rows: aligned to 16 bytes. */
grt_status cuda_window_rows_run(const cuda_window_rows *w, const void *x, void *rows, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
