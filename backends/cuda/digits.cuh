/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting pairs of a key and a place by digits of the key, lowest first. Pairs of equal keys keep their
 * order, so the result is the same in every run. Work is linear in the pairs.
 *
 * A tile of pairs is a block's: it ranks them by a digit, each warp its own stretch, with a row of counts of
 * its own. Up to a tile is sorted in shared memory at once. More takes three kernels a digit: tiles count
 * digits, the counts are added up along the tiles, tiles move their pairs. */
#ifndef GRT_BACKENDS_CUDA_DIGITS_CUH
#define GRT_BACKENDS_CUDA_DIGITS_CUH

#include "backends/cuda/scan.cuh"

/* K is uint32_t, or uint64_t where keys or places want it. */
template <typename K> struct alignas(2 * sizeof(K)) cuda_pair {
    K key, at;
};

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, DIGIT_BLOCK = DIGITS, DIGIT_WARPS = DIGIT_BLOCK / 32 };
/* Of pairs a thread has: 32 KB a tile. */
template <typename K> constexpr int digit_each = (32 << 10) / (DIGIT_BLOCK * (int)sizeof(cuda_pair<K>));
template <typename K> constexpr int digit_tile = DIGIT_BLOCK *digit_each<K>;

struct cuda_digit {
    int shift, bits;

    template <typename K> __device__ __forceinline__ unsigned of(K key) const
    {
        return (unsigned)(key >> shift) & ((1u << bits) - 1);
    }
};

/* Of a tile, in shared memory. */
typedef unsigned digit_counts[DIGIT_WARPS][DIGITS];
template <typename K> struct digit_shared {
    cuda_pair<K> pairs[digit_tile<K>];
    digit_counts counts; /* of a warp's stretch, then where its first pair of a digit goes */
    int64_t to[DIGITS];  /* where the tile's pair 0 would go if it had this digit */
};

/* Pair e of this thread; rounds: e < rounds for all pairs of the tile. */
__device__ __forceinline__ int digit_place(int rounds, int e)
{
    return (int)(threadIdx.x / 32 * 32) * rounds + e * 32 + (int)(threadIdx.x % 32);
}
__device__ __forceinline__ int digit_rounds(int n)
{
    return (n + DIGIT_BLOCK - 1) / DIGIT_BLOCK;
}

/* Which lanes' pairs have the digit of this lane's; one that `is` not has none. */
__device__ __forceinline__ unsigned digit_alike(unsigned digit, int bits, bool is)
{
    unsigned alike = __ballot_sync(0xffffffffu, is);
    for (int b = 0; b < bits; b++) {
        const bool set = digit >> b & 1;
        const unsigned those = __ballot_sync(0xffffffffu, set);
        alike &= set ? those : ~those;
    }
    return is ? alike : 0;
}

template <typename K>
__device__ __forceinline__ void digit_load(const cuda_pair<K> *from, int n,
                                           cuda_pair<K> (&mine)[digit_each<K>])
{
    const int rounds = digit_rounds(n);
#pragma unroll
    for (int e = 0; e < digit_each<K>; e++) {
        const int i = digit_place(rounds, e);
        mine[e] = e < rounds && i < n ? from[i] : cuda_pair<K>{};
    }
}

/* Counts digits by warps; rank[e] is how many of the warp's pairs before e have its digit. */
template <typename K>
__device__ __forceinline__ void digit_count(const cuda_pair<K> (&mine)[digit_each<K>], int n,
                                            cuda_digit digit, digit_counts &all,
                                            unsigned (&rank)[digit_each<K>])
{
    const int rounds = digit_rounds(n);
    unsigned *counts = all[threadIdx.x / 32];
    for (int d = threadIdx.x % 32; d < DIGITS; d += 32)
        counts[d] = 0;
    __syncwarp();
#pragma unroll
    for (int e = 0; e < digit_each<K>; e++) {
        if (e >= rounds)
            continue;
        const bool is = digit_place(rounds, e) < n;
        const unsigned d = digit.of(mine[e].key), alike = digit_alike(d, digit.bits, is),
                       before = __popc(alike & ((1u << threadIdx.x % 32) - 1)), so_far = counts[d];
        rank[e] = so_far + before;
        __syncwarp();
        if (is && before == 0)
            counts[d] = so_far + __popc(alike);
        __syncwarp();
    }
    __syncthreads();
}

/* Sorts the tile's pairs by a digit, into s.pairs. Returns, to thread d, where digit d begins there. */
template <typename K>
__device__ __forceinline__ unsigned digit_sort_tile(const cuda_pair<K> (&mine)[digit_each<K>], int n,
                                                    cuda_digit digit, digit_shared<K> &s)
{
    const int rounds = digit_rounds(n);
    unsigned rank[digit_each<K>], all = 0;
    digit_count<K>(mine, n, digit, s.counts, rank);
    for (int w = 0; w < DIGIT_WARPS; w++)
        all += s.counts[w][threadIdx.x];
    const unsigned first = (unsigned)cuda_block_scan(all).before;
    unsigned next = first;
    for (int w = 0; w < DIGIT_WARPS; w++) {
        const unsigned count = s.counts[w][threadIdx.x];
        s.counts[w][threadIdx.x] = next;
        next += count;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < digit_each<K>; e++)
        if (e < rounds && digit_place(rounds, e) < n)
            s.pairs[s.counts[threadIdx.x / 32][digit.of(mine[e].key)] + rank[e]] = mine[e];
    __syncthreads();
    return first;
}

/* Digits of keys of that many bits: as few as can be, alike in size. */
struct cuda_digits {
    int bits, each;
};
static inline cuda_digits cuda_digits_of(int bits)
{
    const int n = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    return {bits, n ? (bits + n - 1) / n : 1};
}
static __host__ __device__ inline cuda_digit cuda_digit_at(const cuda_digits &all, int shift)
{
    return {shift, shift + all.each < all.bits ? all.each : all.bits - shift};
}

/* By one block, what fits a tile. */
template <typename K>
__global__ void __launch_bounds__(DIGIT_BLOCK) digit_tile_kernel(int n, cuda_digits all, cuda_pair<K> *pairs)
{
    __shared__ digit_shared<K> s;
    cuda_pair<K> mine[digit_each<K>];
    digit_load<K>(pairs, n, mine);
    for (int shift = 0; shift < all.bits; shift += all.each) {
        digit_sort_tile<K>(mine, n, cuda_digit_at(all, shift), s);
        digit_load<K>(s.pairs, n, mine);
    }
    const int rounds = digit_rounds(n);
#pragma unroll
    for (int e = 0; e < digit_each<K>; e++)
        if (e < rounds && digit_place(rounds, e) < n)
            pairs[digit_place(rounds, e)] = mine[e];
}

/* Pairs of tile `tile`. */
template <typename K> __device__ __forceinline__ int digit_tile_size(int64_t n, int64_t tile)
{
    const int64_t left = n - tile * digit_tile<K>;
    return (int)(left < digit_tile<K> ? left : digit_tile<K>);
}

/* counts[d * tiles + tile]: pairs of the tile that have digit d. */
template <typename K>
__global__ void __launch_bounds__(DIGIT_BLOCK)
    digit_count_kernel(int64_t n, int64_t tiles, cuda_digit digit, const cuda_pair<K> *pairs, int64_t *counts)
{
    __shared__ digit_counts by_warp;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        cuda_pair<K> mine[digit_each<K>];
        unsigned rank[digit_each<K>];
        int64_t all = 0;
        const int size = digit_tile_size<K>(n, tile);
        digit_load<K>(pairs + tile * digit_tile<K>, size, mine);
        digit_count<K>(mine, size, digit, by_warp, rank);
        for (int w = 0; w < DIGIT_WARPS; w++)
            all += by_warp[w][threadIdx.x];
        counts[threadIdx.x * tiles + tile] = all;
        __syncthreads();
    }
}

/* before: the counts' running sums along the tiles; sums[d]: pairs that have digit d. */
template <typename K>
__global__ void __launch_bounds__(DIGIT_BLOCK)
    digit_move_kernel(int64_t n, int64_t tiles, cuda_digit digit, const cuda_pair<K> *from, cuda_pair<K> *to,
                      const int64_t *before, const int64_t *sums)
{
    __shared__ digit_shared<K> s;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        cuda_pair<K> mine[digit_each<K>];
        const int size = digit_tile_size<K>(n, tile);
        digit_load<K>(from + tile * digit_tile<K>, size, mine);
        const unsigned first = digit_sort_tile<K>(mine, size, digit, s);
        s.to[threadIdx.x] =
            cuda_block_scan(sums[threadIdx.x]).before + before[threadIdx.x * tiles + tile] - first;
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += DIGIT_BLOCK)
            to[s.to[digit.of(s.pairs[i].key)] + i] = s.pairs[i];
        __syncthreads();
    }
}

template <typename K> static inline int64_t digit_tiles(int64_t n)
{
    return n <= digit_tile<K> ? 0 : (n + digit_tile<K> - 1) / digit_tile<K>;
}

/* Numbers that the sort wants beside the pairs and as much room for them again. */
template <typename K> static inline size_t cuda_digit_room(int64_t n)
{
    return n <= digit_tile<K> ? 0 : DIGITS * ((size_t)digit_tiles<K>(n) + 1);
}

/* *v is sorted by keys below 2^bits; *spare has as much room. The two may be exchanged. */
template <typename K>
static grt_status cuda_sort_by_digits(const grt_run *r, int64_t n, int bits, cuda_pair<K> **v,
                                      cuda_pair<K> **spare, int64_t *room)
{
    const cuda_digits all = cuda_digits_of(bits);
    const int64_t tiles = digit_tiles<K>(n);
    const unsigned grid = cuda_grid(n > 0 ? n : 1, digit_tile<K>);
    int64_t *sums = room + DIGITS * tiles;
    if (n > 1 && !tiles)
        digit_tile_kernel<K><<<1, DIGIT_BLOCK, 0, cuda_stream(r)>>>((int)n, all, *v);
    CUDA_LAUNCHED();
    for (int shift = 0; tiles && shift < bits; shift += all.each) {
        const cuda_digit digit = cuda_digit_at(all, shift);
        digit_count_kernel<K><<<grid, DIGIT_BLOCK, 0, cuda_stream(r)>>>(n, tiles, digit, *v, room);
        CUDA_LAUNCHED();
        GRT_TRY(cuda_scan(r, DIGITS, tiles, room, sums));
        digit_move_kernel<K>
            <<<grid, DIGIT_BLOCK, 0, cuda_stream(r)>>>(n, tiles, digit, *v, *spare, room, sums);
        CUDA_LAUNCHED();
        cuda_pair<K> *sorted = *spare;
        *spare = *v;
        *v = sorted;
    }
    return GRT_OK;
}

/* Bits of the numbers below n. */
static inline int cuda_bits_below(int64_t n)
{
    int bits = 0;
    while (bits < 63 && (n - 1) >> bits > 0)
        bits++;
    return bits;
}

#endif
