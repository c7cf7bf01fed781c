/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/float8_product.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/quantiser.cuh"
#include "backends/cuda/walk.h"

#include "src/base/element.h"

namespace
{

enum { FOUR = 4 };

template <class T> using four = cuda_pack<T, FOUR>;

template <class T>
__device__ __forceinline__ void store_reals(const cuda_float8_finish &f, int64_t at, float (&x)[FOUR])
{
    four<T> result;
    if (f.residual) {
        const four<T> residual = *(const four<T> *)((const T *)f.residual + at);
#pragma unroll
        for (int k = 0; k < FOUR; k++)
            x[k] += cuda_widen(residual.v[k]);
    }
    cuda_activate_all<T>(f.act, x);
#pragma unroll
    for (int k = 0; k < FOUR; k++)
        result.v[k] = cuda_narrow<T, float>(x[k]);
    *(four<T> *)((T *)f.y + at) = result;
}

__device__ __forceinline__ void store_float8(const cuda_float8_finish &f, int64_t at, float (&x)[FOUR])
{
    const cuda_quotient quotient(*f.y_scale);
    const bool is_e5m2 = f.dtype == GRT_DTYPE_FLOAT8E5M2;
    cuda_activate_all<__half>(f.act, x); /* float8 shows less than the error that float16 would not */
    *(uint32_t *)((uint8_t *)f.y + at) = cuda_float8_pair(quotient(x[0]), quotient(x[1]), is_e5m2) |
                                         cuda_float8_pair(quotient(x[2]), quotient(x[3]), is_e5m2) << 16;
}

__global__ void __launch_bounds__(CUDA_BLOCK)
    float8_finish(const __grid_constant__ cuda_float8_finish f, cuda_divisor columns)
{
    const float x_scale = *f.x_scale;
    CUDA_ITEMS (i, f.rows * f.columns / FOUR) {
        const int64_t at = i * FOUR;
        const int64_t column =
            at < UINT32_MAX / 2
                ? (int64_t)((uint32_t)at - cuda_divide((uint32_t)at, columns) * columns.divisor)
                : at % f.columns;
        const float4 sum = *(const float4 *)(f.sums + at);
        float x[FOUR] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int k = 0; k < FOUR; k++) {
            x[k] *= x_scale * f.w_scale[f.w_scale_each ? column + k : 0];
            if (f.bias)
                x[k] += f.bias[column + k];
        }
        if (f.y_scale)
            store_float8(f, at, x);
        else if (f.dtype == GRT_DTYPE_FLOAT16)
            store_reals<__half>(f, at, x);
        else if (f.dtype == GRT_DTYPE_BFLOAT16)
            store_reals<__nv_bfloat16>(f, at, x);
        else
            store_reals<float>(f, at, x);
    }
}

__global__ void __launch_bounds__(CUDA_BLOCK)
    float8_widen(const uint32_t *from, bool is_e5m2, float4 *to, int64_t words)
{
    const grt_float8_format format = is_e5m2 ? GRT_FLOAT8_E5M2 : GRT_FLOAT8_E4M3FN;
    CUDA_ITEMS (i, words) {
        const uint32_t word = from[i];
        to[i] = make_float4(
            grt_float8_to_float(word & 0xFF, format), grt_float8_to_float(word >> 8 & 0xFF, format),
            grt_float8_to_float(word >> 16 & 0xFF, format), grt_float8_to_float(word >> 24, format));
    }
}

} // namespace

grt_status cuda_float8_finish_enqueue(const cuda_float8_finish *f, cudaStream_t stream)
{
    const int64_t fours = f->rows * f->columns / FOUR;
    float8_finish<<<cuda_grid(fours), CUDA_BLOCK, 0, stream>>>(*f, cuda_divisor_of(f->columns));
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_float8_widen_enqueue(const void *from, grt_dtype dtype, float *to, int64_t n,
                                     cudaStream_t stream)
{
    float8_widen<<<cuda_grid(n / FOUR), CUDA_BLOCK, 0, stream>>>(
        (const uint32_t *)from, dtype == GRT_DTYPE_FLOAT8E5M2, (float4 *)to, n / FOUR);
    CUDA_LAUNCHED();
    return GRT_OK;
}
