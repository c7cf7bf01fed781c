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
    grt_dtype dtype; /* FLOAT16 or BFLOAT16 */
    uint64_t dims[CUDA_TENSOR_MAP_RANK], strides[CUDA_TENSOR_MAP_RANK];
} cuda_tensor_view;

/* The driver's functions; NULL: the driver has none. */
cuda_tensor_map_encoder cuda_tensor_map_find(void);
cuda_image_map_encoder cuda_image_map_find(void);
/* Boxes of `rows` (second dim) by 128 bytes (first dim), swizzled by 128 bytes. data, and strides in bytes,
 * are multiples of 16. */
cudaError_t cuda_tensor_map_encode(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                   const void *data, uint32_t rows, CUtensorMap *out_map);

#ifdef __cplusplus
}
#endif
#endif
