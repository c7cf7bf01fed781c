/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that are sorted by the element that they go to, and combined with it in their order.
 *
 * A thread combines an element's updates one after another, PIECE of them at most: of more, each further
 * piece is combined on its own, then the element with what the pieces gave, in their order. Where an element
 * has no more than PIECE, the result has the bits of one loop over all; else it is rounded elsewhere, in
 * every run alike. */
#ifndef GRT_BACKENDS_CUDA_SORTED_UPDATES_CUH
#define GRT_BACKENDS_CUDA_SORTED_UPDATES_CUH

#include "backends/cuda/digits.cuh"
#include "backends/cuda/indexed.cuh"

/* Of an update: which element it goes to, and its place among the updates. Elements and updates are runs of
 * `run` numbers. */
template <typename K> struct sorted_updates {
    int64_t n, run;
    const cuda_pair<K> *pairs;

    __device__ __forceinline__ bool alike(int64_t a, int64_t b) const
    {
        return pairs[a].key == pairs[b].key;
    }
    /* The first update of the element of update k. */
    __device__ __forceinline__ int64_t first(int64_t k) const
    {
        const K key = pairs[k].key;
        int64_t low = 0, high = k;
        while (low < high) {
            const int64_t half = low + (high - low) / 2;
            if (pairs[half].key < key)
                low = half + 1;
            else
                high = half;
        }
        return low;
    }
};

enum { PIECE = 128 };

/* Pieces beyond an element's first begin PIECE updates apart or more: k / PIECE tells them apart. */
static inline int64_t sorted_pieces(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

/* What update k begins: an element's first piece, a further one, nothing. */
enum piece { NO_PIECE, FIRST_PIECE, FURTHER_PIECE };
template <typename K> __device__ __forceinline__ piece piece_at(const sorted_updates<K> &u, int64_t k)
{
    if (k == 0 || !u.alike(k - 1, k))
        return FIRST_PIECE;
    if (k < PIECE || !u.alike(k - PIECE, k))
        return NO_PIECE;
    return (k - u.first(k)) % PIECE ? NO_PIECE : FURTHER_PIECE;
}

/* combine(a, b): what a becomes by an update b. pieces: sorted_pieces(n) runs. */
template <typename S, typename K, typename F>
__global__ void __launch_bounds__(CUDA_BLOCK)
    combine_pieces_kernel(const __grid_constant__ sorted_updates<K> u, const __grid_constant__ F combine,
                          S *dst, const S *updates, S *pieces)
{
    CUDA_ITEMS (i, u.n * u.run) {
        const cuda_divided item = cuda_divide(i, u.run);
        const int64_t begin = item.q, end = begin + PIECE < u.n ? begin + PIECE : u.n;
        const piece is = piece_at(u, begin);
        if (is == NO_PIECE)
            continue;
        const cuda_pair<K> pair = u.pairs[begin];
        S *to = is == FIRST_PIECE ? dst + (int64_t)pair.key * u.run + item.r
                                  : pieces + begin / PIECE * u.run + item.r;
        S sum = updates[(int64_t)pair.at * u.run + item.r];
        sum = is == FIRST_PIECE ? combine(*to, sum) : sum;
        for (int64_t k = begin + 1; k < end && u.pairs[k].key == pair.key; k++)
            sum = combine(sum, updates[(int64_t)u.pairs[k].at * u.run + item.r]);
        *to = sum;
    }
}

/* Elements that have further pieces, each found by the one multiple of PIECE that its second piece has. */
template <typename S, typename K, typename F>
__global__ void __launch_bounds__(CUDA_BLOCK)
    combine_elements_kernel(const __grid_constant__ sorted_updates<K> u, const __grid_constant__ F combine,
                            S *dst, const S *pieces)
{
    CUDA_ITEMS (i, (u.n - 1) / PIECE * u.run) {
        const cuda_divided item = cuda_divide(i, u.run);
        const int64_t k = (item.q + 1) * PIECE, first = u.first(k), second = first + PIECE;
        if (k > second || k <= first || second >= u.n || !u.alike(first, second))
            continue;
        S *to = dst + (int64_t)u.pairs[first].key * u.run + item.r;
        S sum = *to;
        for (int64_t begin = second; begin < u.n && u.alike(first, begin); begin += PIECE)
            sum = combine(sum, pieces[begin / PIECE * u.run + item.r]);
        *to = sum;
    }
}

template <typename S, typename K, typename F>
static grt_status combine_sorted(const grt_run *r, const sorted_updates<K> &u, const F &combine, S *dst,
                                 const S *updates, S *pieces)
{
    combine_pieces_kernel<S, K, F>
        <<<cuda_grid(u.n * u.run), CUDA_BLOCK, 0, cuda_stream(r)>>>(u, combine, dst, updates, pieces);
    CUDA_LAUNCHED();
    if (u.n <= PIECE)
        return GRT_OK;
    combine_elements_kernel<S, K, F>
        <<<cuda_grid((u.n - 1) / PIECE * u.run), CUDA_BLOCK, 0, cuda_stream(r)>>>(u, combine, dst, pieces);
    CUDA_LAUNCHED();
    return GRT_OK;
}

#endif
