/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting and numbering in device memory, for kernels whose results depend on the order of data. */
#ifndef GRT_BACKENDS_CUDA_ORDER_CUH
#define GRT_BACKENDS_CUDA_ORDER_CUH

#include "backends/cuda/each.cuh"

/* ---- numbering: chunks are counted, their counts are added up, then each chunk is numbered ----
 * The count of a chunk is stored where its first number will be. */

enum { CUDA_CHUNK = 4 * CUDA_BLOCK };

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_count_kernel(int64_t n, int64_t *places, const __grid_constant__ F picked)
{
    for (int64_t first = (int64_t)blockIdx.x * CUDA_CHUNK; first < n;
         first += (int64_t)gridDim.x * CUDA_CHUNK) {
        int64_t count = 0;
        for (int64_t i = first + threadIdx.x; i < first + CUDA_CHUNK; i += CUDA_BLOCK)
            count += __syncthreads_count(i < n && picked(i));
        if (threadIdx.x == 0)
            places[first] = count;
    }
}

/* By one block. */
static __global__ void __launch_bounds__(CUDA_BLOCK) cuda_add_counts_kernel(int64_t n, int64_t *places)
{
    __shared__ int64_t sums[CUDA_BLOCK];
    const int64_t chunks = (n + CUDA_CHUNK - 1) / CUDA_CHUNK, per = (chunks + CUDA_BLOCK - 1) / CUDA_BLOCK;
    const int64_t from = threadIdx.x * per, to = from + per < chunks ? from + per : chunks;
    int64_t sum = 0;
    for (int64_t c = from; c < to; c++)
        sum += places[c * CUDA_CHUNK];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (int k = 0; k < CUDA_BLOCK; k++) {
            const int64_t mine = sums[k];
            sums[k] = sum;
            sum += mine;
        }
        places[n] = sum;
    }
    __syncthreads();
    sum = sums[threadIdx.x];
    for (int64_t c = from; c < to; c++) {
        const int64_t mine = places[c * CUDA_CHUNK];
        places[c * CUDA_CHUNK] = sum;
        sum += mine;
    }
}

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_number_kernel(int64_t n, int64_t *places, const __grid_constant__ F picked)
{
    __shared__ int counts[CUDA_BLOCK / 32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int64_t first = (int64_t)blockIdx.x * CUDA_CHUNK; first < n;
         first += (int64_t)gridDim.x * CUDA_CHUNK) {
        int64_t base = places[first];
        for (int64_t i = first + threadIdx.x; i < first + CUDA_CHUNK; i += CUDA_BLOCK) {
            const bool mine = i < n && picked(i);
            const unsigned those = __ballot_sync(0xffffffffu, mine);
            if (lane == 0)
                counts[warp] = __popc(those);
            __syncthreads(); /* the counts are there, and the base has been read */
            int64_t before = base + __popc(those & ((1u << lane) - 1));
            for (unsigned w = 0; w < CUDA_BLOCK / 32; w++) {
                before += w < warp ? counts[w] : 0;
                base += counts[w];
            }
            if (i < n)
                places[i] = mine ? before : ~before;
            __syncthreads();
        }
    }
}

/* places[i] = how many before i are picked, or its complement (less than 0) if i itself is not; places[n] =
 * how many there are. */
template <typename F>
static grt_status cuda_number(const grt_run *r, int64_t n, int64_t *places, const F &picked)
{
    if (n > 0)
        cuda_count_kernel<F><<<cuda_grid(n, CUDA_CHUNK), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, places, picked);
    cuda_add_counts_kernel<<<1, CUDA_BLOCK, 0, cuda_stream(r)>>>(n, places);
    if (n > 0)
        cuda_number_kernel<F><<<cuda_grid(n, CUDA_CHUNK), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, places, picked);
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
