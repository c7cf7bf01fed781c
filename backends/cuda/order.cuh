/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting and numbering in device memory, for kernels whose results depend on the order of data. */
#ifndef GRT_BACKENDS_CUDA_ORDER_CUH
#define GRT_BACKENDS_CUDA_ORDER_CUH

#include "backends/cuda/each.cuh"
#include "backends/cuda/scan.cuh"

/* ---- numbering: chunks are counted, their counts are added up, then each chunk is numbered ---- */

enum { CUDA_CHUNK_EACH = 16, CUDA_CHUNK = CUDA_CHUNK_EACH * CUDA_BLOCK };

static inline int64_t cuda_chunks(int64_t n)
{
    return (n + CUDA_CHUNK - 1) / CUDA_CHUNK;
}

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_count_kernel(int64_t n, int64_t *counts, const __grid_constant__ F picked)
{
    for (int64_t first = (int64_t)blockIdx.x * CUDA_CHUNK; first < n;
         first += (int64_t)gridDim.x * CUDA_CHUNK) {
        int64_t mine = 0;
#pragma unroll
        for (int e = 0; e < CUDA_CHUNK_EACH; e++) {
            const int64_t i = first + e * CUDA_BLOCK + threadIdx.x;
            mine += i < n && picked(i);
        }
        const int64_t all = cuda_block_scan(mine).all;
        if (threadIdx.x == 0)
            counts[first / CUDA_CHUNK] = all;
    }
}

/* Each warp has a stretch of the chunk. */
template <typename F, typename G>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_number_kernel(int64_t n, const int64_t *counts, const __grid_constant__ F picked,
                       const __grid_constant__ G take)
{
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int64_t first = (int64_t)blockIdx.x * CUDA_CHUNK; first < n;
         first += (int64_t)gridDim.x * CUDA_CHUNK) {
        const int64_t begin = first + warp * 32 * CUDA_CHUNK_EACH + lane;
        unsigned those[CUDA_CHUNK_EACH], mine = 0;
#pragma unroll
        for (int e = 0; e < CUDA_CHUNK_EACH; e++) {
            those[e] = __ballot_sync(0xffffffffu, begin + e * 32 < n && picked(begin + e * 32));
            mine += __popc(those[e]);
        }
        int64_t before = counts[first / CUDA_CHUNK] + cuda_block_scan(lane ? 0 : mine).before;
        before -= lane ? mine : 0; /* the lanes behind the first have counted their own warp */
#pragma unroll
        for (int e = 0; e < CUDA_CHUNK_EACH; e++) {
            if (begin + e * 32 < n)
                take(begin + e * 32, before + __popc(those[e] & ((1u << lane) - 1)),
                     (bool)(those[e] >> lane & 1));
            before += __popc(those[e]);
        }
    }
}

/* counts[c]: how many of those before chunk c are picked; the last, counts[cuda_chunks(n)]: of all. */
template <typename F>
static grt_status cuda_count(const grt_run *r, int64_t n, int64_t *counts, const F &picked)
{
    if (n > 0)
        cuda_count_kernel<F><<<cuda_grid(n, CUDA_CHUNK), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, counts, picked);
    CUDA_LAUNCHED();
    return cuda_scan(r, 1, cuda_chunks(n), counts, counts + cuda_chunks(n));
}

/* take(i, before, is) for every i, of counts from cuda_count: how many before i are picked, and whether i is.
 */
template <typename F, typename G>
static grt_status cuda_number(const grt_run *r, int64_t n, const int64_t *counts, const F &picked,
                              const G &take)
{
    if (n > 0)
        cuda_number_kernel<F, G>
            <<<cuda_grid(n, CUDA_CHUNK), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, counts, picked, take);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* ---- sorting ----
 * By merging: an element of a run finds its place by a binary search in the run beside its own. The order
 * must be strict (no two elements equal), so that places are distinct. */

enum { CUDA_SORT_TILE = 64 };

/* Runs of CUDA_SORT_TILE elements: each element counts those before it. */
template <typename T, typename Less>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_sort_tiles_kernel(int64_t n, int64_t total, const T *from, T *to, const __grid_constant__ Less less)
{
    CUDA_ITEMS (i, total) {
        int64_t line = i / n * n, begin = line + (i - line) / CUDA_SORT_TILE * CUDA_SORT_TILE, place = begin;
        int64_t end = begin + CUDA_SORT_TILE < line + n ? begin + CUDA_SORT_TILE : line + n;
        T mine = from[i];
        for (int64_t k = begin; k < end; k++)
            place += k != i && less(from[k], mine);
        to[place] = mine;
    }
}

template <typename T, typename Less>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_sort_merge_kernel(int64_t n, int64_t total, int64_t width, const T *from, T *to,
                           const __grid_constant__ Less less)
{
    CUDA_ITEMS (i, total) {
        int64_t line = i / n * n, at = i - line, begin = at / (2 * width) * (2 * width);
        int64_t middle = begin + width < n ? begin + width : n,
                end = begin + 2 * width < n ? begin + 2 * width : n;
        bool left = at < middle;
        int64_t low = left ? middle : begin, high = left ? end : middle, other = low;
        T mine = from[i];
        while (low < high) {
            int64_t half = low + (high - low) / 2;
            if (less(from[line + half], mine))
                low = half + 1;
            else
                high = half;
        }
        to[line + begin + (left ? at - begin : at - middle) + (low - other)] = mine;
    }
}

/* Sort each of `lines` lines of n elements; *v is sorted, *spare has as much room. The two may be exchanged.
 */
template <typename T, typename Less>
static grt_status cuda_sort(const grt_run *r, int64_t lines, int64_t n, T **v, T **spare, const Less &less)
{
    const int64_t total = lines * n;
    if (total <= 0)
        return GRT_OK;
    for (int64_t width = 0; width < n; width = width ? 2 * width : CUDA_SORT_TILE) {
        if (width)
            cuda_sort_merge_kernel<T, Less>
                <<<cuda_grid(total), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, total, width, *v, *spare, less);
        else
            cuda_sort_tiles_kernel<T, Less>
                <<<cuda_grid(total), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, total, *v, *spare, less);
        CUDA_LAUNCHED();
        T *sorted = *spare;
        *spare = *v;
        *v = sorted;
    }
    return GRT_OK;
}

/* An element by its key (see backends/shared/order.h), of equal ones the first. */
struct cuda_keyed {
    uint64_t key;
    int64_t at;
};
struct cuda_keyed_less {
    __device__ __forceinline__ bool operator()(const cuda_keyed &a, const cuda_keyed &b) const
    {
        return a.key < b.key || (a.key == b.key && a.at < b.at);
    }
};

#endif
