/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, keys and values of a head in shared memory, and what is taken of their sums for zero points
 * (rounded_attention.cu). */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_ROOM_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_ROOM_CUH

#include "backends/cuda/rounded_levels.cuh"

namespace
{

/* Where all lies in shared memory. OWN: each lane has a table of exponentials in a bank of its own. Keys fill
 * whole chunks: what is missing lies in front of them, so that no chunk but the first asks for it. */
template <int DEPTH, bool OWN> struct rounded_room {
    enum { SIZE = DEPTH * 32, KEY_ROW = SIZE + PAD, TABLES = OWN ? LANES : 1 };
    enum { KEYS_AT = ROUNDED_LEVELS * TABLES * (int)sizeof(uint32_t) };
    int chunks, missing, value_row; /* value_row: bytes */

    __host__ __device__ __forceinline__ explicit rounded_room(int keys)
        : chunks((keys + CHUNK - 1) / CHUNK), missing(chunks * CHUNK - keys), value_row(chunks * CHUNK + PAD)
    {
    }
    __host__ __device__ __forceinline__ int values_at() const
    {
        return KEYS_AT + chunks * CHUNK * KEY_ROW;
    }
    __host__ __device__ __forceinline__ int key_starts_at() const
    {
        return values_at() + SIZE * value_row;
    }
    __host__ __device__ __forceinline__ int key_masks_at() const
    {
        return key_starts_at() + chunks * CHUNK * (int)sizeof(int32_t);
    }
    __host__ __device__ __forceinline__ int value_offsets_at() const
    {
        return key_masks_at() + chunks * CHUNK * (int)sizeof(float);
    }
    __host__ __device__ __forceinline__ int bytes() const
    {
        return value_offsets_at() + SIZE * (int)sizeof(int32_t);
    }
};

/* Exponentials, once or for each lane. They are constants. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void load_exponentials(const cuda_rounded_attention &a, uint8_t *shared)
{
    enum { FOURS = LANES / 4 };
    if constexpr (OWN)
        for (int i = threadIdx.x; i < ROUNDED_LEVELS * FOURS; i += blockDim.x) {
            const uint32_t e = a.tables->exponential[i / FOURS];
            ((uint4 *)shared)[i] = make_uint4(e, e, e, e);
        }
    else
        for (int i = threadIdx.x; i < ROUNDED_LEVELS; i += blockDim.x)
            ((uint32_t *)shared)[i] = a.tables->exponential[i];
}

/* What sums of queries and a key begin with: what is taken for the queries' zero point, behind the bits of
 * float32 that make a sum a number, if all sums are below 2^22. */
template <int DEPTH> struct rounded_sums {
    enum { IN_BITS = DEPTH * 32 * 255 * 255 < 1 << 22, START = IN_BITS ? BITS_OF_WHOLE : 0 };

    static __device__ __forceinline__ float number(int32_t sum)
    {
        return IN_BITS ? __fadd_rn(__int_as_float(sum), -12582912.0f) : (float)sum;
    }
};

/* Keys as signed bytes, zeros in front of them, and what their sums begin with. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void load_keys(const cuda_rounded_attention &a,
                                          const rounded_room<DEPTH, OWN> &room, const uint8_t *table,
                                          const uint8_t *from, uint8_t *shared)
{
    enum { PARTS = DEPTH * 2 };
    int32_t *starts = (int32_t *)(shared + room.key_starts_at());
    const int part = threadIdx.x % PARTS;
#pragma unroll 2
    for (int place = threadIdx.x / PARTS; place < room.chunks * CHUNK; place += blockDim.x / PARTS) {
        uint4 word = make_uint4(0, 0, 0, 0);
        if (place >= room.missing) {
            word = *(const uint4 *)(from + (place - room.missing) * a.of_k.token + part * 16);
            word = make_uint4(word.x ^ a.flip_k, word.y ^ a.flip_k, word.z ^ a.flip_k, word.w ^ a.flip_k);
            if (a.has_k_table)
                word = make_uint4(rounded_look_up(table, word.x), rounded_look_up(table, word.y),
                                  rounded_look_up(table, word.z), rounded_look_up(table, word.w));
        }
        *(uint4 *)(shared + room.KEYS_AT + place * room.KEY_ROW + part * 16) = word;
        int32_t sum = 0;
        sum = __dp4a((int32_t)word.x, 0x01010101, sum);
        sum = __dp4a((int32_t)word.y, 0x01010101, sum);
        sum = __dp4a((int32_t)word.z, 0x01010101, sum);
        sum = __dp4a((int32_t)word.w, 0x01010101, sum);
#pragma unroll
        for (int step = PARTS / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        if (part == 0)
            starts[place] = rounded_sums<DEPTH>::START - a.q_zero * (sum - a.size * a.k_zero);
    }
}

/* The row of shared memory that has number d of all values: in such an order that the results of a lane are
 * of eight numbers side by side. */
__device__ __forceinline__ int value_row_of(int d)
{
    return (d & ~31) | (d >> 1 & 3) << 3 | (d >> 3 & 3) << 1 | (d & 1);
}

/* Four words of four bytes, turned. */
__device__ __forceinline__ void turn_words(uint32_t (&word)[4])
{
    const uint32_t low[2] = {__byte_perm(word[0], word[1], 0x5140), __byte_perm(word[2], word[3], 0x5140)},
                   high[2] = {__byte_perm(word[0], word[1], 0x7362), __byte_perm(word[2], word[3], 0x7362)};
    word[0] = __byte_perm(low[0], low[1], 0x5410);
    word[1] = __byte_perm(low[0], low[1], 0x7632);
    word[2] = __byte_perm(high[0], high[1], 0x5410);
    word[3] = __byte_perm(high[0], high[1], 0x7632);
}

/* Values as signed bytes, turned: a word has four keys of one number, those that a lane has in its words of
 * levels. A thread turns eight numbers of four keys; a warp's stores are in 32 banks. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void load_values(const cuda_rounded_attention &a,
                                            const rounded_room<DEPTH, OWN> &room, const uint8_t *from,
                                            uint8_t *shared)
{
    enum { EIGHTS = DEPTH * 4, GROUP = 16 /* keys */ };
    uint8_t *values = shared + room.values_at();
#pragma unroll 2
    for (int i = threadIdx.x; i < room.chunks * 2 * 4 * EIGHTS; i += blockDim.x) {
        const int lane = i % 4, block = i / LANES, eight = i / 4 % 4 + block % DEPTH * 4,
                  group = i / 16 % 2 + block / DEPTH * 2;
        uint2 row[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int key = group * GROUP + lane * 2 + k % 2 + k / 2 * 8 - room.missing;
            row[k] = make_uint2(a.flip_v, a.flip_v);
            if (key >= 0)
                row[k] = *(const uint2 *)(from + key * a.of_v.token + eight * 8);
            row[k] = make_uint2(row[k].x ^ a.flip_v, row[k].y ^ a.flip_v);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t turned[4] = {half ? row[0].y : row[0].x, half ? row[1].y : row[1].x,
                                  half ? row[2].y : row[2].x, half ? row[3].y : row[3].x};
            turn_words(turned);
#pragma unroll
            for (int k = 0; k < 4; k++)
                *(uint32_t *)(values + value_row_of(eight * 8 + half * 4 + k) * room.value_row +
                              group * GROUP + lane * 4) = turned[k];
        }
    }
}

/* The masks of keys as numbers in units of the sums', where all queries have the same. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void load_masks(const cuda_rounded_attention &a,
                                           const rounded_room<DEPTH, OWN> &room, const uint8_t *from,
                                           uint8_t *shared)
{
    float *masks = (float *)(shared + room.key_masks_at());
    for (int place = threadIdx.x; place < room.chunks * CHUNK; place += blockDim.x) {
        const int key = place - room.missing;
        const int32_t level = key >= 0 ? from[key * a.mask_key] ^ (a.flip_mask & 0xFF) : a.mask_zero;
        masks[place] = __fmul_rn(rounded_number(level, a.mask_zero), a.sum_mask);
    }
}

/* What is taken of a result for the zero point of shares. All values are in shared memory. */
template <int DEPTH, bool OWN>
__device__ __forceinline__ void sum_values(const cuda_rounded_attention &a,
                                           const rounded_room<DEPTH, OWN> &room, uint8_t *shared)
{
    int32_t *offsets = (int32_t *)(shared + room.value_offsets_at());
    if (a.read_zero == 0) {
        for (int d = threadIdx.x; d < room.SIZE; d += blockDim.x)
            offsets[d] = 0;
        return;
    }
    for (int d = threadIdx.x / LANES; d < room.SIZE; d += blockDim.x / LANES) {
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
