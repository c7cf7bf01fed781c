/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/weight_steps.h"

#include "backends/cuda/weight_finish.cuh"

enum { THREADS = 256 };

/* Eight numbers at once, or one. */
template <class T, int N> struct alignas(N * sizeof(T)) step_numbers {
    T v[N];
};

/* A block has a row. Rounded as RMSNormalization says. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    weight_normalise_kernel(const T *x, const T *scale, float epsilon, int k, T *to)
{
    using V = step_numbers<T, N>;
    __shared__ float parts[THREADS / 32];
    float squares = 0.0f;
    overlap_let_next_begin();
    overlap_wait();
    const V *const from = (const V *)(x + (size_t)blockIdx.x * k), *const scales = (const V *)scale;
    V *const out = (V *)(to + (size_t)blockIdx.x * k);
    for (int i = (int)threadIdx.x; i < k / N; i += THREADS) {
        const V v = from[i];
#pragma unroll
        for (int j = 0; j < N; j++)
            squares = fmaf(cuda_widen(v.v[j]), cuda_widen(v.v[j]), squares);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = 0.0f;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++)
        squares += parts[i];
    const float factor = 1 / sqrtf(squares / (float)k + epsilon);
    for (int i = (int)threadIdx.x; i < k / N; i += THREADS) {
        V v = from[i];
        const V s = scales[i];
#pragma unroll
        for (int j = 0; j < N; j++)
            v.v[j] = cuda_narrow<T, float>(cuda_widen(cuda_narrow<T, float>(cuda_widen(v.v[j]) * factor)) *
                                           cuda_widen(s.v[j]));
        out[i] = v;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) weight_gate_kernel(const T *from, int m, int columns, T *y)
{
    overlap_let_next_begin();
    overlap_wait();
    const int column = (int)(blockIdx.x * THREADS + threadIdx.x);
    for (int row = (int)blockIdx.y; column < columns && row < m; row += (int)gridDim.y) {
        const T *const at = from + (size_t)row * columns * 2 + column;
        y[(size_t)row * columns + column] =
            cuda_narrow<T, float>(weight_gate(cuda_widen(at[0]), cuda_widen(at[columns])));
    }
}

template <class T, int N>
static grt_status normalise(const cuda_weight_product *p, bool overlaps, void *to, cudaStream_t stream)
{
    CUDA_TRY(overlap_launch(overlaps, weight_normalise_kernel<T, N>, dim3((unsigned)p->m), THREADS, 0, stream,
                            (const T *)p->x, (const T *)p->norm, p->epsilon, p->k, (T *)to));
    return GRT_OK;
}

template <class T>
static grt_status normalise_any(const cuda_weight_product *p, bool overlaps, void *to, cudaStream_t stream)
{
    const bool whole = p->k % 8 == 0 && cuda_is_vector(p->x) && cuda_is_vector(p->norm) && cuda_is_vector(to);
    return whole ? normalise<T, 8>(p, overlaps, to, stream) : normalise<T, 1>(p, overlaps, to, stream);
}

grt_status cuda_weight_normalise(const cuda_weight_product *p, grt_dtype dtype, bool overlaps, void *to,
                                 cudaStream_t stream)
{
    return dtype == GRT_DTYPE_FLOAT16 ? normalise_any<__half>(p, overlaps, to, stream)
                                      : normalise_any<__nv_bfloat16>(p, overlaps, to, stream);
}

template <class T>
static grt_status gate(const cuda_weight_product *p, bool overlaps, const void *from, cudaStream_t stream)
{
    enum { MOST_ROWS = 1024 };
    const int columns = p->n / 2;
    const dim3 blocks((unsigned)((columns - 1) / THREADS + 1),
                      (unsigned)(p->m < MOST_ROWS ? p->m : MOST_ROWS));
    CUDA_TRY(overlap_launch(overlaps, weight_gate_kernel<T>, blocks, THREADS, 0, stream, (const T *)from,
                            p->m, columns, (T *)p->y));
    return GRT_OK;
}

grt_status cuda_weight_gate(const cuda_weight_product *p, grt_dtype dtype, bool overlaps, const void *from,
                            cudaStream_t stream)
{
    return dtype == GRT_DTYPE_FLOAT16 ? gate<__half>(p, overlaps, from, stream)
                                      : gate<__nv_bfloat16>(p, overlaps, from, stream);
}
