/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of tensors, encoded by the driver. */
#include "backends/cuda/tensor_map.h"

enum { ELEMENT = 2, BOX_BYTES = 128 };

static void *cuda_tensor_map_entry(const char *name)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess) {
        cudaGetLastError(); /* not found is an answer */
        return NULL;
    }
    return function;
}

cuda_tensor_map_encoder cuda_tensor_map_find(void)
{
    return (cuda_tensor_map_encoder)cuda_tensor_map_entry("cuTensorMapEncodeTiled");
}

cuda_image_map_encoder cuda_image_map_find(void)
{
    return (cuda_image_map_encoder)cuda_tensor_map_entry("cuTensorMapEncodeIm2col");
}

cudaError_t cuda_tensor_map_encode(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                   const void *data, uint32_t rows, CUtensorMap *out_map)
{
    const cuuint32_t box[CUDA_TENSOR_MAP_RANK] = {BOX_BYTES / ELEMENT, rows, 1, 1}, steps[] = {1, 1, 1, 1};
    cuuint64_t bytes[CUDA_TENSOR_MAP_RANK - 1];
    for (int i = 1; i < CUDA_TENSOR_MAP_RANK; i++)
        bytes[i - 1] = view->strides[i] * ELEMENT;
    const CUtensorMapDataType type =
        view->dtype == GRT_DTYPE_FLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const CUresult result =
        encode(out_map, type, CUDA_TENSOR_MAP_RANK, (void *)(uintptr_t)data, view->dims, bytes, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
