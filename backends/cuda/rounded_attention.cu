/* SPDX-License-Identifier: Apache-2.0 */
/* See rounded_attention.h. A warp has 16 queries and all keys: levels of its scores stay in registers, four
 * a word, first as they are, then as shares. A lane has the scores of two queries with two of eight keys,
 * which is how the second product reads its left factor if values lie in that order of keys. */
#include "backends/cuda/rounded_attention.h"

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/shared_limit.h"
#include "backends/cuda/tensor_core.cuh"

#include <cmath>

namespace
{

enum { LANES = 32, WARPS = 4, THREADS = WARPS * LANES, ROWS = 16, CHUNK = 32, PAD = 16, TILES = 4 };
#define ALL_LANES 0xffffffffu

/* c += a b of unsigned a and signed b. */
__device__ __forceinline__ void rounded_multiply(int32_t *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* A rounded result less its zero point, whose limits are those of its type. */
__device__ __forceinline__ float rounded_limited(float v, int32_t zero)
{
    return __fadd_rn(cuda_qrounded(cuda_qlimited(v, (float)-zero, (float)(255 - zero))), -12582912.0f);
}

/* The level of a number that is in the range of roundings by an addition, before limits. */
__device__ __forceinline__ int32_t rounded_level(float v, int32_t zero)
{
    return __float_as_int(cuda_qrounded(v)) + (zero - 0x4B400000);
}

/* Four levels with their limits, a's in the lowest byte. */
__device__ __forceinline__ uint32_t rounded_word(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, word;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(b), "r"(a), "r"(high));
    return word;
}

__device__ __forceinline__ uint32_t level_in(uint32_t word, int i)
{
    return word >> (8 * i) & 0xFF;
}

__device__ __forceinline__ uint32_t rounded_look_up(const uint8_t *table, uint32_t word)
{
    return table[level_in(word, 0)] | table[level_in(word, 1)] << 8 | table[level_in(word, 2)] << 16 |
           (uint32_t)table[level_in(word, 3)] << 24;
}

/* Bytes of a row, and of all rows, in shared memory. */
template <int DEPTH> struct rounded_room {
    enum { SIZE = DEPTH * 32, KEY_ROW = SIZE + PAD };
    int chunks, value_row; /* value_row: bytes */

    __host__ __device__ __forceinline__ explicit rounded_room(int keys)
        : chunks((keys + CHUNK - 1) / CHUNK), value_row(chunks * CHUNK + PAD)
    {
    }
    __host__ __device__ __forceinline__ int values_at() const
    {
        return chunks * CHUNK * KEY_ROW;
    }
    __host__ __device__ __forceinline__ int key_offsets_at() const
    {
        return values_at() + SIZE * value_row;
    }
    __host__ __device__ __forceinline__ int value_offsets_at() const
    {
        return key_offsets_at() + chunks * CHUNK * (int)sizeof(int32_t);
    }
    __host__ __device__ __forceinline__ int bytes() const
    {
        return value_offsets_at() + SIZE * (int)sizeof(int32_t);
    }
};

/* Keys as signed bytes, zeros behind them; and what is taken of a column's sums for the queries' zero point.
 */
template <int DEPTH>
__device__ __forceinline__ void load_keys(const cuda_rounded_attention &a, const rounded_room<DEPTH> &room,
                                          const cuda_rounded_tables &tables, const uint8_t *from,
                                          uint8_t *shared)
{
    enum { PARTS = DEPTH * 2 };
    int32_t *offsets = (int32_t *)(shared + room.key_offsets_at());
    const int part = threadIdx.x % PARTS;
    for (int key = threadIdx.x / PARTS; key < room.chunks * CHUNK; key += THREADS / PARTS) {
        uint4 word = make_uint4(0, 0, 0, 0);
        if (key < a.keys) {
            word = *(const uint4 *)(from + key * a.of_k.token + part * 16);
            word = make_uint4(word.x ^ a.flip_k, word.y ^ a.flip_k, word.z ^ a.flip_k, word.w ^ a.flip_k);
            if (a.has_k_table)
                word = make_uint4(rounded_look_up(tables.k, word.x), rounded_look_up(tables.k, word.y),
                                  rounded_look_up(tables.k, word.z), rounded_look_up(tables.k, word.w));
        }
        *(uint4 *)(shared + key * rounded_room<DEPTH>::KEY_ROW + part * 16) = word;
        int32_t sum = 0;
        sum = __dp4a((int32_t)word.x, 0x01010101, sum);
        sum = __dp4a((int32_t)word.y, 0x01010101, sum);
        sum = __dp4a((int32_t)word.z, 0x01010101, sum);
        sum = __dp4a((int32_t)word.w, 0x01010101, sum);
#pragma unroll
        for (int step = PARTS / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        if (part == 0)
            offsets[key] = a.q_zero * (sum - a.size * a.k_zero);
    }
}

/* The row of shared memory that has number d of all values: in such an order that the results of a lane are
 * of eight numbers side by side. */
__device__ __forceinline__ int value_row_of(int d)
{
    return (d & ~31) | (d >> 1 & 3) << 3 | (d >> 3 & 3) << 1 | (d & 1);
}

/* Values as signed bytes, turned: a word has four keys of one number, those that a lane has in its words of
 * levels. */
template <int DEPTH>
__device__ __forceinline__ void load_values(const cuda_rounded_attention &a, const rounded_room<DEPTH> &room,
                                            const uint8_t *from, uint8_t *shared)
{
    enum { WORDS = DEPTH * 8 };
    uint8_t *values = shared + room.values_at();
    for (int i = threadIdx.x; i < room.chunks * 8 * WORDS; i += THREADS) {
        const int column = i % WORDS, lane = i / WORDS % 4, group = i / (WORDS * 4);
        uint32_t row[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int key = group * 16 + lane * 2 + k % 2 + k / 2 * 8;
            row[k] =
                key < a.keys ? *(const uint32_t *)(from + key * a.of_v.token + column * 4) ^ a.flip_v : 0;
        }
        const uint32_t low[2] = {__byte_perm(row[0], row[1], 0x5140), __byte_perm(row[2], row[3], 0x5140)},
                       high[2] = {__byte_perm(row[0], row[1], 0x7362), __byte_perm(row[2], row[3], 0x7362)};
        const uint32_t turned[4] = {__byte_perm(low[0], low[1], 0x5410), __byte_perm(low[0], low[1], 0x7632),
                                    __byte_perm(high[0], high[1], 0x5410),
                                    __byte_perm(high[0], high[1], 0x7632)};
#pragma unroll
        for (int k = 0; k < 4; k++)
            *(uint32_t *)(values + value_row_of(column * 4 + k) * room.value_row + group * 16 + lane * 4) =
                turned[k];
    }
}

/* What is taken of a result for the zero point of shares. All values are in shared memory. */
template <int DEPTH>
__device__ __forceinline__ void sum_values(const cuda_rounded_attention &a, const rounded_room<DEPTH> &room,
                                           uint8_t *shared)
{
    int32_t *offsets = (int32_t *)(shared + room.value_offsets_at());
    for (int d = threadIdx.x / LANES; d < rounded_room<DEPTH>::SIZE; d += WARPS) {
        const uint32_t *row =
            (const uint32_t *)(shared + room.values_at() + value_row_of(d) * room.value_row);
        int32_t sum = 0;
        for (int i = threadIdx.x % LANES; i < room.chunks * CHUNK / 4; i += LANES)
            sum = __dp4a((int32_t)row[i], 0x01010101, sum);
        sum = __reduce_add_sync(ALL_LANES, sum);
        if (threadIdx.x % LANES == 0)
            offsets[d] = a.read_zero * (sum - a.keys * a.v_zero);
    }
}

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

/* 16 rows of the result, 32 numbers at once. */
template <int DEPTH, int CHUNKS>
__device__ __forceinline__ void
multiply_values(const cuda_rounded_attention &a, const rounded_room<DEPTH> &room, const uint8_t *shared,
                const rounded_scores<CHUNKS> &shares, const int32_t (&share_sum)[2], uint8_t *to, int first)
{
    const int lane = threadIdx.x % LANES;
    const uint8_t *values = shared + room.values_at();
    const int32_t *offsets = (const int32_t *)(shared + room.value_offsets_at());
    for (int group = 0; group < DEPTH; group++) {
        int32_t sum[TILES][4] = {};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (c * CHUNK >= a.keys)
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
                level[i] = rounded_level(
                    __fmul_rn((float)(sum[i / 2][2 * r + i % 2] - offsets[d + i] - share_sum[r]), a.y_scale),
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

/* Blocks of 64 queries, those of a head one behind the other. */
template <int DEPTH, int CHUNKS, bool MASKED>
__global__ void __launch_bounds__(THREADS) attend_rounded(const __grid_constant__ cuda_rounded_attention a)
{
    extern __shared__ uint4 rounded_memory[];
    __shared__ cuda_rounded_tables tables;
    uint8_t *shared = (uint8_t *)rounded_memory;
    const rounded_room<DEPTH> room(a.keys);
    const int blocks = (a.queries + WARPS * ROWS - 1) / (WARPS * ROWS), item = blockIdx.x / blocks,
              batch = item / a.heads, head = item % a.heads,
              first = (blockIdx.x % blocks * WARPS + threadIdx.x / LANES) * ROWS;
    overlap_let_next_begin();
    for (int i = threadIdx.x; i < (int)(sizeof tables / sizeof(uint32_t)); i += THREADS)
        ((uint32_t *)&tables)[i] = ((const uint32_t *)a.tables)[i];
    __syncthreads();
    overlap_wait();
    load_keys(a, room, tables, a.k + batch * a.of_k.batch + head * a.of_k.head, shared);
    load_values(a, room, a.v + batch * a.of_v.batch + head * a.of_v.head, shared);
    rounded_queries<DEPTH> q;
    q.load(a, tables, a.q + batch * a.of_q.batch + head * a.of_q.head, first);
    __syncthreads();
    sum_values(a, room, shared);
    __syncthreads();
    if (first >= a.queries)
        return;
    rounded_scores<CHUNKS> scores;
    scores.largest[0] = scores.largest[1] = 0;
    const rounded_mask mask(a, batch, head, first);
    const int32_t *offsets = (const int32_t *)(shared + room.key_offsets_at());
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        if (c * CHUNK >= a.keys)
            break;
        int32_t sum[TILES][4];
        multiply_keys(q, shared, c, sum);
        scores.template round_chunk<MASKED>(a, offsets, q, mask, c, sum);
    }
    scores.find_largest();
    int32_t share_sum[2];
#pragma unroll
    for (int r = 0; r < 2; r++)
        share_sum[r] = (int32_t)scores.share(a, tables, r) * a.v_zero;
    multiply_values(a, room, shared, scores, share_sum, a.y + batch * a.of_y.batch + head * a.of_y.head,
                    first);
}

template <int DEPTH, int CHUNKS, bool MASKED>
grt_status launch_rounded(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    const auto kernel = attend_rounded<DEPTH, CHUNKS, MASKED>;
    const int blocks = (a->queries + WARPS * ROWS - 1) / (WARPS * ROWS);
    CUDA_TRY(cuda_allow_shared((const void *)kernel));
    CUDA_TRY(overlap_launch(overlaps, kernel, (unsigned)(blocks * a->batch * a->heads), THREADS,
                            (size_t)rounded_room<DEPTH>(a->keys).bytes(), stream, *a));
    return GRT_OK;
}

template <int DEPTH, int CHUNKS>
grt_status launch_masked(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    return a->mask ? launch_rounded<DEPTH, CHUNKS, true>(a, overlaps, stream)
                   : launch_rounded<DEPTH, CHUNKS, false>(a, overlaps, stream);
}

template <int DEPTH>
grt_status launch_depth(const cuda_rounded_attention *a, bool overlaps, cudaStream_t stream)
{
    if (a->keys <= 4 * CHUNK)
        return launch_masked<DEPTH, 4>(a, overlaps, stream);
    return a->keys <= 8 * CHUNK ? launch_masked<DEPTH, 8>(a, overlaps, stream)
                                : launch_masked<DEPTH, ROUNDED_KEYS / CHUNK>(a, overlaps, stream);
}

} // namespace

/* Keys and values of a head in the shared memory that blocks of every device can have. */
bool cuda_rounded_attention_fits(int64_t size, int64_t keys)
{
    const int most = (96 << 10) - (int)sizeof(cuda_rounded_tables);
    if (keys <= 0 || keys > ROUNDED_KEYS)
        return false;
    return size == 32   ? rounded_room<1>((int)keys).bytes() <= most
           : size == 64 ? rounded_room<2>((int)keys).bytes() <= most
                        : size == 128 && rounded_room<4>((int)keys).bytes() <= most;
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
