/* SPDX-License-Identifier: Apache-2.0 */
/* See gemm.h. What the bulk copy engine cannot fetch, as its address is no multiple of 16 or the
 * driver has no maps, is summed by a thread for each result. */
#include "backends/cuda/gemm.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/each.cuh"
#include "backends/cuda/gemm_run.h"
#include "backends/cuda/tensor_map.h"

namespace
{

enum { PLAIN_THREADS = 256 };

template <class T>
__device__ __forceinline__ float sum_window(const cuda_gemm &p, const T *x, const T *w, int64_t row,
                                            int64_t column)
{
    const int64_t line = row / p.out[1], image = line / p.out[0],
                  top = line % p.out[0] * p.stride[0] - p.begin[0],
                  left = row % p.out[1] * p.stride[1] - p.begin[1], taps = (int64_t)p.kernel[0] * p.kernel[1];
    float sum = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t y_at = top + t / p.kernel[1] * p.dilation[0],
                      x_at = left + t % p.kernel[1] * p.dilation[1];
        if (y_at < 0 || x_at < 0 || y_at >= p.in[0] || x_at >= p.in[1])
            continue;
        const T *pixel = x + ((image * p.in[0] + y_at) * p.in[1] + x_at) * p.channels,
                *filter = w + (column * taps + t) * p.channels;
        for (int64_t c = 0; c < p.channels; c++)
            sum += cuda_widen(pixel[c]) * cuda_widen(filter[c]);
    }
    return sum;
}

__device__ __forceinline__ int64_t result_at(const cuda_gemm &p, int64_t row, int64_t column)
{
    if (!p.weave.is_on)
        return row * p.columns + column;
    const int tap = (int)column / p.weave.channels;
    return cuda_gemm_woven_row(&p.weave, (int)row, (int)row / p.weave.line) +
           cuda_gemm_woven_column(&p.weave, (int)column, tap, tap / p.weave.block[1]);
}

template <class T>
__global__ void gemm_plain(const __grid_constant__ cuda_gemm p, const __grid_constant__ cuda_gemm_args a)
{
    CUDA_EACH(i, p.rows * p.columns)
    {
        const T *x = (const T *)a.x, *w = (const T *)a.w;
        const int64_t row = i / p.columns, column = i % p.columns;
        float sum = 0;
        if (p.is_windows)
            sum = sum_window(p, x, w, row, column);
        else
            for (int64_t c = 0; c < p.channels; c++)
                sum += cuda_widen(x[row * p.channels + c]) *
                       cuda_widen(p.across ? w[c * p.columns + column] : w[column * p.channels + c]);
        if (a.bias)
            sum += cuda_widen(((const T *)a.bias)[column]);
        if (a.residual)
            sum += cuda_widen(((const T *)a.residual)[i]);
        ((T *)a.y)[result_at(p, row, column)] = cuda_narrow<T, float>(cuda_activate<float>(p.act, sum));
    }
}

template <class T>
grt_status gemm_run_plain(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    gemm_plain<T><<<cuda_blocks(p->rows * p->columns, PLAIN_THREADS), PLAIN_THREADS, 0, stream>>>(*p, *args);
    CUDA_LAUNCHED();
    return GRT_OK;
}

} // namespace

void cuda_gemm_bind(cuda_gemm *p)
{
    p->encode_tiled = (void *)cuda_tensor_map_find();
    p->encode_im2col = (void *)cuda_image_map_find();
}

grt_status cuda_gemm_run(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    const bool is_plain = ((uintptr_t)args->x | (uintptr_t)args->w | (uintptr_t)args->bias |
                           (uintptr_t)args->residual | (uintptr_t)args->y) %
                              16 ||
                          !p->encode_tiled || !p->encode_im2col;
    switch (p->dtype) {
    case GRT_DTYPE_FLOAT16:
        return (is_plain ? gemm_run_plain<__half> : cuda_gemm_run_float16)(p, args, stream);
    case GRT_DTYPE_BFLOAT16:
        return (is_plain ? gemm_run_plain<__nv_bfloat16> : cuda_gemm_run_bfloat16)(p, args, stream);
    default:
        return (is_plain    ? gemm_run_plain<float>
                : p->strict ? cuda_gemm_run_strict
                            : cuda_gemm_run_tf32)(p, args, stream);
    }
}
