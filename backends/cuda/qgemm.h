/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes on tensor cores with the epilogue of qproduct.h. Windows of images with channels last are
 * read where they are: a row of the product is a pixel of the result, its terms are taps and then channels.
 * A matrix is an image of one row and windows of one tap. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_H
#define GRT_BACKENDS_CUDA_QGEMM_H

#include "backends/cuda/qgemm_sizes.h"

/* What the product asks of the device. */
void cuda_qgemm_set_device(cuda_qgemm *g, const cuda_device *device);
/* False: too large. */
bool cuda_qgemm_fits(const cuda_qgemm *g);
/* True if the product looks its results up in g->table itself. */
bool cuda_qgemm_looks_up(const cuda_qgemm *g, const void *residual, const void *y);
/* w: [items' filters, taps, chunks]; x and w are aligned to CUDA_QCHUNK bytes. */
grt_status cuda_qgemm_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                              const cuda_qfinish *finish, void *y, cudaStream_t stream);

#endif
