/* SPDX-License-Identifier: Apache-2.0 */
/* See rounded_attention.h. A warp has 16 queries and all keys: levels of its scores stay in registers, first
 * as they are, then their exponentials, then shares, four a word. A lane has the scores of two queries with
 * two of eight keys, which is how the second product reads its left factor if values lie in that order of
 * keys. Look-ups of exponentials would be most of the time if lanes met in banks: each has a table of its
 * own, where registers and shared memory suffice. */
#include "backends/cuda/rounded_attention.h"

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/rounded_scores.cuh"
#include "backends/cuda/shared_limit.h"

#include <cmath>

namespace
{

/* 16 rows of the result, 32 numbers at once. */
template <int DEPTH, int CHUNKS, bool OWN>
__device__ __forceinline__ void multiply_values(const cuda_rounded_attention &a,
                                                const rounded_room<DEPTH, OWN> &room, const uint8_t *shared,
                                                const rounded_scores<CHUNKS, OWN> &shares,
                                                const uint32_t (&share_sum)[2], uint8_t *to, int first)
{
    const int lane = threadIdx.x % LANES;
    const uint8_t *values = shared + room.values_at();
    const int32_t *offsets = (const int32_t *)(shared + room.value_offsets_at());
    for (int group = 0; group < DEPTH; group++) {
        int32_t sum[TILES][4] = {};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c >= room.chunks)
                break;
#pragma unroll
            for (int t = 0; t < TILES; t += 2) {
                uint32_t b[4];
                load_matrices(b, values + (group * 32 + (t + lane / 16) * 8 + lane % 8) * room.value_row +
                                     c * CHUNK + lane / 8 % 2 * 16);
                rounded_multiply(sum[t], shares.word[c], b[0], b[1]);
                rounded_multiply(sum[t + 1], shares.word[c], b[2], b[3]);
            }
        }
        const int d = group * 32 + lane % 4 * 8;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = first + lane / 4 + 8 * r;
            int32_t level[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                level[i] = rounded_level(__fmul_rn((float)(sum[i / 2][2 * r + i % 2] - offsets[d + i] -
                                                           (int32_t)share_sum[r] * a.v_zero),
                                                   a.y_scale),
                                         a.y_zero);
            const uint2 words = make_uint2(rounded_word(level[0], level[1], level[2], level[3]) ^ a.flip_y,
                                           rounded_word(level[4], level[5], level[6], level[7]) ^ a.flip_y);
            uint8_t *at = to + row * a.of_y.token + d;
            if (row < a.queries && a.y_eights)
                *(uint2 *)at = words;
            else if (row < a.queries)
                for (int i = 0; i < 8; i++)
                    at[i] = (uint8_t)((i < 4 ? words.x : words.y) >> 8 * (i % 4));
        }
    }
}

template <int DEPTH, bool OWN>
__device__ __forceinline__ void
load_head(const cuda_rounded_attention &a, const rounded_room<DEPTH, OWN> &room,
          const cuda_rounded_levels &levels, int batch, int head, uint8_t *shared)
{
    load_keys(a, room, levels.k, a.k + batch * a.of_k.batch + head * a.of_k.head, shared);
    load_values(a, room, a.v + batch * a.of_v.batch + head * a.of_v.head, shared);
}

/* A few blocks for each head. */
template <int DEPTH, int CHUNKS, bool OWN, int MASKS>
__global__ void __launch_bounds__(MOST_THREADS, 2)
    attend_rounded(const __grid_constant__ cuda_rounded_attention a, int blocks)
{
    extern __shared__ uint4 rounded_memory[];
    __shared__ cuda_rounded_levels levels;
    uint8_t *shared = (uint8_t *)rounded_memory;
    const rounded_room<DEPTH, OWN> room(a.keys);
    const int item = blockIdx.x / blocks, batch = item / a.heads, head = item % a.heads,
              first = (int)(blockIdx.x % blocks * (blockDim.x / LANES) + threadIdx.x / LANES) * ROWS;
    overlap_let_next_begin();
    load_exponentials<DEPTH, OWN>(a, shared);
    for (int i = threadIdx.x; i < (int)(sizeof levels / sizeof(uint32_t)); i += blockDim.x)
        ((uint32_t *)&levels)[i] = ((const uint32_t *)&a.tables->levels)[i];
    __syncthreads();
    overlap_wait();
    const uint8_t *masks = a.mask + batch * a.of_mask.batch + head * a.of_mask.head;
    load_head(a, room, levels, batch, head, shared);
    if constexpr (MASKS == KEY_MASK)
        load_masks(a, room, masks, shared);
    rounded_queries<DEPTH> q;
    q.load(a, levels.q, a.q + batch * a.of_q.batch + head * a.of_q.head, first);
    __syncthreads();
    sum_values(a, room, shared);
    __syncthreads();
    if (first >= a.queries)
        return;
    rounded_scores<CHUNKS, OWN> scores;
    scores.largest[0] = scores.largest[1] = 0;
    const rounded_mask<MASKS> mask(a, masks, (const float *)(shared + room.key_masks_at()), room.missing,
                                   first);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        if (c >= room.chunks)
            break;
        int32_t sum[TILES][4];
        multiply_keys<DEPTH, OWN>(q, shared + room.KEYS_AT, (const int32_t *)(shared + room.key_starts_at()),
                                  c, sum);
        scores.template round_chunk<MASKS, DEPTH>(a, mask, c, room.missing, sum);
    }
    scores.find_largest();
    uint32_t share_sum[2];
    scores.share(a, (const uint32_t *)shared, room.chunks, room.missing, levels.share, share_sum);
    multiply_values(a, room, shared, scores, share_sum, a.y + batch * a.of_y.batch + head * a.of_y.head,
                    first);
}

template <int DEPTH, int CHUNKS, bool OWN, int MASKS>
grt_status launch_rounded(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    const auto kernel = attend_rounded<DEPTH, CHUNKS, OWN, MASKS>;
    const int tiles = (a->queries + ROWS - 1) / ROWS, blocks = (tiles + MOST_WARPS - 1) / MOST_WARPS,
              warps = (tiles + blocks - 1) / blocks;
    CUDA_TRY(cuda_allow_shared((const void *)kernel));
    CUDA_TRY(overlap_launch(overlaps, kernel, (unsigned)(blocks * a->batch * a->heads), warps * LANES,
                            (size_t)rounded_room<DEPTH, OWN>(a->keys).bytes(), stream, *a, blocks));
    return GRT_OK;
}

template <int DEPTH, int CHUNKS, bool OWN>
grt_status launch_masks(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    if (!a->mask)
        return launch_rounded<DEPTH, CHUNKS, OWN, NO_MASK>(a, overlaps, stream);
    if (a->of_mask.token == 0)
        return launch_rounded<DEPTH, CHUNKS, OWN, KEY_MASK>(a, overlaps, stream);
    return a->mask_pairs ? launch_rounded<DEPTH, CHUNKS, OWN, PAIR_MASK>(a, overlaps, stream)
                         : launch_rounded<DEPTH, CHUNKS, OWN, SCORE_MASK>(a, overlaps, stream);
}

/* Bytes of shared memory that blocks of every device can have. */
enum { ROUNDED_ROOM = (96 << 10) - (int)sizeof(cuda_rounded_levels) };

template <int DEPTH>
grt_status launch_depth(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    const bool own = rounded_room<DEPTH, true>(a->keys).bytes() <= ROUNDED_ROOM;
    if (own && a->keys <= 4 * CHUNK)
        return launch_masks<DEPTH, 4, true>(a, overlaps, stream);
    return own && a->keys <= 7 * CHUNK
               ? launch_masks<DEPTH, 7, true>(a, overlaps, stream)
               : launch_masks<DEPTH, ROUNDED_KEYS / CHUNK, false>(a, overlaps, stream);
}

} // namespace

bool cuda_rounded_attention_fits(int64_t size, int64_t keys)
{
    if (keys <= 0 || keys > ROUNDED_KEYS)
        return false;
    return size == 32   ? rounded_room<1, false>((int)keys).bytes() <= ROUNDED_ROOM
           : size == 64 ? rounded_room<2, false>((int)keys).bytes() <= ROUNDED_ROOM
                        : size == 128 && rounded_room<4, false>((int)keys).bytes() <= ROUNDED_ROOM;
}

bool cuda_rounded_attention_is_bounded(const cuda_rounded_attention *a, int64_t size, int64_t keys)
{
    const float largest = 4e6f, levels = 256.0f, products = levels * levels;
    return (float)size * products * a->score_scale < largest &&
           levels * (fabsf(a->sum_score) + fabsf(a->sum_mask)) < largest && a->share_scale * largest > 1.0f &&
           (float)keys * products * a->y_scale < largest;
}

grt_status cuda_rounded_attention_enqueue(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    if (a->size == 32)
        return launch_depth<1>(a, overlaps, stream);
    return a->size == 64 ? launch_depth<2>(a, overlaps, stream) : launch_depth<4>(a, overlaps, stream);
}
