/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/qgemm_maps.h"

enum { MAP_LINE = 128 };

cudaError_t cuda_qgemm_map_rows(const cuda_qgemm *g, const void *data, int size, int64_t columns,
                                int64_t stride, int line, int rows, CUtensorMap *out)
{
    const cuda_matrix_view view = {data, size, (int64_t)g->images * g->out[0] * g->out[1], columns, stride};
    return cuda_tensor_map_matrix(g->encode_tiled, &view, rows, line, out);
}

cudaError_t cuda_qgemm_map_windows(const cuda_qgemm *g, const void *data, int pixels, int line,
                                   CUtensorMap *out)
{
    const cuuint64_t dims[] = {(cuuint64_t)g->chunks * CUDA_QCHUNK, (cuuint64_t)g->in[1],
                               (cuuint64_t)g->in[0], (cuuint64_t)g->images},
                     strides[] = {(cuuint64_t)g->x_pixel, (cuuint64_t)(g->x_pixel * g->in[1]),
                                  (cuuint64_t)g->x_image};
    const int lower[] = {-g->begin[1], -g->begin[0]},
              upper[] = {-g->begin[1] + (g->out[1] - 1) * g->stride[1] + 1 - g->in[1],
                         -g->begin[0] + (g->out[0] - 1) * g->stride[0] + 1 - g->in[0]};
    const cuuint32_t steps[] = {1, (cuuint32_t)g->stride[1], (cuuint32_t)g->stride[0], 1};
    return cuda_tensor_map_error(
        g->encode_im2col(out, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *)(uintptr_t)data, dims, strides, lower,
                         upper, (cuuint32_t)line, (cuuint32_t)pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         line == MAP_LINE ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

cudaError_t cuda_qgemm_map_filters(const cuda_qgemm *g, const void *data, int rows, CUtensorMap *out)
{
    const int64_t bytes = (int64_t)g->kernel[0] * g->kernel[1] * g->chunks * CUDA_QCHUNK;
    return cuda_tensor_map_filters(g->encode_tiled, data, g->n, bytes, rows, out);
}
