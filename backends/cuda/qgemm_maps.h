/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of a product's matrices and images for the bulk copy engine. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_MAPS_H
#define GRT_BACKENDS_CUDA_QGEMM_MAPS_H

#include "backends/cuda/qgemm_sizes.h"

/* Rows of x, y or the residual, `size` bytes an element: boxes of `rows` by `line` bytes, 128 or 64, swizzled
 * by as many. stride: bytes. */
cudaError_t cuda_qgemm_map_rows(const cuda_qgemm *g, const void *data, int size, int64_t columns,
                                int64_t stride, int line, int rows, CUtensorMap *out);
/* What windows see of x under one tap: `pixels` results, `line` channels, 128 or 64, swizzled by as many. */
cudaError_t cuda_qgemm_map_windows(const cuda_qgemm *g, const void *data, int pixels, int line,
                                   CUtensorMap *out);
/* 128 bytes of `rows` filters, in the order of filter_of. */
cudaError_t cuda_qgemm_map_filters(const cuda_qgemm *g, const void *data, int rows, CUtensorMap *out);

#endif
