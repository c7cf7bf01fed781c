/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of 16 queries with all keys in a warp's registers, first as they are, then as shares
 * (rounded_attention.cu). */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_SCORES_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_SCORES_CUH

#include "backends/cuda/rounded_room.cuh"

namespace
{

/* A lane's part of 16 queries as tensor cores read them; zeros where there are none. */
template <int DEPTH> struct rounded_queries {
    uint32_t word[DEPTH][4];
    int32_t sum[2]; /* of both rows, times the keys' zero point */

    __device__ __forceinline__ void load(const cuda_rounded_attention &a, const cuda_rounded_tables &tables,
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
                    w = rounded_look_up(tables.q, w);
                word[s / 2][s % 2 * 2 + r] = w;
                total = __dp4a(w, 0x01010101u, total);
            }
            total += __shfl_xor_sync(ALL_LANES, total, 1);
            total += __shfl_xor_sync(ALL_LANES, total, 2);
            sum[r] = (int32_t)total * a.k_zero;
        }
    }
};

/* Sums of 16 queries with the keys of a chunk. */
template <int DEPTH>
__device__ __forceinline__ void multiply_keys(const rounded_queries<DEPTH> &q, const uint8_t *keys, int chunk,
                                              int32_t (&sum)[TILES][4])
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[t][i] = 0;
#pragma unroll
    for (int step = 0; step < DEPTH; step++)
#pragma unroll
        for (int t = 0; t < TILES; t += 2) {
            uint32_t b[4];
            load_matrices(
                b, keys + (chunk * CHUNK + (t + lane / 16) * 8 + lane % 8) * rounded_room<DEPTH>::KEY_ROW +
                       step * 32 + lane / 8 % 2 * 16);
            rounded_multiply(sum[t], q.word[step], b[0], b[1]);
            rounded_multiply(sum[t + 1], q.word[step], b[2], b[3]);
        }
}

/* Where the mask of a lane's two rows begins; NULL: they are not there. */
struct rounded_mask {
    const uint8_t *row[2];

    __device__ __forceinline__ rounded_mask(const cuda_rounded_attention &a, int batch, int head, int first)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int query = first + (int)(threadIdx.x % LANES) / 4 + 8 * r;
            row[r] = a.mask && query < a.queries
                         ? a.mask + batch * a.of_mask.batch + head * a.of_mask.head + query * a.of_mask.token
                         : NULL;
        }
    }
    /* Of keys `key` and the next one, which is even and may be behind the last. */
    __device__ __forceinline__ uint32_t pair(const cuda_rounded_attention &a, int r, int key) const
    {
        if (!row[r] || key >= a.keys)
            return 0;
        if (a.mask_pairs)
            return *(const uint16_t *)(row[r] + key) ^ (a.flip_mask & 0xFFFF);
        const uint32_t first = row[r][key * a.mask_key],
                       second = key + 1 < a.keys ? row[r][(key + 1) * a.mask_key] : 0;
        return (first | second << 8) ^ (a.flip_mask & 0xFFFF);
    }
};

/* Levels of a lane's two queries: for each chunk of keys two words a row. */
template <int CHUNKS> struct rounded_scores {
    uint32_t word[CHUNKS][4]; /* row 0 and 1 of the first 16 keys, then of the others */
    int32_t largest[2];

    /* Keys of a word: two of eight, and of the next eight. */
    static __device__ __forceinline__ int key_of(int chunk, int half, int i)
    {
        return chunk * CHUNK + half * 16 + i / 2 * 8 + (int)(threadIdx.x & 3) * 2 + i % 2;
    }
    static __device__ __forceinline__ uint32_t known(const cuda_rounded_attention &a, int chunk, int half)
    {
        uint32_t bytes = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            bytes |= key_of(chunk, half, i) < a.keys ? 0xFFu << (8 * i) : 0;
        return bytes;
    }

    template <bool MASKED, int DEPTH>
    __device__ __forceinline__ void round_chunk(const cuda_rounded_attention &a, const int32_t *offsets,
                                                const rounded_queries<DEPTH> &q, const rounded_mask &mask,
                                                int chunk, const int32_t (&sum)[TILES][4])
    {
        int32_t level[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int key = chunk * CHUNK + t * 8 + (int)(threadIdx.x & 3) * 2;
            const int2 offset = *(const int2 *)(offsets + key);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t masks = MASKED ? mask.pair(a, r, key) : 0;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int32_t whole = sum[t][2 * r + i] - (i ? offset.y : offset.x) - q.sum[r];
                    float v = __fmul_rn((float)whole, a.score_scale);
                    if constexpr (MASKED) {
                        const float of_mask = (float)((int32_t)level_in(masks, i) - a.mask_zero);
                        v = __fadd_rn(__fmul_rn(rounded_limited(v, a.score_zero), a.sum_score),
                                      __fmul_rn(of_mask, a.sum_mask));
                    }
                    level[t][2 * r + i] = rounded_level(v, MASKED ? a.sum_zero : a.score_zero);
                    if (chunk * CHUNK + CHUNK > a.keys && key + i >= a.keys)
                        level[t][2 * r + i] = 0;
                }
                largest[r] = __vimax3_s32(largest[r], level[t][2 * r], level[t][2 * r + 1]);
            }
        }
#pragma unroll
        for (int w = 0; w < 4; w++)
            word[chunk][w] =
                rounded_word(level[w / 2 * 2][w % 2 * 2], level[w / 2 * 2][w % 2 * 2 + 1],
                             level[w / 2 * 2 + 1][w % 2 * 2], level[w / 2 * 2 + 1][w % 2 * 2 + 1]);
    }

    __device__ __forceinline__ void find_largest()
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            largest[r] = max(largest[r], __shfl_xor_sync(ALL_LANES, largest[r], 1));
            largest[r] = min(max(largest[r], __shfl_xor_sync(ALL_LANES, largest[r], 2)), 255);
        }
    }

    /* What exponentials are multiplied by: of the sum of units, which is exact. Levels behind the last key
     * are 0 and were summed too. */
    __device__ __forceinline__ float factor(const cuda_rounded_attention &a, const int32_t *units,
                                            int r) const
    {
        const int32_t *from = units + (255 - largest[r]);
        uint32_t part = 0, behind = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c * CHUNK >= a.keys)
                break;
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    part += (uint32_t)from[level_in(word[c][2 * half + r], i)];
            if (c * CHUNK + CHUNK > a.keys)
                for (int half = 0; half < 2; half++)
                    behind += __popc(~known(a, c, half)) / 8;
        }
        unsigned long long sum = part - behind * (uint32_t)from[0];
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        return (float)(16777216.0 / ((double)(int64_t)sum * (double)a.share_scale));
    }

    /* Levels of shares in place of those of scores; 0 behind the last key. Returns their sum in the row. */
    __device__ __forceinline__ uint32_t share(const cuda_rounded_attention &a, const cuda_rounded_tables &e,
                                              int r)
    {
        const float by = factor(a, e.units, r), *from = e.of + (255 - largest[r]);
        uint32_t sum = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c * CHUNK >= a.keys)
                break;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t &w = word[c][2 * half + r];
                int32_t level[4];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    level[i] = rounded_level(__fmul_rn(from[level_in(w, i)], by), a.share_zero);
                w = rounded_word(level[0], level[1], level[2], level[3]);
                if (a.has_table)
                    w = rounded_look_up(e.share, w);
                if (c * CHUNK + CHUNK > a.keys)
                    w &= known(a, c, half);
                sum = __dp4a(w, 0x01010101u, sum);
            }
        }
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        return sum + __shfl_xor_sync(ALL_LANES, sum, 2);
    }
};

} // namespace
#endif
