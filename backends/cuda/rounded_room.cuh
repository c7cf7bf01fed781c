/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of a head in shared memory, and what is taken of their sums for zero points
 * (rounded_attention.cu). */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_ROOM_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_ROOM_CUH

#include "backends/cuda/rounded_levels.cuh"

namespace
{

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

} // namespace
#endif
