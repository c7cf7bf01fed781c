/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of tensors for the bulk copy engine (Hopper and newer): tiles of a strided tensor come to shared
 * memory by one instruction, laid out as wgmma reads them, with zeros for what lies outside. */
#ifndef GRT_BACKENDS_CUDA_TENSOR_MAP_H
#define GRT_BACKENDS_CUDA_TENSOR_MAP_H

#include "backends/cuda/cuda.h"

#include <cudaTypedefs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef PFN_cuTensorMapEncodeTiled_v12000 cuda_tensor_map_encoder;
typedef PFN_cuTensorMapEncodeIm2col_v12000 cuda_image_map_encoder; /* of windows of images */

enum { CUDA_TENSOR_MAP_RANK = 4 };

/* What a map is of: the last dim of a tensor comes first and is dense. Strides are in elements, that of the
 * first dim is not read. */
typedef struct cuda_tensor_view {
    grt_dtype dtype;
    uint64_t dims[CUDA_TENSOR_MAP_RANK], strides[CUDA_TENSOR_MAP_RANK];
} cuda_tensor_view;

/* A matrix whose rows are dense. */
typedef struct cuda_matrix_view {
    const void *data;
    int size; /* of an element: 1 or 2 bytes */
    int64_t rows, columns;
    int64_t stride; /* bytes from a row to the next */
} cuda_matrix_view;

/* The driver's functions; NULL: the driver has none. */
cuda_tensor_map_encoder cuda_tensor_map_find(void);
cuda_image_map_encoder cuda_image_map_find(void);

/* Addresses, and strides in bytes, are multiples of 16; otherwise the driver refuses. */

/* Of elements of 16 bits: boxes of `rows` (second dim) by 128 bytes (first dim), swizzled by 128 bytes. */
cudaError_t cuda_tensor_map_encode(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                   const void *data, uint32_t rows, CUtensorMap *out_map);
/* Of elements of 1, 2 or 4 bytes: boxes of `rows` by `line` bytes, 128 or 64, swizzled by as many. */
cudaError_t cuda_tensor_map_lines(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                  const void *data, uint32_t rows, uint32_t line, CUtensorMap *out_map);
/* Boxes of `rows` by `line` bytes, 128 or 64, swizzled by as many. */
cudaError_t cuda_tensor_map_matrix(cuda_tensor_map_encoder encode, const cuda_matrix_view *view, int rows,
                                   int line, CUtensorMap *out_map);
/* Filters of `bytes` each, 32s of them: boxes of 128 bytes of `rows` filters, in such an order that a lane's
 * sums are of eight filters side by side (filter_of): a filter's lowest bit, the next two and the two above
 * are dims. */
cudaError_t cuda_tensor_map_filters(cuda_tensor_map_encoder encode, const void *data, int64_t filters,
                                    int64_t bytes, int rows, CUtensorMap *out_map);
/* What an encoder answers: the driver's errors have the runtime's numbers. */
cudaError_t cuda_tensor_map_error(CUresult result);

#ifdef __cplusplus
}
#endif
#endif
