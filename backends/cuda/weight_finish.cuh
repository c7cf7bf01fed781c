/* SPDX-License-Identifier: Apache-2.0 */
/* How results of products by packed weights leave (weight_product.h). */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_FINISH_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_FINISH_CUH

#include "backends/cuda/activate.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/weight_product.h"

/* Of a gated product: before the gate. */
static __device__ __forceinline__ float weight_with_bias(const cuda_weight_product &p, float sum, int column)
{
    return p.bias ? sum + cuda_load<float>(p.bias, p.bias_dtype, column) : sum;
}

static __device__ __forceinline__ float weight_gate(float gate, float x)
{
    return gate / (1.0f + __expf(-gate)) * x;
}

template <class T>
static __device__ __forceinline__ void weight_finish(const cuda_weight_product &p, float sum, int row,
                                                     int column)
{
    sum = weight_with_bias(p, sum, column);
    if (p.residual)
        sum += cuda_widen(((const T *)p.residual)[(size_t)row * p.n + column]);
    if (p.act.kind != GRT_ACT_NONE)
        sum = cuda_activate_rare(p.act, sum);
    ((T *)p.y)[(size_t)row * p.n + column] = cuda_narrow<T, float>(sum);
}

/* The scale of a column that has one. */
template <class T>
static __device__ __forceinline__ float weight_column_scale(const cuda_weight_product &p, int column)
{
    const size_t at = (size_t)(column / 16 * 16 + column % 8 * 2 + column % 16 / 8);
    return p.wide_scales ? ((const float *)p.scales)[at] : cuda_widen(((const T *)p.scales)[at]);
}

namespace
{

template <class T>
__global__ void weight_add_kernel(const __grid_constant__ cuda_weight_product p, int splits)
{
    overlap_let_next_begin();
    overlap_wait();
    const size_t all = (size_t)p.m * p.n;
    const int column = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    for (int row = (int)blockIdx.y; column < p.n && row < p.m; row += (int)gridDim.y) {
        float sum = 0.0f;
        for (int k = 0; k < splits; k++)
            sum += p.partial[(size_t)k * all + (size_t)row * p.n + column];
        weight_finish<T>(p, sum, row, column);
    }
}

/* Adds the sums of all parts of k. */
template <class T>
grt_status weight_add(const cuda_weight_product *p, int splits, bool overlaps, cudaStream_t stream)
{
    enum { THREADS_OF_SUMS = 256 };
    const dim3 sums((unsigned)((p->n - 1) / THREADS_OF_SUMS + 1), (unsigned)(p->m < 1024 ? p->m : 1024));
    CUDA_TRY(overlap_launch(overlaps, weight_add_kernel<T>, sums, THREADS_OF_SUMS, 0, stream, *p, splits));
    return GRT_OK;
}

} // namespace

#endif
