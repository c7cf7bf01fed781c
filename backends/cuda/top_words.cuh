/* SPDX-License-Identifier: Apache-2.0 */
/* TopK of numbers of 32 bits or fewer as words that hold order and place: no two are equal, so the k greatest
 * are those from a bound on, which is found bit by bit. Chunks of lines are selected from, then what is
 * selected, until a line is one chunk; its words are ranked by counting. */
#ifndef GRT_BACKENDS_CUDA_TOP_WORDS_CUH
#define GRT_BACKENDS_CUDA_TOP_WORDS_CUH

#include "backends/cuda/line.cuh"

/* The order of numbers of 32 bits or fewer, and of equal ones the first, in one word; 0 is less than all. */
template <typename S> __device__ __forceinline__ uint64_t top_word(S x, bool least, int at)
{
    typename pw_storage<S>::T v = pw_widen<S>(x);
    typedef decltype(v) T;
    uint32_t key;
    if constexpr (std::is_floating_point<T>::value) {
        const uint32_t bits = __float_as_uint(v == 0 ? 0.0f : (float)v);
        key = v != v ? UINT32_MAX : bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    } else if constexpr (std::is_signed<T>::value) {
        key = (uint32_t)(int32_t)v ^ UINT32_C(1) << 31;
    } else {
        key = (uint32_t)v;
    }
    return (uint64_t)(least ? ~key : key) << 32 | (uint32_t)~at;
}

/* A chunk is for THREADS threads, a warp or a block, that have TOP_EACH words each; k <= TOP_MOST. */
enum { TOP_EACH = 32, TOP_WARP_MOST = 128, TOP_BLOCK_MOST = 2048 };
template <int THREADS> constexpr int top_most = THREADS == 32 ? TOP_WARP_MOST : TOP_BLOCK_MOST;

struct top_stage {
    cuda_lines in;          /* of the tensor */
    int64_t n, chunks, per; /* elements of a line or words that are left of it; cut into chunks */
    int k;
    bool least;
    const uint64_t *words; /* lines of n; NULL: the tensor's elements */
    uint64_t *selected;    /* lines of chunks * k, of the last stage not used */
};

/* The sum over the threads of a chunk; `shared` has a number for each warp. */
template <int THREADS> __device__ __forceinline__ int top_sum(int v, int *shared)
{
    v = __reduce_add_sync(0xffffffffu, v);
    if (THREADS == 32)
        return v;
    __syncthreads(); /* the numbers before may still be read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < THREADS / 32; w++)
        v += shared[w];
    return v;
}

/* From which word on there are k; 0 where there are fewer. */
template <int THREADS>
__device__ __forceinline__ uint64_t top_bound(const uint64_t (&word)[TOP_EACH], int k, int *shared)
{
    uint64_t bound = 0;
    for (int bit = 63; bit >= 0; bit--) {
        const uint64_t tried = bound | UINT64_C(1) << bit;
        int n = 0;
#pragma unroll
        for (int e = 0; e < TOP_EACH; e++)
            n += word[e] >= tried;
        n = top_sum<THREADS>(n, shared);
        bound = n >= k ? tried : bound;
        if (n == k)
            break;
    }
    return bound;
}

/* Write the words from `bound` on one after another, and 0 behind them up to k. */
template <int THREADS>
__device__ __forceinline__ void top_collect(const uint64_t (&word)[TOP_EACH], uint64_t bound, int k,
                                            int *shared, uint64_t *to)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % THREADS / 32;
    int mine = 0, at = 0;
#pragma unroll
    for (int e = 0; e < TOP_EACH; e++)
        mine += word[e] >= bound && word[e];
    const int all = top_sum<THREADS>(mine, shared);
    for (int w = 0; THREADS > 32 && w < warp; w++)
        at += shared[w];
#pragma unroll
    for (int e = 0; e < TOP_EACH; e++) {
        const bool is = word[e] >= bound && word[e];
        const unsigned those = __ballot_sync(0xffffffffu, is);
        if (is)
            to[at + __popc(those & ((1u << lane) - 1))] = word[e];
        at += __popc(those);
    }
    for (int i = all + threadIdx.x % THREADS; i < k; i += THREADS)
        to[i] = 0;
}

template <typename S, int THREADS>
__device__ __forceinline__ void top_load(const top_stage &s, int64_t line, int64_t chunk, const S *in,
                                         uint64_t (&word)[TOP_EACH])
{
    const int64_t begin = chunk * s.per, end = begin + s.per < s.n ? begin + s.per : s.n;
    const S *from = in + cuda_line_base(s.in, line, s.in.n);
#pragma unroll
    for (int e = 0; e < TOP_EACH; e++) {
        const int64_t i = begin + e * THREADS + threadIdx.x % THREADS;
        word[e] = i >= end  ? 0
                  : s.words ? s.words[line * s.n + i]
                            : top_word<S>(from[i * s.in.inner], s.least, (int)i);
    }
}

/* What the words of a line, k of them, name, in order. */
template <typename S, int THREADS>
__device__ __forceinline__ void top_rank(const top_stage &s, int64_t line, const uint64_t *words, const S *in,
                                         S *values, int64_t *places)
{
    const int64_t from = cuda_line_base(s.in, line, s.in.n), to = cuda_line_base(s.in, line, s.k);
    for (int i = threadIdx.x % THREADS; i < s.k; i += THREADS) {
        const uint64_t mine = words[i];
        const int at = (int)~(uint32_t)mine;
        int rank = 0;
        for (int j = 0; j < s.k; j++)
            rank += words[j] > mine;
        if (values)
            values[to + rank * s.in.inner] = in[from + at * s.in.inner];
        if (places)
            places[to + rank * s.in.inner] = at;
    }
}

template <typename S, int THREADS>
__global__ void __launch_bounds__(CUDA_BLOCK)
    top_select_kernel(const __grid_constant__ top_stage s, const S *in, S *values, int64_t *places)
{
    constexpr int GROUPS = CUDA_BLOCK / THREADS;
    __shared__ uint64_t kept[GROUPS * top_most<THREADS>];
    __shared__ int shared[CUDA_BLOCK / 32];
    const int group = threadIdx.x / THREADS;
    for (int64_t item = (int64_t)blockIdx.x * GROUPS + group; item < s.in.n_lines * s.chunks;
         item += (int64_t)gridDim.x * GROUPS) {
        const int64_t line = item / s.chunks;
        const bool last = s.chunks == 1;
        uint64_t word[TOP_EACH], *to = last ? kept + group * top_most<THREADS> : s.selected + item * s.k;
        top_load<S, THREADS>(s, line, item - line * s.chunks, in, word);
        top_collect<THREADS>(word, top_bound<THREADS>(word, s.k, shared), s.k, shared, to);
        if (!last)
            continue;
        if (THREADS == 32)
            __syncwarp();
        else
            __syncthreads();
        top_rank<S, THREADS>(s, line, to, in, values, places);
        if (THREADS == 32) /* the words are overwritten for the next line */
            __syncwarp();
        else
            __syncthreads();
    }
}

/* Chunks of a line of n elements or words. */
static inline int64_t top_chunks(int64_t n, int k)
{
    const int64_t most = (int64_t)(k <= TOP_WARP_MOST ? 32 : CUDA_BLOCK) * TOP_EACH;
    return (n + most - 1) / most;
}

/* Room for what two stages select, in words. */
static inline int64_t top_room(const cuda_lines &in, int k)
{
    const int64_t chunks = top_chunks(in.n, k);
    return chunks > 1 ? 2 * in.n_lines * chunks * k : 0;
}

template <typename S, int THREADS>
static void top_launch(const top_stage &s, const S *in, S *values, int64_t *places, cudaStream_t stream)
{
    top_select_kernel<S, THREADS>
        <<<cuda_grid(s.in.n_lines * s.chunks, CUDA_BLOCK / THREADS), CUDA_BLOCK, 0, stream>>>(s, in, values,
                                                                                              places);
}

template <typename S>
static grt_status top_by_words(const grt_run *r, const cuda_lines &lines, int k, bool least, const S *in,
                               S *values, int64_t *places)
{
    uint64_t *room[2] = {(uint64_t *)r->workspace, (uint64_t *)r->workspace + top_room(lines, k) / 2};
    top_stage s = {lines, lines.n, 0, 0, k, least, NULL, room[0]};
    do {
        s.chunks = top_chunks(s.n, k);
        s.per = (s.n + s.chunks - 1) / s.chunks;
        if (k <= TOP_WARP_MOST)
            top_launch<S, 32>(s, in, values, places, cuda_stream(r));
        else
            top_launch<S, CUDA_BLOCK>(s, in, values, places, cuda_stream(r));
        CUDA_LAUNCHED();
        s.n = s.chunks * k;
        s.words = s.selected;
        s.selected = s.words == room[0] ? room[1] : room[0];
    } while (s.chunks > 1);
    return GRT_OK;
}

#endif
