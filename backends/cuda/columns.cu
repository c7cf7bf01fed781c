/* SPDX-License-Identifier: Apache-2.0 */
/* See columns.h. A thread has one vector of 16 bytes of a row's columns, and every so many rows; so a block
 * reads whole stretches of memory. */
#include "backends/cuda/columns.h"

#include "backends/cuda/number.cuh"

#include <math_constants.h>

namespace
{

enum { THREADS = 256, AT_ONCE = 4, ROWS_EACH = 8 };

/* Vectors of a row that a block has, and rows at a time. */
struct block_form {
    int vectors, lanes;
};

__host__ __device__ inline block_form form_of(int64_t vectors)
{
    const int mine = vectors < THREADS ? (int)vectors : THREADS;
    return {mine, THREADS / mine};
}

__device__ __forceinline__ float start(const cuda_columns &c)
{
    return c.fold == CUDA_COLUMNS_MAX ? -CUDART_INF_F : 0.0f;
}
__device__ __forceinline__ float join(const cuda_columns &c, float a, float b)
{
    return c.fold == CUDA_COLUMNS_MAX ? cuda_top::join<float>(b, a) : a + b;
}
__device__ __forceinline__ float taken(const cuda_columns &c, float v)
{
    return c.fold == CUDA_COLUMNS_POWER ? powf(fabsf(v), c.power) : v;
}
__device__ __forceinline__ float finished(const cuda_columns &c, float v)
{
    return c.fold == CUDA_COLUMNS_SUM     ? v / c.divisor
           : c.fold == CUDA_COLUMNS_POWER ? powf(v, 1 / c.power)
                                          : v;
}

/* A block per share of the rows, group of vectors and outer index. Shares go to parts, [outer, shares,
 * columns]; without parts there is one. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    fold_rows(const __grid_constant__ cuda_columns c, const cuda_vector<T> *x, T *y, float *parts)
{
    enum { N = cuda_vector<T>::N };
    __shared__ float joined[THREADS * N];
    const int64_t vectors = c.columns / N, groups = (vectors + THREADS - 1) / THREADS;
    const block_form form = form_of(vectors);
    const int64_t share = blockIdx.x % c.shares, group = blockIdx.x / c.shares % groups,
                  outer = blockIdx.x / c.shares / groups;
    const int lane = threadIdx.x / form.vectors, mine = threadIdx.x % form.vectors;
    const int64_t vector = group * THREADS + mine, per_share = (c.rows + c.shares - 1) / c.shares;
    const int64_t begin = share * per_share, end = begin + per_share < c.rows ? begin + per_share : c.rows;
    float value[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        value[k] = start(c);
    if (lane < form.lanes && vector < vectors) {
        const cuda_vector<T> *from = x + outer * c.rows * vectors + vector;
#pragma unroll AT_ONCE
        for (int64_t row = begin + lane; row < end; row += form.lanes) {
            const cuda_vector<T> pack = from[row * vectors];
#pragma unroll
            for (int k = 0; k < N; k++)
                value[k] = join(c, value[k], taken(c, cuda_widen(pack.v[k])));
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        joined[threadIdx.x * N + k] = value[k];
    __syncthreads();
    for (int i = threadIdx.x; i < form.vectors * N; i += THREADS) {
        const int64_t column = group * THREADS * N + i;
        if (column >= c.columns)
            break;
        float v = joined[i];
        for (int k = 1; k < form.lanes; k++)
            v = join(c, v, joined[k * form.vectors * N + i]);
        if (parts)
            parts[(outer * c.shares + share) * c.columns + column] = v;
        else
            y[outer * c.columns + column] = cuda_narrow<T, float>(finished(c, v));
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    fold_parts(const __grid_constant__ cuda_columns c, const float *parts, T *y)
{
    CUDA_EACH(i, c.outer * c.columns)
    {
        const float *from = parts + i / c.columns * c.shares * c.columns + i % c.columns;
        float v = from[0];
        for (int64_t k = 1; k < c.shares; k++)
            v = join(c, v, from[k * c.columns]);
        y[i] = cuda_narrow<T, float>(finished(c, v));
    }
}

template <class T>
void launch(const cuda_columns *c, const void *x, void *y, void *workspace, cudaStream_t stream)
{
    const int64_t vectors = c->columns / cuda_vector<T>::N, groups = (vectors + THREADS - 1) / THREADS;
    float *parts = c->shares > 1 ? (float *)workspace : nullptr;
    fold_rows<T><<<(unsigned)(c->outer * groups * c->shares), THREADS, 0, stream>>>(
        *c, (const cuda_vector<T> *)x, (T *)y, parts);
    if (parts)
        fold_parts<T><<<cuda_blocks(c->outer * c->columns, THREADS), THREADS, 0, stream>>>(*c, parts, (T *)y);
}

} // namespace

bool cuda_columns_plan(cuda_columns *c, grt_dtype dtype, int multiprocessors)
{
    if (dtype != GRT_DTYPE_FLOAT && dtype != GRT_DTYPE_FLOAT16 && dtype != GRT_DTYPE_BFLOAT16)
        return false;
    const int64_t n = 16 / (int64_t)grt_dtype_size(dtype), vectors = c->columns / n;
    if (c->columns <= 0 || c->columns % n || c->rows <= 0 || c->outer <= 0)
        return false;
    const int64_t groups = (vectors + THREADS - 1) / THREADS;
    if (groups > INT32_MAX / c->outer)
        return false;
    /* Two blocks for each multiprocessor, unless threads would have little to fold. */
    const int64_t wanted = 2 * (int64_t)multiprocessors / (c->outer * groups),
                  most = c->rows / (form_of(vectors).lanes * (int64_t)ROWS_EACH);
    c->shares = wanted < most ? wanted : most;
    c->shares = c->shares > 1 ? c->shares : 1;
    return true;
}

size_t cuda_columns_workspace(const cuda_columns *c)
{
    return c->shares > 1 ? (size_t)(c->outer * c->shares * c->columns) * sizeof(float) : 0;
}

bool cuda_columns_run(const cuda_columns *c, grt_dtype dtype, const void *x, void *y, void *workspace,
                      cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(y))
        return false;
    if (dtype == GRT_DTYPE_FLOAT)
        launch<float>(c, x, y, workspace, stream);
    else if (dtype == GRT_DTYPE_FLOAT16)
        launch<__half>(c, x, y, workspace, stream);
    else
        launch<__nv_bfloat16>(c, x, y, workspace, stream);
    return true;
}
