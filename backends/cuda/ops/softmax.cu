/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax along one axis. Long rows that are few are cut into parts: the greatest number and
 * the sum of each part first. */
#include "backends/cuda/number.cuh"
#include "backends/shared/softmax.h"

#include <math_constants.h>
#include <stdlib.h>

__device__ __forceinline__ float exponential(float x)
{
    return expf(x);
}
__device__ __forceinline__ double exponential(double x)
{
    return exp(x);
}
__device__ __forceinline__ float logarithm(float x)
{
    return logf(x);
}
__device__ __forceinline__ double logarithm(double x)
{
    return log(x);
}

/* Contiguous rows, THREADS threads for each; 256 threads per block. */
template <class T, int THREADS>
__global__ void __launch_bounds__(256) softmax_rows(const T *x, T *y, int64_t rows, int64_t size, bool log_)
{
    using W = typename cuda_wide<T>::type;
    const int lane = threadIdx.x % THREADS;
    const int64_t per_block = 256 / THREADS;
    for (int64_t row = (int64_t)blockIdx.x * per_block + threadIdx.x / THREADS; row < rows;
         row += gridDim.x * per_block) {
        const T *from = x + row * size;
        T *to = y + row * size;
        W top = -CUDART_INF_F, sum = 0;
        for (int64_t i = lane; i < size; i += THREADS)
            top = cuda_top::join<W>(cuda_widen(from[i]), top);
        top = cuda_row_reduce<THREADS, cuda_top, W>(top, -CUDART_INF_F);
        for (int64_t i = lane; i < size; i += THREADS)
            sum += exponential(cuda_widen(from[i]) - top);
        sum = cuda_row_reduce<THREADS, cuda_sum, W>(sum, 0);
        const W factor = log_ ? logarithm(sum) : 1 / sum;
        for (int64_t i = lane; i < size; i += THREADS) {
            const W d = cuda_widen(from[i]) - top;
            to[i] = cuda_narrow<T, W>(log_ ? d - factor : exponential(d) * factor);
        }
    }
}

enum { SHORT_LANES = 8, SHORT = 64 };

/* Rows of up to SHORT numbers: SHORT_LANES threads for each, which keep them. */
template <class T>
__global__ void __launch_bounds__(256) softmax_short(const T *x, T *y, int64_t rows, int size, bool log_)
{
    using W = typename cuda_wide<T>::type;
    enum { EACH = SHORT / SHORT_LANES, PER_BLOCK = 256 / SHORT_LANES };
    const int lane = threadIdx.x % SHORT_LANES;
    /* All threads of a warp go round as often. */
    for (int64_t first = (int64_t)blockIdx.x * PER_BLOCK; first < rows;
         first += (int64_t)gridDim.x * PER_BLOCK) {
        const int64_t row = first + threadIdx.x / SHORT_LANES;
        const int mine = row < rows ? size : 0;
        W v[EACH], top = -CUDART_INF_F, sum = 0;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int at = k * SHORT_LANES + lane;
            v[k] = at < mine ? cuda_widen(x[row * size + at]) : (W)-CUDART_INF_F;
            top = cuda_top::join<W>(v[k], top);
        }
        for (int step = SHORT_LANES / 2; step; step /= 2)
            top = cuda_top::join<W>(top, __shfl_xor_sync(0xffffffffu, top, step));
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const W power = exponential(v[k] - top);
            v[k] = log_ ? v[k] - top : power;
            sum += k * SHORT_LANES + lane < mine ? power : W(0);
        }
        for (int step = SHORT_LANES / 2; step; step /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        const W factor = log_ ? logarithm(sum) : 1 / sum;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int at = k * SHORT_LANES + lane;
            if (at < mine)
                y[row * size + at] = cuda_narrow<T, W>(log_ ? v[k] - factor : v[k] * factor);
        }
    }
}

struct softmax_cut {
    int64_t parts, per_part; /* one part: rows are not cut */
};

struct softmax_shape {
    grt_softmax s; /* first: grt_softmax_reshape made it */
    softmax_cut cut;
};

template <class W> struct softmax_part {
    W top, sum; /* the greatest number, and the sum of exponentials below it */
};

/* A block a part of a row. */
template <class T>
__global__ void __launch_bounds__(256)
    softmax_parts(const T *x, int64_t size, softmax_cut cut, softmax_part<typename cuda_wide<T>::type> *parts)
{
    using W = typename cuda_wide<T>::type;
    const int64_t row = blockIdx.x / cut.parts, begin = blockIdx.x % cut.parts * cut.per_part,
                  end = begin + cut.per_part < size ? begin + cut.per_part : size;
    const T *from = x + row * size;
    W top = -CUDART_INF_F, sum = 0;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += 256)
        top = cuda_top::join<W>(cuda_widen(from[i]), top);
    top = cuda_row_reduce<256, cuda_top, W>(top, -CUDART_INF_F);
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += 256)
        sum += exponential(cuda_widen(from[i]) - top);
    sum = cuda_row_reduce<256, cuda_sum, W>(sum, 0);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = {top, sum};
}

/* Then each block has all parts of its row, in the same order. */
template <class T>
__global__ void __launch_bounds__(256)
    softmax_of_parts(const T *x, T *y, int64_t size, softmax_cut cut, bool log_,
                     const softmax_part<typename cuda_wide<T>::type> *parts)
{
    using W = typename cuda_wide<T>::type;
    const int64_t row = blockIdx.x / cut.parts, begin = blockIdx.x % cut.parts * cut.per_part,
                  end = begin + cut.per_part < size ? begin + cut.per_part : size;
    const softmax_part<W> *of_row = parts + row * cut.parts;
    W top = -CUDART_INF_F, sum = 0;
    for (int64_t p = threadIdx.x; p < cut.parts; p += 256)
        top = cuda_top::join<W>(of_row[p].top, top);
    top = cuda_row_reduce<256, cuda_top, W>(top, -CUDART_INF_F);
    for (int64_t p = threadIdx.x; p < cut.parts; p += 256) {
        const softmax_part<W> part = of_row[p];
        /* A part of nothing but -inf counts nothing, unless the row has nothing else. */
        if (part.top != -CUDART_INF_F || top == -CUDART_INF_F)
            sum += part.sum * exponential(part.top - top);
    }
    sum = cuda_row_reduce<256, cuda_sum, W>(sum, 0);
    const W factor = log_ ? logarithm(sum) : 1 / sum;
    const T *from = x + row * size;
    T *to = y + row * size;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
        const W d = cuda_widen(from[i]) - top;
        to[i] = cuda_narrow<T, W>(log_ ? d - factor : exponential(d) * factor);
    }
}

/* The axis runs down with distance `inner`: one thread per column, neighbours side by side. */
template <class T>
__global__ void softmax_columns(const T *x, T *y, int64_t columns, int64_t size, int64_t inner, bool log_)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, columns)
    {
        const int64_t at = i / inner * size * inner + i % inner;
        W top = -CUDART_INF_F, sum = 0;
        for (int64_t k = 0; k < size; k++)
            top = cuda_top::join<W>(cuda_widen(x[at + k * inner]), top);
        for (int64_t k = 0; k < size; k++)
            sum += exponential(cuda_widen(x[at + k * inner]) - top);
        const W factor = log_ ? logarithm(sum) : 1 / sum;
        for (int64_t k = 0; k < size; k++) {
            const W d = cuda_widen(x[at + k * inner]) - top;
            y[at + k * inner] = cuda_narrow<T, W>(log_ ? d - factor : exponential(d) * factor);
        }
    }
}

enum { TALL_THREADS = 1024, TALL_WIDTH = 32 };

/* Joins what the lanes of a column have; all of them get the result. */
template <class Op, class W>
__device__ W join_lanes(W mine, W *shared, int lane, int lanes, int width, int at)
{
    __syncthreads(); /* the previous use may still be read */
    shared[lane * width + at] = mine;
    for (int n = lanes; n > 1; n = (n + 1) / 2) {
        const int other = lane + (n + 1) / 2;
        __syncthreads();
        if (other < n)
            shared[lane * width + at] =
                Op::template join<W>(shared[other * width + at], shared[lane * width + at]);
    }
    __syncthreads();
    return shared[at];
}

/* The same for few columns that are long: a block has up to TALL_WIDTH neighbours and as many rows at a time
 * as it has threads for. */
template <class T>
__global__ void __launch_bounds__(TALL_THREADS)
    softmax_tall(const T *x, T *y, int64_t size, int64_t inner, int width, bool log_)
{
    using W = typename cuda_wide<T>::type;
    __shared__ W shared[TALL_THREADS];
    const int lanes = (int)blockDim.x / width, lane = (int)threadIdx.x / width, at = (int)threadIdx.x % width;
    const int64_t tiles = (inner + width - 1) / width, column = blockIdx.x % tiles * width + at;
    const int64_t begin = blockIdx.x / tiles * size * inner + column, end = column < inner ? size : 0;
    W top = -CUDART_INF_F, sum = 0;
#pragma unroll 4
    for (int64_t k = lane; k < end; k += lanes)
        top = cuda_top::join<W>(cuda_widen(x[begin + k * inner]), top);
    top = join_lanes<cuda_top, W>(top, shared, lane, lanes, width, at);
#pragma unroll 4
    for (int64_t k = lane; k < end; k += lanes)
        sum += exponential(cuda_widen(x[begin + k * inner]) - top);
    sum = join_lanes<cuda_sum, W>(sum, shared, lane, lanes, width, at);
    const W factor = log_ ? logarithm(sum) : 1 / sum;
#pragma unroll 4
    for (int64_t k = lane; k < end; k += lanes) {
        const W d = cuda_widen(x[begin + k * inner]) - top;
        y[begin + k * inner] = cuda_narrow<T, W>(log_ ? d - factor : exponential(d) * factor);
    }
}

/* A thread a column would leave most of a GPU idle, and read each number after the one before. */
static bool is_tall(const grt_softmax *s)
{
    enum { LEAST_ROWS = 64, MOST_COLUMNS = 1 << 15 };
    return s->inner > 1 && s->size >= LEAST_ROWS && s->outer * s->inner <= MOST_COLUMNS;
}

/* A block a row would leave most of a GPU idle. */
static softmax_cut softmax_cut_of(const grt_softmax *s)
{
    enum { LEAST = 4096, WANTED = 1024, MOST_PARTS = 256 };
    if (s->inner != 1 || s->outer <= 0 || s->size < 2 * LEAST)
        return {1, s->size};
    int64_t parts = (WANTED + s->outer - 1) / s->outer;
    parts = parts < s->size / LEAST ? parts : s->size / LEAST;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    return {parts, (s->size + parts - 1) / parts};
}

template <class T>
static void softmax_in_parts(const softmax_shape *sh, const T *x, T *y, void *workspace, cudaStream_t stream)
{
    softmax_part<typename cuda_wide<T>::type> *parts = (softmax_part<typename cuda_wide<T>::type> *)workspace;
    const unsigned blocks = (unsigned)(sh->s.outer * sh->cut.parts);
    softmax_parts<T><<<blocks, 256, 0, stream>>>(x, sh->s.size, sh->cut, parts);
    softmax_of_parts<T><<<blocks, 256, 0, stream>>>(x, y, sh->s.size, sh->cut, sh->s.log, parts);
}

template <class T>
static void cuda_softmax_launch(const softmax_shape *sh, const void *x_, void *y_, void *workspace,
                                cudaStream_t stream)
{
    enum { WARP_SIZES = 1024 }; /* longer rows get a block each */
    const grt_softmax *s = &sh->s;
    const T *x = (const T *)x_;
    T *y = (T *)y_;
    if (sh->cut.parts > 1)
        softmax_in_parts<T>(sh, x, y, workspace, stream);
    else if (is_tall(s)) {
        const int width = s->inner < TALL_WIDTH ? (int)s->inner : TALL_WIDTH;
        const int64_t blocks = s->outer * ((s->inner + width - 1) / width);
        const int threads = (s->size < TALL_THREADS ? TALL_THREADS / 4 : TALL_THREADS) / width * width;
        softmax_tall<T><<<(unsigned)blocks, threads, 0, stream>>>(x, y, s->size, s->inner, width, s->log);
    } else if (s->inner > 1)
        softmax_columns<T><<<cuda_blocks(s->outer * s->inner, 128), 128, 0, stream>>>(
            x, y, s->outer * s->inner, s->size, s->inner, s->log);
    else if (s->size <= SHORT)
        softmax_short<T><<<cuda_blocks(s->outer, 256 / SHORT_LANES), 256, 0, stream>>>(x, y, s->outer,
                                                                                       (int)s->size, s->log);
    else if (s->size <= WARP_SIZES)
        softmax_rows<T, 32><<<cuda_blocks(s->outer, 8), 256, 0, stream>>>(x, y, s->outer, s->size, s->log);
    else
        softmax_rows<T, 256><<<cuda_blocks(s->outer, 1), 256, 0, stream>>>(x, y, s->outer, s->size, s->log);
}

static grt_status cuda_softmax_reshape(grt_reshape *r)
{
    GRT_TRY(grt_softmax_reshape(r));
    const grt_softmax made = *(const grt_softmax *)r->shape;
    free(r->shape);
    r->shape = NULL;
    softmax_shape *sh = (softmax_shape *)calloc(1, sizeof *sh);
    if (!sh)
        return grt_fail_memory(sizeof *sh);
    *sh = {made, softmax_cut_of(&made)};
    if (sh->cut.parts > 1)
        r->workspace_bytes = (size_t)(made.outer * sh->cut.parts) * sizeof(softmax_part<double>);
    r->shape = sh;
    return GRT_OK;
}

static grt_status cuda_softmax_run(const grt_run *r)
{
    const softmax_shape *sh = (const softmax_shape *)r->shape;
    if (sh->s.outer * sh->s.size * sh->s.inner == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(
        r->in[0]->dtype, T,
        cuda_softmax_launch<T>(sh, r->in[0]->data, r->out[0]->data, r->workspace, (cudaStream_t)r->stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define ROW(name)                                                                             \
    {                                                                                         \
        .domain = "", .op = name, .types = {GRT_SET_FLOATS}, .flags = GRT_KERNEL_IN_PLACE(0), \
        .reshape = cuda_softmax_reshape, .release_shape = free, .run = cuda_softmax_run       \
    }

static const grt_kernel_row rows[] = {ROW("Softmax"), ROW("LogSoftmax")};
CUDA_KERNELS(softmax, rows);
