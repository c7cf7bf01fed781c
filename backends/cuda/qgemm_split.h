/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with few tiles (qgemm.h): the blocks of a cluster share the terms of a tile's sums. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_SPLIT_H
#define GRT_BACKENDS_CUDA_QGEMM_SPLIT_H

#include "backends/cuda/qgemm_sizes.h"

/* False: the tiles are enough for the device, or not for this kernel. */
bool cuda_qgemm_split_fits(const cuda_qgemm *g);
grt_status cuda_qgemm_split_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                                    const cuda_qfinish *finish, void *y, bool in_eights, cudaStream_t stream);

#endif
