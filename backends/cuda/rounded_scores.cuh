/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of 16 queries with all keys in a warp's registers, first as they are, then as shares
 * (rounded_attention.cu). */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_SCORES_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_SCORES_CUH

#include "backends/cuda/rounded_queries.cuh"

namespace
{

/* A word of shared memory. */
__device__ __forceinline__ uint32_t word_at(uint32_t address)
{
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
    return word;
}

/* A lane's levels of scores, a register each, and in their place exponentials once these were looked up. */
template <int CHUNKS, bool OWN> struct rounded_store {
    int32_t of[CHUNKS][TILES][4];

    __device__ __forceinline__ void put(int c, const int32_t (&level)[TILES][4])
    {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                of[c][t][i] = level[t][i];
    }
    __device__ __forceinline__ uint32_t look_up(int c, int t, int i, uint32_t from)
    {
        const uint32_t e = word_at(from - (uint32_t)of[c][t][i] * (LANES * sizeof(uint32_t)));
        of[c][t][i] = (int32_t)e;
        return e;
    }
    __device__ __forceinline__ void hide(int c, int t, int i)
    {
        of[c][t][i] = BITS_OF_UNITS;
    }
    __device__ __forceinline__ uint32_t again(int c, int t, int i, uint32_t) const
    {
        return (uint32_t)of[c][t][i];
    }
};

/* Where there are more, four in a word, looked up twice. */
template <int CHUNKS> struct rounded_store<CHUNKS, false> {
    uint32_t word[CHUNKS][4]; /* row 0 and 1 of the first 16 keys, then of the others */

    __device__ __forceinline__ void put(int c, const int32_t (&level)[TILES][4])
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const int t = w / 2 * 2, i = w % 2 * 2;
            word[c][w] = rounded_word(level[t][i], level[t][i + 1], level[t + 1][i], level[t + 1][i + 1]);
        }
    }
    __device__ __forceinline__ uint32_t look_up(int c, int t, int i, uint32_t from) const
    {
        return word_at(from -
                       level_in(word[c][t / 2 * 2 + i / 2], t % 2 * 2 + i % 2) * (uint32_t)sizeof(uint32_t));
    }
    __device__ __forceinline__ void hide(int, int, int)
    {
    }
    __device__ __forceinline__ uint32_t again(int c, int t, int i, uint32_t from) const
    {
        return look_up(c, t, i, from);
    }
};

/* Levels of a lane's two queries with two of eight keys. OWN: its exponentials are in a bank of its own. */
template <int CHUNKS, bool OWN> struct rounded_scores {
    rounded_store<CHUNKS, OWN> scores;
    uint32_t word[CHUNKS][4]; /* of shares: row 0 and 1 of the first 16 keys, then of the others */
    int32_t largest[2];

    static __device__ __forceinline__ int place_of(int chunk, int tile)
    {
        return chunk * CHUNK + tile * 8 + (int)(threadIdx.x & 3) * 2;
    }

    template <int MASKS, int DEPTH>
    __device__ __forceinline__ void round_chunk(const cuda_rounded_attention &a,
                                                const rounded_mask<MASKS> &mask, int chunk, int missing,
                                                const int32_t (&sum)[TILES][4])
    {
        int32_t level[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int place = place_of(chunk, t);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float2 masks = make_float2(0, 0);
                if constexpr (MASKS != NO_MASK)
                    masks = mask.numbers(a, r, place);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int32_t &l = level[t][2 * r + i];
                    const float v = rounded_sums<DEPTH>::number(sum[t][2 * r + i]);
                    l = rounded_limited(__fmul_rn(v, a.score_scale), a.score_zero);
                    if constexpr (MASKS != NO_MASK)
                        l = rounded_limited(__fadd_rn(__fmul_rn(rounded_number(l, a.score_zero), a.sum_score),
                                                      i ? masks.y : masks.x),
                                            a.sum_zero);
                    if (chunk == 0 && place + i < missing)
                        l = 0;
                }
                largest[r] = __vimax3_s32(largest[r], level[t][2 * r], level[t][2 * r + 1]);
            }
        }
        scores.put(chunk, level);
    }

    __device__ __forceinline__ void find_largest()
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            largest[r] = max(largest[r], __shfl_xor_sync(ALL_LANES, largest[r], 1));
            largest[r] = max(largest[r], __shfl_xor_sync(ALL_LANES, largest[r], 2));
        }
    }

    /* Where a lane finds the exponential of level 0 in row r; those of others are in front of it. */
    __device__ __forceinline__ uint32_t exponentials(const uint32_t *table, int r) const
    {
        return (uint32_t)__cvta_generic_to_shared(OWN ? table + largest[r] * LANES + threadIdx.x % LANES
                                                      : table + largest[r]);
    }

    /* Sums of units of both rows, without what is in front of the keys. */
    __device__ __forceinline__ void sum_units(const uint32_t *table, int chunks, int missing,
                                              unsigned long long (&sum)[2])
    {
        const uint32_t from[2] = {exponentials(table, 0), exponentials(table, 1)};
        uint32_t part[2] = {0, 0};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c >= chunks)
                break;
#pragma unroll
            for (int t = 0; t < TILES; t++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    uint32_t e[2];
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        e[i] = scores.look_up(c, t, 2 * r + i, from[r]);
                        if (c == 0 && place_of(c, t) + i < missing) {
                            scores.hide(c, t, 2 * r + i);
                            e[i] = BITS_OF_UNITS;
                        }
                    }
                    part[r] += e[0] + e[1];
                }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] = part[r] - (uint32_t)chunks * (2 * TILES) * (uint32_t)BITS_OF_UNITS;
            sum[r] += __shfl_xor_sync(ALL_LANES, sum[r], 1);
            sum[r] += __shfl_xor_sync(ALL_LANES, sum[r], 2);
        }
    }

    /* What units are multiplied by. Lanes of a row share its division: the even ones have that of row 0. */
    static __device__ __forceinline__ void
    find_factors(const cuda_rounded_attention &a, const unsigned long long (&sum)[2], float (&factor)[2])
    {
        const unsigned long long mine = threadIdx.x % 2 ? sum[1] : sum[0];
        const float by = (float)(8388608.0 / ((double)(int64_t)mine * (double)a.share_scale));
#pragma unroll
        for (int r = 0; r < 2; r++)
            factor[r] = __shfl_sync(ALL_LANES, by, (threadIdx.x % LANES & ~1) + r);
    }

    /* Levels of shares; 0 in front of the keys. Their sums in both rows. */
    __device__ __forceinline__ void share(const cuda_rounded_attention &a, const uint32_t *table, int chunks,
                                          int missing, const uint8_t *levels, uint32_t (&share_sum)[2])
    {
        unsigned long long sum[2];
        float factor[2], by[2];
        sum_units(table, chunks, missing, sum);
        find_factors(a, sum, factor);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            share_sum[r] = 0;
            by[r] = __fmul_rn(factor[r], 1.0f / 8388608.0f);
        }
        const uint32_t from[2] = {exponentials(table, 0), exponentials(table, 1)};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c >= chunks)
                break;
#pragma unroll
            for (int w = 0; w < 4; w++) {
                const int r = w % 2;
                int32_t level[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t e = scores.again(c, w / 2 * 2 + i / 2, 2 * r + i % 2, from[r]);
                    /* (e - 2^23) * by, which is exact before it is rounded. */
                    level[i] = rounded_level(__fmaf_rn(__uint_as_float(e), by[r], -factor[r]), a.share_zero);
                }
                uint32_t all = rounded_word(level[0], level[1], level[2], level[3]);
                if (a.has_table)
                    all = rounded_look_up(levels, all);
                if (c == 0)
                    all &= known(missing, w / 2);
                share_sum[r] = __dp4a(all, 0x01010101u, share_sum[r]);
                word[c][w] = all;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            share_sum[r] += __shfl_xor_sync(ALL_LANES, share_sum[r], 1);
            share_sum[r] += __shfl_xor_sync(ALL_LANES, share_sum[r], 2);
        }
    }

    /* Bytes of a word of the first chunk whose keys are there. */
    static __device__ __forceinline__ uint32_t known(int missing, int half)
    {
        uint32_t bytes = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            bytes |= place_of(0, half * 2 + i / 2) + i % 2 >= missing ? 0xFFu << (8 * i) : 0;
        return bytes;
    }
};

} // namespace
#endif
