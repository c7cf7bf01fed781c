/* SPDX-License-Identifier: Apache-2.0 */
/* Running state of attention rows: limits, largest score, sum of weights, weighted values. A warp has 16
 * rows, a lane two of them, as tensor cores leave their results: rows `group` (lane / 4) and group + 8,
 * columns 2 quad (lane % 4) and the next of every eight. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_ROWS_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_ROWS_CUH

#include "backends/cuda/attention_tile.cuh"

/* Short last tiles (sequences of 197 or 257) have code for this many keys. */
enum { WARP_ROWS = 16, SHORT_TILE = 16 };

/* 2^x in one instruction. Weights below the smallest normal number are zeros. */
static __device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* True if scores are only scaled and limited to a range of keys. Others are GENERAL, in kernels of their own,
 * as their long code slows the simple case. */
static inline bool attention_scales_only(const attention_shape *s, const attention_data *d)
{
    return !d->mask && s->softcap <= 0 && (float)s->scale * LOG2E >= FLT_MIN;
}

/* A score and an element of a mask. */
static __device__ __forceinline__ float attention_masked(float score, float mask)
{
    return fmaf(attention_bounded(mask), LOG2E, score);
}
static __device__ __forceinline__ float attention_masked(float score, __half mask)
{
    return fmaf(__half2float(mask), LOG2E, score);
}
static __device__ __forceinline__ float attention_masked(float score, __nv_bfloat16 mask)
{
    return attention_masked(score, __bfloat162float(mask));
}
static __device__ __forceinline__ float attention_masked(float score, uint8_t mask)
{
    return mask ? score : -CUDART_INF_F;
}

/* PAIRS: masks may be read in pairs. AHEAD: else 16 elements of them are read before the first is used. Both
 * take registers. */
template <int SIZE, bool PAIRS = false, bool AHEAD = true> struct attention_rows {
    enum { COLUMNS = SIZE / 8 };
    int2 limits[2]; /* keys [x, y) */
    int64_t mask_at[2];
    float top[2], sum[2], result[COLUMNS][4]; /* sum: of this lane's keys */

    /* Row r of the lane, before the first key; !there: beyond the last row. */
    template <bool GENERAL>
    __device__ __forceinline__ void begin(const attention_shape &s, const attention_data &d, int64_t batch,
                                          const attention_row &row, bool there, int r)
    {
        limits[r] = there ? attention_limits(s, d.nonpad, batch, row.query) : make_int2(0, 0);
        mask_at[r] = GENERAL && there ? attention_mask_at(s, batch, row) : 0;
        top[r] = -CUDART_INF_F;
        sum[r] = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            result[c][2 * r] = result[c][2 * r + 1] = 0;
    }

    /* True if all of these keys may be looked at. */
    template <int TILE> __device__ __forceinline__ bool has_all(int tile) const
    {
        return tile >= limits[0].x && tile >= limits[1].x && tile + TILE <= limits[0].y &&
               tile + TILE <= limits[1].y;
    }

    /* add_mask for such a tile, two neighbours at once; false, with nothing done, if they do not lie so. */
    template <int TILE, class M>
    __device__ __forceinline__ bool add_mask_pairs(float factor, const M *const (&at)[2], float (*score)[4])
    {
        struct alignas(2 * sizeof(M)) pair {
            M v[2];
        };
        if (((uintptr_t)at[0] | (uintptr_t)at[1]) % sizeof(pair))
            return false;
        const bool shared = at[0] == at[1];
#pragma unroll
        for (int k = 0; k < TILE / 8; k++) {
            const pair low = *(const pair *)(at[0] + k * 8);
            pair high = low;
            if (!shared)
                high = *(const pair *)(at[1] + k * 8);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                score[k][i] = attention_masked(score[k][i] * factor, low.v[i]);
                score[k][2 + i] = attention_masked(score[k][2 + i] * factor, high.v[i]);
            }
        }
        return true;
    }

    /* Scores, times log2(e), of TILE keys with a mask that lies dense along the keys: what exporters write.
     * Rows share what they read where the mask has one row for all of them. */
    template <int TILE, class M>
    __device__ __forceinline__ void add_mask(float factor, const M *mask, float (*score)[4], int tile,
                                             int lane)
    {
        const int first = tile + 2 * (lane & 3);
        const M *at[2] = {mask + mask_at[0] + first, mask + mask_at[1] + first};
        if constexpr (PAIRS)
            if (has_all<TILE>(tile)) {
                if (!add_mask_pairs<TILE>(factor, at, score))
                    add_mask_singles<TILE, true>(factor, at, score, first);
                return;
            }
        if constexpr (AHEAD)
            add_mask_singles<TILE, false>(factor, at, score, first);
        else
            add_mask_in_turn<TILE>(factor, at, score, first);
    }

    /* add_mask, element by element. */
    template <int TILE, class M>
    __device__ __forceinline__ void add_mask_in_turn(float factor, const M *const (&at)[2], float (*score)[4],
                                                     int first)
    {
        const bool shared = mask_at[0] == mask_at[1];
#pragma unroll
        for (int k = 0; k < TILE / 8; k++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int j = k * 8 + i;
                M value = {};
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const bool in = first + j >= limits[r].x && first + j < limits[r].y;
                    if (in && (r == 0 || !shared || limits[0].y != limits[1].y || limits[0].x != limits[1].x))
                        value = at[r][j];
                    score[k][2 * r + i] =
                        in ? attention_masked(score[k][2 * r + i] * factor, value) : -CUDART_INF_F;
                }
            }
    }

    /* add_mask, element by element, many of which are read before the first is used. ALL: the tile has_all.
     */
    template <int TILE, bool ALL, class M>
    __device__ __forceinline__ void add_mask_singles(float factor, const M *const (&at)[2], float (*score)[4],
                                                     int first)
    {
        enum { KEYS = TILE / 8, STEP = KEYS < 4 ? KEYS : 4 };
        const auto in = [&](int j, int r) {
            return ALL || (first + j >= limits[r].x && first + j < limits[r].y);
        };
        const bool shared = at[0] == at[1];
#pragma unroll
        for (int begin = 0; begin < KEYS; begin += STEP) {
            M value[2][STEP][2];
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int k = 0; k < STEP; k++)
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        const int j = (begin + k) * 8 + i;
                        value[r][k][i] = M();
                        if (in(j, r) && (!ALL || r == 0 || !shared))
                            value[r][k][i] = at[r][j];
                    }
#pragma unroll
            for (int k = 0; k < STEP; k++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const int r = c >> 1, j = (begin + k) * 8 + (c & 1);
                    const M here = ALL && shared ? value[0][k][c & 1] : value[r][k][c & 1];
                    float &x = score[begin + k][c];
                    x = in(j, r) ? attention_masked(x * factor, here) : -CUDART_INF_F;
                }
        }
    }

    /* False for masks of other forms, and scores that are capped. */
    template <int TILE>
    __device__ __forceinline__ bool weigh_dense(const attention_shape &s, const void *mask, float (*score)[4],
                                                int tile, int lane)
    {
        if (!mask || s.softcap > 0 || s.mask_strides[3] != 1)
            return false;
        const float factor = (float)s.scale * LOG2E;
        switch (s.mask_dtype) {
        case GRT_DTYPE_FLOAT:
            add_mask<TILE>(factor, (const float *)mask, score, tile, lane);
            return true;
        case GRT_DTYPE_FLOAT16:
            add_mask<TILE>(factor, (const __half *)mask, score, tile, lane);
            return true;
        case GRT_DTYPE_BFLOAT16:
            add_mask<TILE>(factor, (const __nv_bfloat16 *)mask, score, tile, lane);
            return true;
        case GRT_DTYPE_BOOL:
            add_mask<TILE>(factor, (const uint8_t *)mask, score, tile, lane);
            return true;
        default:
            return false;
        }
    }

    /* Scores, times log2(e), of TILE keys whose biases, likewise, are the same for all rows. */
    template <int TILE>
    __device__ __forceinline__ void add_biases(float factor, const float *bias, float (*score)[4], int tile,
                                               int lane)
    {
        const int quad = lane & 3;
        const bool all = has_all<TILE>(tile);
#pragma unroll
        for (int k = 0; k < TILE / 8; k++) {
            const float2 pair = *(const float2 *)(bias + k * 8 + 2 * quad);
#pragma unroll
            for (int c = 0; c < 4; c++)
                score[k][c] = fmaf(score[k][c], factor, c & 1 ? pair.y : pair.x);
        }
        if (!all)
            limit<TILE>(score, tile, quad);
    }

    /* Keys beyond a row's limits are hidden. */
    template <int TILE> __device__ __forceinline__ void limit(float (*score)[4], int tile, int quad)
    {
#pragma unroll
        for (int k = 0; k < TILE / 8; k++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int r = c >> 1, j = k * 8 + 2 * quad + (c & 1);
                score[k][c] = j >= limits[r].x - tile && j < limits[r].y - tile ? score[k][c] : -CUDART_INF_F;
            }
    }

    /* Scores of TILE keys, times `factor`, become weights; earlier results are rescaled. */
    template <int TILE> __device__ __forceinline__ void become_weights(float factor, float (*score)[4])
    {
        enum { KEYS = TILE / 8 };
        float highest[2] = {-CUDART_INF_F, -CUDART_INF_F};
#pragma unroll
        for (int k = 0; k < KEYS; k++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                highest[c >> 1] = fmaxf(highest[c >> 1], score[k][c]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            highest[r] = fmaxf(highest[r], __shfl_xor_sync(0xffffffffu, highest[r], 1));
            highest[r] = fmaxf(highest[r], __shfl_xor_sync(0xffffffffu, highest[r], 2));
            highest[r] = fmaxf(top[r], highest[r] * factor);
            const float base = highest[r] == -CUDART_INF_F ? 0.0f : highest[r]; /* no key yet */
            const float shrink = power_of_two(top[r] - base);
            top[r] = highest[r];
            float part = 0;
#pragma unroll
            for (int k = 0; k < KEYS; k++) {
                score[k][2 * r] = power_of_two(fmaf(score[k][2 * r], factor, -base));
                score[k][2 * r + 1] = power_of_two(fmaf(score[k][2 * r + 1], factor, -base));
                part += score[k][2 * r] + score[k][2 * r + 1];
            }
            sum[r] = sum[r] * shrink + part;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                result[c][2 * r] *= shrink;
                result[c][2 * r + 1] *= shrink;
            }
        }
    }

    /* Scores of TILE keys from `tile` on become weights, zero for masked keys. BIASED: `bias` is the mask, in
     * shared memory, as all rows have the same. */
    template <int TILE, bool GENERAL, bool BIASED = false>
    __device__ __forceinline__ void weigh(const attention_shape &s, const void *mask, float (*score)[4],
                                          int tile, int lane, const float *bias = NULL)
    {
        enum { KEYS = TILE / 8 };
        const int quad = lane & 3;
        /* Scores are scaled while they become weights; with limits or masks of all kinds, before. */
        const float factor = GENERAL ? 1.0f : (float)s.scale * LOG2E;
        if (BIASED) {
            add_biases<TILE>((float)s.scale * LOG2E, bias, score, tile, lane);
        } else if (GENERAL && !weigh_dense<TILE>(s, mask, score, tile, lane)) {
#pragma unroll
            for (int k = 0; k < KEYS; k++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    score[k][c] = attention_score(s, mask, mask_at[c >> 1], score[k][c],
                                                  tile + k * 8 + 2 * quad + (c & 1), limits[c >> 1].x,
                                                  limits[c >> 1].y);
        } else if (!GENERAL && (tile < limits[0].x || tile < limits[1].x || tile + TILE > limits[0].y ||
                                tile + TILE > limits[1].y)) {
            limit<TILE>(score, tile, quad);
        }
        become_weights<TILE>(factor, score);
    }

    /* Factor of the final normalisation. Called by all lanes of the warp. */
    __device__ __forceinline__ float inverse(int r)
    {
        float all = sum[r];
        all += __shfl_xor_sync(0xffffffffu, all, 1);
        all += __shfl_xor_sync(0xffffffffu, all, 2);
        return all > 0 ? __fdividef(1, all) : all == 0 ? 0.0f : all; /* NaN stays */
    }
};

#endif
