/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes with few channels: the taps of a window's line lie side by side in shared memory,
 * where they are unfolded into registers. For devices of compute capability 9.0. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_LINES_H
#define GRT_BACKENDS_CUDA_QGEMM_LINES_H

#include "backends/cuda/qgemm_sizes.h"
#include "backends/cuda/qpack.h"

/* g: the product of unfolded lines, whose taps are those of `lines`. */
bool cuda_qgemm_lines_fits(const cuda_qgemm *g, const cuda_qlines *lines);
/* x: the image. */
grt_status cuda_qgemm_lines_enqueue(const cuda_qgemm *g, const cuda_qlines *lines, const void *x,
                                    const void *w, const void *residual, const cuda_qfinish *finish, void *y,
                                    cudaStream_t stream);

#endif
