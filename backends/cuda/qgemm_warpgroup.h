/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by wgmma, for devices of compute capability 9.0: the same as qgemm.h's, faster. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_WARPGROUP_H
#define GRT_BACKENDS_CUDA_QGEMM_WARPGROUP_H

#include "backends/cuda/qgemm_sizes.h"

/* Weights with zero points are not for it. */
bool cuda_qgemm_warpgroup_fits(const cuda_qgemm *g);
/* in_eights: rows of y and of the residual are made of aligned eights. */
grt_status cuda_qgemm_warpgroup_enqueue(const cuda_qgemm *g, const void *x, const void *w,
                                        const void *residual, const cuda_qfinish *finish, void *y,
                                        bool in_eights, cudaStream_t stream);

#endif
