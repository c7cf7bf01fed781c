/* SPDX-License-Identifier: Apache-2.0 */
/* A warp's 16 queries in registers, their sums with a chunk of keys, and what a mask adds to these
 * (rounded_attention.cu). */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_QUERIES_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_QUERIES_CUH

#include "backends/cuda/rounded_room.cuh"

namespace
{

/* A lane's part of 16 queries as tensor cores read them; zeros where there are none. */
template <int DEPTH> struct rounded_queries {
    uint32_t word[DEPTH][4];
    int32_t sum[2]; /* of both rows, times the keys' zero point */

    __device__ __forceinline__ void load(const cuda_rounded_attention &a, const uint8_t *table,
                                         const uint8_t *from, int first)
    {
        const int lane = threadIdx.x % LANES;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = first + lane / 4 + 8 * r;
            uint32_t total = 0;
#pragma unroll
            for (int s = 0; s < DEPTH * 2; s++) {
                const uint8_t *at = from + row * a.of_q.token + s * 16 + lane % 4 * 4;
                uint32_t w = row < a.queries ? *(const uint32_t *)at ^ a.flip_q : 0;
                if (a.has_q_table)
                    w = rounded_look_up(table, w);
                word[s / 2][s % 2 * 2 + r] = w;
                total = __dp4a(w, 0x01010101u, total);
            }
            total += __shfl_xor_sync(ALL_LANES, total, 1);
            total += __shfl_xor_sync(ALL_LANES, total, 2);
            sum[r] = (int32_t)total * a.k_zero;
        }
    }
};

/* Sums of 16 queries with the keys of a chunk, behind `starts`. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void multiply_keys(const rounded_queries<DEPTH> &q, const uint8_t *keys,
                                              const int32_t *starts, int chunk, int32_t (&sum)[TILES][4])
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const int2 start = *(const int2 *)(starts + chunk * CHUNK + t * 8 + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[t][i] = (i % 2 ? start.y : start.x) - q.sum[i / 2];
    }
#pragma unroll
    for (int step = 0; step < DEPTH; step++)
#pragma unroll
        for (int t = 0; t < TILES; t += 2) {
            uint32_t b[4];
            load_matrices(b, keys +
                                 (chunk * CHUNK + (t + lane / 16) * 8 + lane % 8) *
                                     rounded_room<DEPTH, OWN>::KEY_ROW +
                                 step * 32 + lane / 8 % 2 * 16);
            rounded_multiply(sum[t], q.word[step], b[0], b[1]);
            rounded_multiply(sum[t + 1], q.word[step], b[2], b[3]);
        }
}

/* Masks of no scores, of keys, or of each score: two neighbours read at once, or any. */
enum rounded_masks { NO_MASK, KEY_MASK, PAIR_MASK, SCORE_MASK };

/* What the mask adds to a lane's two rows, in units of the sums'. */
template <int MASKS> struct rounded_mask {
    const uint8_t *row[2]; /* of a query that is there */
    const float *of_places;
    int missing;

    __device__ __forceinline__ rounded_mask(const cuda_rounded_attention &a, const uint8_t *from,
                                            const float *places, int none, int first)
        : of_places(places), missing(none)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int query = first + (int)(threadIdx.x % LANES) / 4 + 8 * r;
            row[r] = from + min(query, a.queries - 1) * a.of_mask.token;
        }
    }
    /* Levels of key `key` and the next one; in front of the first one any. */
    __device__ __forceinline__ uint32_t pair(const cuda_rounded_attention &a, int r, int key) const
    {
        if constexpr (MASKS == PAIR_MASK)
            return *(const uint16_t *)(row[r] + max(key, 0)) ^ (a.flip_mask & 0xFFFF);
        const uint32_t first = row[r][max(key, 0) * a.mask_key],
                       second = row[r][max(key + 1, 0) * a.mask_key];
        return (first | second << 8) ^ (a.flip_mask & 0xFFFF);
    }
    /* Of an even place and the next one. */
    __device__ __forceinline__ float2 numbers(const cuda_rounded_attention &a, int r, int place) const
    {
        if constexpr (MASKS == KEY_MASK)
            return *(const float2 *)(of_places + place);
        const uint32_t levels = pair(a, r, place - missing);
        return make_float2(__fmul_rn(rounded_number((int32_t)(levels & 0xFF), a.mask_zero), a.sum_mask),
                           __fmul_rn(rounded_number((int32_t)(levels >> 8 & 0xFF), a.mask_zero), a.sum_mask));
    }
};

} // namespace
#endif
