/* SPDX-License-Identifier: Apache-2.0 */
/* See columns.h. A thread has one vector of 16 bytes of a row's columns, and every so many rows; so a block
 * reads whole stretches of memory. */
#include "backends/cuda/columns.h"

#include "backends/cuda/number.cuh"

#include <math_constants.h>

namespace
{

enum {
    THREADS = 256,
    AT_ONCE = 8,
    NARROWEST = 4,   /* vectors: stretches of 64 bytes */
    ROWS_ALONE = 32, /* of a thread that are not worth a second kernel */
    ROWS_EACH = 8    /* at least, with one */
};

/* Rows at a time. */
__host__ __device__ inline int lanes_of(const cuda_columns &c)
{
    return THREADS / c.width;
}

template <cuda_columns_fold FOLD> __device__ __forceinline__ float columns_start()
{
    return FOLD == CUDA_COLUMNS_MAX ? -CUDART_INF_F : FOLD == CUDA_COLUMNS_MIN ? CUDART_INF_F : 0.0f;
}
/* NaN wins. */
template <cuda_columns_fold FOLD> __device__ __forceinline__ float columns_join(float a, float b)
{
    if constexpr (FOLD == CUDA_COLUMNS_MAX)
        return cuda_top::join<float>(b, a);
    else if constexpr (FOLD == CUDA_COLUMNS_MIN)
        return b < a || b != b ? b : a;
    else
        return a + b;
}
template <cuda_columns_fold FOLD>
__device__ __forceinline__ float columns_taken(const cuda_columns &c, float v)
{
    if constexpr (FOLD == CUDA_COLUMNS_POWER)
        return powf(fabsf(v), c.power);
    else if constexpr (FOLD == CUDA_COLUMNS_SQUARE)
        return v * v;
    else
        return FOLD == CUDA_COLUMNS_ABSOLUTE ? fabsf(v) : v;
}
template <cuda_columns_fold FOLD>
__device__ __forceinline__ float columns_finished(const cuda_columns &c, float v)
{
    if constexpr (FOLD == CUDA_COLUMNS_POWER)
        return powf(v, 1 / c.power);
    else if constexpr (FOLD == CUDA_COLUMNS_MAX || FOLD == CUDA_COLUMNS_MIN)
        return v;
    else
        return c.root ? sqrtf(v / c.divisor) : v / c.divisor;
}

template <class T>
__device__ __forceinline__ void columns_put(const cuda_columns &c, void *y, int64_t at, float v)
{
    if (c.wide)
        ((float *)y)[at] = v;
    else
        ((T *)y)[at] = cuda_narrow<T, float>(v);
}

/* A block per share of the rows, group of vectors and outer index. Shares go to parts, [outer, shares,
 * columns]; without parts there is one. */
template <class T, cuda_columns_fold FOLD>
__global__ void __launch_bounds__(THREADS)
    fold_rows(const __grid_constant__ cuda_columns c, const cuda_vector<T> *x, void *y, float *parts)
{
    enum { N = cuda_vector<T>::N };
    __shared__ float joined[THREADS * N];
    const int64_t vectors = c.columns / N, groups = (vectors + c.width - 1) / c.width;
    const int lanes = lanes_of(c);
    const int64_t share = blockIdx.x % c.shares, group = blockIdx.x / c.shares % groups,
                  outer = blockIdx.x / c.shares / groups;
    const int lane = threadIdx.x / c.width, mine = threadIdx.x % c.width;
    const int64_t vector = group * c.width + mine, per_share = (c.rows + c.shares - 1) / c.shares;
    const int64_t begin = share * per_share, end = begin + per_share < c.rows ? begin + per_share : c.rows;
    float value[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        value[k] = columns_start<FOLD>();
    if (lane < lanes && vector < vectors) {
        const cuda_vector<T> *from = x + outer * c.rows * vectors + vector;
#pragma unroll AT_ONCE
        for (int64_t row = begin + lane; row < end; row += lanes) {
            const cuda_vector<T> pack = from[row * vectors];
#pragma unroll
            for (int k = 0; k < N; k++)
                value[k] = columns_join<FOLD>(value[k], columns_taken<FOLD>(c, cuda_widen(pack.v[k])));
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        joined[threadIdx.x * N + k] = value[k];
    __syncthreads();
    for (int i = threadIdx.x; i < c.width * N; i += THREADS) {
        const int64_t column = group * c.width * N + i;
        if (column >= c.columns)
            break;
        float v = joined[i];
        for (int k = 1; k < lanes; k++)
            v = columns_join<FOLD>(v, joined[k * c.width * N + i]);
        if (parts)
            parts[(outer * c.shares + share) * c.columns + column] = v;
        else
            columns_put<T>(c, y, outer * c.columns + column, columns_finished<FOLD>(c, v));
    }
}

template <class T, cuda_columns_fold FOLD>
__global__ void __launch_bounds__(THREADS)
    fold_parts(const __grid_constant__ cuda_columns c, const float *parts, void *y)
{
    CUDA_EACH(i, c.outer * c.columns)
    {
        const float *from = parts + i / c.columns * c.shares * c.columns + i % c.columns;
        float v = from[0];
        for (int64_t k = 1; k < c.shares; k++)
            v = columns_join<FOLD>(v, from[k * c.columns]);
        columns_put<T>(c, y, i, columns_finished<FOLD>(c, v));
    }
}

template <class T, cuda_columns_fold FOLD>
void launch_fold(const cuda_columns *c, const void *x, void *y, void *workspace, cudaStream_t stream)
{
    const int64_t vectors = c->columns / cuda_vector<T>::N, groups = (vectors + c->width - 1) / c->width;
    float *parts = c->shares > 1 ? (float *)workspace : nullptr;
    fold_rows<T, FOLD><<<(unsigned)(c->outer * groups * c->shares), THREADS, 0, stream>>>(
        *c, (const cuda_vector<T> *)x, y, parts);
    if (parts)
        fold_parts<T, FOLD>
            <<<cuda_blocks(c->outer * c->columns, THREADS), THREADS, 0, stream>>>(*c, parts, y);
}

template <class T>
void cuda_columns_launch(const cuda_columns *c, const void *x, void *y, void *workspace, cudaStream_t stream)
{
    switch (c->fold) {
    case CUDA_COLUMNS_SUM:
        return launch_fold<T, CUDA_COLUMNS_SUM>(c, x, y, workspace, stream);
    case CUDA_COLUMNS_ABSOLUTE:
        return launch_fold<T, CUDA_COLUMNS_ABSOLUTE>(c, x, y, workspace, stream);
    case CUDA_COLUMNS_SQUARE:
        return launch_fold<T, CUDA_COLUMNS_SQUARE>(c, x, y, workspace, stream);
    case CUDA_COLUMNS_MAX:
        return launch_fold<T, CUDA_COLUMNS_MAX>(c, x, y, workspace, stream);
    case CUDA_COLUMNS_MIN:
        return launch_fold<T, CUDA_COLUMNS_MIN>(c, x, y, workspace, stream);
    case CUDA_COLUMNS_POWER:
        return launch_fold<T, CUDA_COLUMNS_POWER>(c, x, y, workspace, stream);
    }
}

} // namespace

bool cuda_columns_plan(cuda_columns *c, grt_dtype dtype, int multiprocessors)
{
    if (dtype != GRT_DTYPE_FLOAT && dtype != GRT_DTYPE_FLOAT16 && dtype != GRT_DTYPE_BFLOAT16)
        return false;
    const int64_t n = 16 / (int64_t)grt_dtype_size(dtype), vectors = c->columns / n;
    if (c->columns <= 0 || c->columns % n || c->rows <= 0 || c->outer <= 0)
        return false;
    if (vectors > INT32_MAX / c->outer)
        return false;
    /* Two blocks for each multiprocessor: by fewer columns, then by shares of the rows, unless threads would
     * have little to fold. */
    const int64_t enough = 2 * (int64_t)multiprocessors;
    c->width = vectors < THREADS ? (int32_t)vectors : THREADS;
    while (c->width >= 2 * NARROWEST && c->outer * ((vectors + c->width - 1) / c->width) < enough)
        c->width = (c->width + 1) / 2;
    const int64_t groups = (vectors + c->width - 1) / c->width, wanted = enough / (c->outer * groups),
                  alone = c->rows / lanes_of(*c), most = alone / ROWS_EACH;
    c->shares = alone <= ROWS_ALONE ? 1 : wanted < most ? wanted : most;
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
        cuda_columns_launch<float>(c, x, y, workspace, stream);
    else if (dtype == GRT_DTYPE_FLOAT16)
        cuda_columns_launch<__half>(c, x, y, workspace, stream);
    else
        cuda_columns_launch<__nv_bfloat16>(c, x, y, workspace, stream);
    return true;
}
