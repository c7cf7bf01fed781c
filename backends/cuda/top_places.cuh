/* SPDX-License-Identifier: Apache-2.0 */
/* TopK of 64-bit numbers along long lines: order and place are more than one word. A block keeps a piece of
 * a line in registers and takes the best of it k times; then the best of what the pieces gave, until a line
 * is one piece. */
#ifndef GRT_BACKENDS_CUDA_TOP_PLACES_CUH
#define GRT_BACKENDS_CUDA_TOP_PLACES_CUH

#include "backends/cuda/line.cuh"

enum { PLACES_EACH = 8, PLACES_PIECE = PLACES_EACH * CUDA_BLOCK, PLACES_MOST = 128 };

/* The best that a thread of the block has, for all of them. */
__device__ __forceinline__ cuda_place top_of_block(cuda_place best)
{
    __shared__ cuda_place shared[CUDA_BLOCK / 32];
    best = cuda_better_of_warp(best, false);
    __syncthreads(); /* the places of the call before may still be read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = best;
    __syncthreads();
    best = shared[0];
    for (unsigned w = 1; w < blockDim.x / 32; w++)
        best = cuda_better(best, shared[w], false);
    return best;
}

struct top_round {
    cuda_lines in;     /* of the tensor */
    int64_t n, pieces; /* elements of a line, or places that are left of it; its pieces */
    int k;
    bool least;
    const cuda_place *from; /* lines of n; NULL: the tensor's elements */
    cuda_place *to;         /* lines of pieces * k; of the last round not used */
};

template <typename S>
__device__ __forceinline__ cuda_place top_place(const top_round &s, int64_t line, int64_t i, const S *in)
{
    if (i >= s.n)
        return {0, -1};
    if (s.from)
        return s.from[line * s.n + i];
    const uint64_t key = cuda_order_key<S>(in[cuda_line_base(s.in, line, s.in.n) + i * s.in.inner]);
    return {s.least ? ~key : key, i};
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    top_places_kernel(const __grid_constant__ top_round s, const S *in, S *values, int64_t *places)
{
    for (int64_t item = blockIdx.x; item < s.in.n_lines * s.pieces; item += gridDim.x) {
        const int64_t line = item / s.pieces, begin = (item - line * s.pieces) * PLACES_PIECE,
                      from = cuda_line_base(s.in, line, s.in.n), to = cuda_line_base(s.in, line, s.k);
        cuda_place mine[PLACES_EACH];
#pragma unroll
        for (int e = 0; e < PLACES_EACH; e++)
            mine[e] = top_place<S>(s, line, begin + e * CUDA_BLOCK + threadIdx.x, in);
        for (int j = 0; j < s.k; j++) {
            cuda_place best = mine[0];
#pragma unroll
            for (int e = 1; e < PLACES_EACH; e++)
                best = cuda_better(best, mine[e], false);
            best = top_of_block(best);
#pragma unroll
            for (int e = 0; e < PLACES_EACH; e++)
                mine[e].at = mine[e].at == best.at ? -1 : mine[e].at;
            if (threadIdx.x != 0)
                continue;
            if (s.pieces > 1)
                s.to[item * s.k + j] = best;
            if (s.pieces == 1 && values)
                values[to + j * s.in.inner] = in[from + best.at * s.in.inner];
            if (s.pieces == 1 && places)
                places[to + j * s.in.inner] = best.at;
        }
    }
}

static inline int64_t top_pieces(int64_t n)
{
    return (n + PLACES_PIECE - 1) / PLACES_PIECE;
}

/* Room for what two rounds select, in places. */
static inline int64_t top_places_room(const cuda_lines &in, int k)
{
    return 2 * in.n_lines * top_pieces(in.n) * k;
}

template <typename S>
static grt_status top_by_places(const grt_run *r, const cuda_lines &lines, int k, bool least, const S *in,
                                S *values, int64_t *places)
{
    cuda_place *room[2] = {(cuda_place *)r->workspace,
                           (cuda_place *)r->workspace + top_places_room(lines, k) / 2};
    top_round s = {lines, lines.n, 0, k, least, NULL, room[0]};
    do {
        s.pieces = top_pieces(s.n);
        top_places_kernel<S><<<cuda_grid(lines.n_lines * s.pieces, 1), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s, in, values, places);
        CUDA_LAUNCHED();
        s.n = s.pieces * k;
        s.from = s.to;
        s.to = s.from == room[0] ? room[1] : room[0];
    } while (s.pieces > 1);
    return GRT_OK;
}

#endif
