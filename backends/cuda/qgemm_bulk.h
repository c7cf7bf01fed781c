/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by wgmma whose operands, residuals and results are moved by the bulk copy engine: the
 * same as qgemm.h's, for many pixels, 32s of filters and results with channels last. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_BULK_H
#define GRT_BACKENDS_CUDA_QGEMM_BULK_H

#include "backends/cuda/qgemm_sizes.h"

bool cuda_qgemm_bulk_fits(const cuda_qgemm *g, const void *residual, const void *y);
grt_status cuda_qgemm_bulk_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                                   const cuda_qfinish *finish, void *y, cudaStream_t stream);

#endif
