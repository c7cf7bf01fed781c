/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of tensors, encoded by the driver. */
#include "backends/cuda/tensor_map.h"

enum { BOX_BYTES = 128 };

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

cudaError_t cuda_tensor_map_error(CUresult result)
{
    return (cudaError_t)result;
}

/* Dense boxes. */
static cudaError_t encode_boxes(cuda_tensor_map_encoder encode, CUtensorMapDataType type, uint32_t rank,
                                const void *data, const cuuint64_t *dims, const cuuint64_t *strides,
                                const cuuint32_t *box, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMap *out_map)
{
    const cuuint32_t steps[] = {1, 1, 1, 1, 1};
    return cuda_tensor_map_error(encode(out_map, type, rank, (void *)(uintptr_t)data, dims, strides, box,
                                        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
                                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static cudaError_t encode_view(cuda_tensor_map_encoder encode, CUtensorMapDataType type,
                               const cuda_tensor_view *view, const void *data, uint32_t rows, uint32_t line,
                               CUtensorMap *out_map)
{
    const size_t size = grt_dtype_size(view->dtype);
    const cuuint32_t box[CUDA_TENSOR_MAP_RANK] = {line / (uint32_t)size, rows, 1, 1};
    cuuint64_t bytes[CUDA_TENSOR_MAP_RANK - 1];
    for (int i = 1; i < CUDA_TENSOR_MAP_RANK; i++)
        bytes[i - 1] = view->strides[i] * size;
    return encode_boxes(encode, type, CUDA_TENSOR_MAP_RANK, data, view->dims, bytes, box,
                        line == BOX_BYTES ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, out_map);
}

cudaError_t cuda_tensor_map_encode(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                   const void *data, uint32_t rows, CUtensorMap *out_map)
{
    return encode_view(encode,
                       view->dtype == GRT_DTYPE_FLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                        : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                       view, data, rows, BOX_BYTES, out_map);
}

cudaError_t cuda_tensor_map_lines(cuda_tensor_map_encoder encode, const cuda_tensor_view *view,
                                  const void *data, uint32_t rows, uint32_t line, CUtensorMap *out_map)
{
    const size_t size = grt_dtype_size(view->dtype);
    return encode_view(encode,
                       size == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                       : size == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                   : CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       view, data, rows, line, out_map);
}

cudaError_t cuda_tensor_map_matrix(cuda_tensor_map_encoder encode, const cuda_matrix_view *view, int rows,
                                   int line, CUtensorMap *out_map)
{
    const cuuint64_t dims[] = {(cuuint64_t)view->columns, (cuuint64_t)view->rows},
                     strides[] = {(cuuint64_t)view->stride};
    const cuuint32_t box[] = {(cuuint32_t)(line / view->size), (cuuint32_t)rows};
    return encode_boxes(encode,
                        view->size == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
                        view->data, dims, strides, box,
                        line == BOX_BYTES ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, out_map);
}

cudaError_t cuda_tensor_map_filters(cuda_tensor_map_encoder encode, const void *data, int64_t filters,
                                    int64_t bytes, int rows, CUtensorMap *out_map)
{
    const cuuint64_t row = (cuuint64_t)bytes, dims[] = {row, 2, 4, 4, (cuuint64_t)filters / 32},
                     strides[] = {row, 8 * row, 2 * row, 32 * row};
    const cuuint32_t box[] = {BOX_BYTES, 2, 4, 4, (cuuint32_t)rows / 32};
    return encode_boxes(encode, CU_TENSOR_MAP_DATA_TYPE_UINT8, 5, data, dims, strides, box,
                        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, out_map);
}
