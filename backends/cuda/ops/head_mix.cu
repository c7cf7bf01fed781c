/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::HeadMix. A thread has neighbouring numbers of all heads, which are read once and written once.
 * With a softmax a block has a row of all heads, which waits in shared memory between its phases, or in
 * global memory if it is longer than that. */
#include "backends/cuda/number.cuh"
#include "backends/cuda/shared_limit.h"

extern "C" {
#include "backends/shared/head_mix.h"
}

#include <stdlib.h>

namespace
{

enum { MIX_THREADS = 128, MOST_BLOCKS = 1 << 16, MOST_HEADS = 32, GLOBAL_BLOCKS = 512 };

struct head_mix {
    int heads, middle, out;
    int keys;         /* of a row */
    int64_t plane, n; /* numbers of a head; rows, or threads with work, in all */
    bool is_global;   /* rows wait in global memory */
};

struct head_mix_shape {
    grt_head_mix mix;
    size_t row_bytes; /* what waits of a row */
    bool is_global;
};

template <class T, int V> struct alignas(V * sizeof(T)) mix_vector {
    T v[V];
};

/* What the kernels read of a mixture; matrices and bias may be NULL. */
template <class T> struct mix_inputs {
    const T *x, *before, *after, *bias;
    T *y;
};

/* Reads V numbers of each of up to H heads. */
template <class T, int H, int V, class W>
__device__ __forceinline__ void mix_load(const T *from, int64_t step, int heads, W (&x)[H][V])
{
    mix_vector<T, V> read[H];
#pragma unroll
    for (int j = 0; j < H; j++)
        if (j < heads)
            read[j] = *(const mix_vector<T, V> *)(from + j * step);
#pragma unroll
    for (int j = 0; j < H; j++)
#pragma unroll
        for (int k = 0; k < V; k++)
            x[j][k] = j < heads ? (W)cuda_widen(read[j].v[k]) : W(0);
}

/* Head i of what a matrix makes of x. */
template <class T, int H, int V, class W>
__device__ __forceinline__ void mix_head(const W *matrix, int from, int i, const W (&x)[H][V], W (&sum)[V])
{
#pragma unroll
    for (int j = 0; j < H; j++) {
        if (j >= from)
            continue;
        const W w = matrix[i * from + j];
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] += w * x[j][k];
    }
}

template <class T, int V, class W> __device__ __forceinline__ void mix_store(T *to, const W (&sum)[V])
{
    mix_vector<T, V> result;
#pragma unroll
    for (int k = 0; k < V; k++)
        result.v[k] = cuda_narrow<T, W>(sum[k]);
    *(mix_vector<T, V> *)to = result;
}

/* Widened for all threads of a block. */
template <class T, class W> __device__ void mix_fetch(const T *from, int n, W *to)
{
    for (int i = threadIdx.x; from && i < n; i += blockDim.x)
        to[i] = cuda_widen(from[i]);
}

/* Without a softmax. */
template <class T, int H, int V>
__global__ void __launch_bounds__(MIX_THREADS)
    mix_planes(const __grid_constant__ head_mix m, const __grid_constant__ mix_inputs<T> in)
{
    using W = typename cuda_wide<T>::type;
    __shared__ W matrix[H * H], bias[H];
    mix_fetch(in.before, m.heads * m.out, matrix);
    mix_fetch(in.bias, m.out, bias);
    __syncthreads();
    const int64_t vectors = m.plane / V;
    CUDA_EACH(t, m.n)
    {
        const int64_t image = t / vectors, at = t % vectors * V;
        W x[H][V];
        mix_load<T, H, V, W>(in.x + image * m.heads * m.plane + at, m.plane, m.heads, x);
        for (int i = 0; i < m.out; i++) {
            W sum[V];
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] = in.bias ? bias[i] : W(0);
            mix_head<T, H, V, W>(matrix, m.heads, i, x, sum);
            mix_store<T, V, W>(in.y + (image * m.out + i) * m.plane + at, sum);
        }
    }
}

__device__ __forceinline__ float mix_exponential(float x)
{
    return expf(x);
}
__device__ __forceinline__ double mix_exponential(double x)
{
    return exp(x);
}

/* Scores of a row, in front of the softmax. */
template <class T, int H, int V, class W>
__device__ void mix_scores(const head_mix &m, const T *x, const W *before, W *row)
{
    for (int at = threadIdx.x * V; at < m.keys; at += blockDim.x * V) {
        W v[H][V];
        mix_load<T, H, V, W>(x + at, m.plane, m.heads, v);
        if (!before) {
#pragma unroll
            for (int j = 0; j < H; j++)
#pragma unroll
                for (int k = 0; k < V; k++)
                    if (j < m.heads)
                        row[(int64_t)j * m.keys + at + k] = v[j][k];
            continue;
        }
        for (int i = 0; i < m.middle; i++) {
            W sum[V] = {};
            mix_head<T, H, V, W>(before, m.heads, i, v, sum);
#pragma unroll
            for (int k = 0; k < V; k++)
                row[(int64_t)i * m.keys + at + k] = sum[k];
        }
    }
}

/* Exponentials of scores, a warp a head, and what their sum divides by. */
template <class W> __device__ void mix_softmax(const head_mix &m, W *row, W *factor)
{
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < m.middle; i += blockDim.x / 32) {
        W *of = row + (int64_t)i * m.keys, top = -INFINITY, sum = 0;
        for (int p = lane; p < m.keys; p += 32)
            top = cuda_top::join<W>(of[p], top);
        top = cuda_warp_reduce<cuda_top, W>(top);
        for (int p = lane; p < m.keys; p += 32) {
            const W power = mix_exponential(of[p] - top);
            of[p] = power;
            sum += power;
        }
        sum = cuda_warp_reduce<cuda_sum, W>(sum);
        if (lane == 0)
            factor[i] = 1 / sum;
    }
}

/* What the weights of a row become. */
template <class T, int H, int V, class W>
__device__ void mix_weights(const head_mix &m, const W *row, const W *factor, const W *after, const W *bias,
                            T *y)
{
    for (int at = threadIdx.x * V; at < m.keys; at += blockDim.x * V) {
        W v[H][V];
#pragma unroll
        for (int j = 0; j < H; j++)
#pragma unroll
            for (int k = 0; k < V; k++)
                v[j][k] = j < m.middle ? row[(int64_t)j * m.keys + at + k] * factor[j] : W(0);
        if (!after) {
#pragma unroll
            for (int j = 0; j < H; j++) {
                if (j >= m.middle)
                    continue;
                W sum[V];
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum[k] = v[j][k] + (bias ? bias[j] : W(0));
                mix_store<T, V, W>(y + j * m.plane + at, sum);
            }
            continue;
        }
        for (int i = 0; i < m.out; i++) {
            W sum[V];
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] = bias ? bias[i] : W(0);
            mix_head<T, H, V, W>(after, m.middle, i, v, sum);
            mix_store<T, V, W>(y + i * m.plane + at, sum);
        }
    }
}

template <class T, int H, int V>
__global__ void __launch_bounds__(MIX_THREADS)
    mix_rows(const __grid_constant__ head_mix m, const __grid_constant__ mix_inputs<T> in,
             typename cuda_wide<T>::type *waiting)
{
    using W = typename cuda_wide<T>::type;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ W before[H * H], after[H * H], bias[H], factor[H];
    W *row = m.is_global ? waiting + (int64_t)blockIdx.x * m.middle * m.keys : (W *)shared;
    const int64_t rows = m.plane / m.keys;
    mix_fetch(in.before, m.heads * m.middle, before);
    mix_fetch(in.after, m.middle * m.out, after);
    mix_fetch(in.bias, m.out, bias);
    for (int64_t r = blockIdx.x; r < m.n; r += gridDim.x) {
        const int64_t image = r / rows, at = r % rows * m.keys;
        __syncthreads(); /* the row before may still be read */
        mix_scores<T, H, V, W>(m, in.x + image * m.heads * m.plane + at, in.before ? before : nullptr, row);
        __syncthreads();
        mix_softmax<W>(m, row, factor);
        __syncthreads();
        mix_weights<T, H, V, W>(m, row, factor, in.after ? after : nullptr, in.bias ? bias : nullptr,
                                in.y + image * m.out * m.plane + at);
    }
}

template <class T, int H, int V> grt_status mix_launch(const head_mix_shape *s, const grt_run *r)
{
    using W = typename cuda_wide<T>::type;
    const grt_head_mix *from = &s->mix;
    const cudaStream_t stream = (cudaStream_t)r->stream;
    head_mix m = {(int)from->heads, (int)from->middle, (int)from->out, (int)from->keys};
    const mix_inputs<T> in = {(const T *)r->in[0]->data, (const T *)grt_run_data(r, GRT_HEAD_MIX_BEFORE),
                              (const T *)grt_run_data(r, GRT_HEAD_MIX_AFTER),
                              (const T *)grt_run_data(r, GRT_HEAD_MIX_BIAS), (T *)r->out[0]->data};
    m.plane = from->rows * from->keys;
    if (!from->softmax) {
        m.n = from->batch * m.plane / V;
        mix_planes<T, H, V><<<cuda_blocks(m.n, MIX_THREADS), MIX_THREADS, 0, stream>>>(m, in);
    } else {
        const int64_t vectors = (from->keys + V - 1) / V, most = s->is_global ? GLOBAL_BLOCKS : MOST_BLOCKS;
        const int threads = vectors <= 32 ? 32 : vectors <= 64 ? 64 : MIX_THREADS;
        const size_t bytes = s->is_global ? 0 : s->row_bytes;
        m.n = from->batch * from->rows;
        m.is_global = s->is_global;
        if (bytes > 32 << 10)
            CUDA_TRY(cuda_allow_shared((const void *)mix_rows<T, H, V>));
        mix_rows<T, H, V>
            <<<(unsigned)(m.n < most ? m.n : most), threads, bytes, stream>>>(m, in, (W *)r->workspace);
    }
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <class T, int H> grt_status mix_by_vectors(const head_mix_shape *s, const grt_run *r)
{
    enum { V = 2 };
    const uintptr_t places = (uintptr_t)r->in[0]->data | (uintptr_t)r->out[0]->data;
    return s->mix.keys % V || places % (V * sizeof(T)) ? mix_launch<T, H, 1>(s, r)
                                                       : mix_launch<T, H, V>(s, r);
}

template <class T> grt_status mix_by_heads(const head_mix_shape *s, const grt_run *r)
{
    const grt_head_mix *m = &s->mix;
    int64_t most = m->heads > m->middle ? m->heads : m->middle;
    most = most > m->out ? most : m->out;
    return most <= 4    ? mix_by_vectors<T, 4>(s, r)
           : most <= 8  ? mix_by_vectors<T, 8>(s, r)
           : most <= 16 ? mix_by_vectors<T, 16>(s, r)
                        : mix_by_vectors<T, MOST_HEADS>(s, r);
}

grt_status mix_refuse(const grt_reshape *r, const grt_head_mix *m)
{
    return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                       "%lld heads become %lld and %lld of rows of %lld; the CUDA backend mixes up to %d of "
                       "fewer than 2^26",
                       (long long)m->heads, (long long)m->middle, (long long)m->out, (long long)m->keys,
                       MOST_HEADS);
}

grt_status cuda_head_mix_reshape(grt_reshape *r)
{
    enum { MOST_SHARED = 160 << 10, MOST_KEYS = 1 << 26 };
    head_mix_shape *s = (head_mix_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_status status = grt_head_mix_fit(r, &s->mix);
    const grt_head_mix *m = &s->mix;
    if (status == GRT_OK && (m->heads > MOST_HEADS || m->middle > MOST_HEADS || m->out > MOST_HEADS ||
                             (m->softmax && m->keys >= MOST_KEYS)))
        status = mix_refuse(r, m);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    if (m->softmax) {
        s->row_bytes = (size_t)(m->middle * m->keys) *
                       (r->in[0]->dtype == GRT_DTYPE_DOUBLE ? sizeof(double) : sizeof(float));
        s->is_global = s->row_bytes > MOST_SHARED;
        r->workspace_bytes = s->is_global ? GLOBAL_BLOCKS * s->row_bytes : 0;
    }
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_head_mix_run(const grt_run *r)
{
    const head_mix_shape *s = (const head_mix_shape *)r->shape;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, return mix_by_heads<T>(s, r));
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "HeadMix",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .reshape = cuda_head_mix_reshape,
     .release_shape = free,
     .run = cuda_head_mix_run},
};

} // namespace
CUDA_KERNELS(head_mix, rows);
