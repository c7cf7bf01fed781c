/* SPDX-License-Identifier: Apache-2.0 */
/* h R^T of recurrent layers by tensor cores, out of shared memory: R in the order of fragments, hidden states
 * in rows (rnn_tiles.h).
 *
 * Float32 that must stay so is multiplied as the sum of two TF32 numbers each; only the product of the two
 * small ones is left out, 2^-22 of the whole. */
#ifndef GRT_BACKENDS_CUDA_RNN_MULTIPLY_CUH
#define GRT_BACKENDS_CUDA_RNN_MULTIPLY_CUH

#include "backends/cuda/rnn_cell.cuh"
#include "backends/cuda/tensor_core.cuh"

/* A word as it is multiplied: rounded once, as it comes, unless all of it is needed. */
template <class T, bool STRICT> __device__ __forceinline__ uint32_t rnn_factor_of(uint32_t word)
{
    return STRICT ? word : tensor_core<T>::operand(word);
}
template <class T, bool STRICT> __device__ __forceinline__ uint4 rnn_factors_of(uint4 v)
{
    return make_uint4(rnn_factor_of<T, STRICT>(v.x), rnn_factor_of<T, STRICT>(v.y),
                      rnn_factor_of<T, STRICT>(v.z), rnn_factor_of<T, STRICT>(v.w));
}

/* The four words from `word` on of a row of `n` elements; zeros behind its end, and for rows that there are
 * not (NULL). */
template <class T> __device__ __forceinline__ uint4 rnn_words_of(const T *row, int64_t n, int32_t word)
{
    enum { EACH = 4 / sizeof(T), ALL = 16 / sizeof(T) };
    const int64_t first = (int64_t)word * EACH;
    union {
        uint4 words;
        T v[ALL];
    } pack;
    pack.words = make_uint4(0, 0, 0, 0);
    if (row && first + ALL <= n && ((uintptr_t)(row + first) & 15) == 0)
        return *(const uint4 *)(row + first);
    if (row)
        for (int k = 0; k < ALL; k++)
            if (first + k < n)
                pack.v[k] = row[first + k];
    return pack.words;
}

/* The four words from `word` on of R's row of unit `unit` of a part and one gate, as they are multiplied. */
template <class T, bool STRICT>
__device__ __forceinline__ uint4 rnn_weights_of(const rnn_data<T> &data, const rnn_places &at, int32_t d,
                                                int32_t part, int32_t gate, int32_t unit, int32_t word)
{
    const int64_t n = at.n.hidden, j = (int64_t)part * RNN_UNITS + unit;
    const T *from = j < n ? data.r + ((d * at.gates + gate) * n + j) * n : nullptr;
    return rnn_factors_of<T, STRICT>(rnn_words_of<T>(from, n, word));
}

/* Part `part` of direction d of R, its chunks from `first` on, in the order of fragments, by all threads of a
 * block. */
template <class T, bool STRICT>
__device__ void rnn_load_part(const rnn_data<T> &data, const rnn_places &at, int32_t first, int32_t chunks,
                              int32_t d, int32_t part, uint32_t *to)
{
    const int32_t quads = (chunks - first) * 4; /* of words, in a row */
    for (int32_t i = threadIdx.x; i < at.gates * RNN_UNITS * quads; i += blockDim.x) {
        const int32_t word = i % quads * 4, row = i / quads, unit = row % RNN_UNITS, gate = row / RNN_UNITS;
        const uint4 v =
            rnn_weights_of<T, STRICT>(data, at, d, part, gate, unit, first * RNN_CHUNK_WORDS + word);
        to[rnn_fragment_at(at.gates, gate, unit, word)] = v.x;
        to[rnn_fragment_at(at.gates, gate, unit, word + 1)] = v.y;
        to[rnn_fragment_at(at.gates, gate, unit, word + 2)] = v.z;
        to[rnn_fragment_at(at.gates, gate, unit, word + 3)] = v.w;
    }
}

/* The hidden states of `rows` batch rows from `first` on before the first step, zeros behind their ends. */
template <class T, bool STRICT>
__device__ void rnn_load_initial(const rnn_data<T> &data, const rnn_places &at, int32_t d, int64_t first,
                                 int32_t rows, int32_t pitch, char *hidden)
{
    const int32_t quads = pitch / 16;
    for (int32_t i = threadIdx.x; i < rows * quads; i += blockDim.x) {
        const int32_t row = i / quads, quad = i % quads;
        const bool there = data.h0 && first + row < at.n.batch;
        *(uint4 *)(hidden + row * pitch + quad * 16) = rnn_factors_of<T, STRICT>(
            rnn_words_of<T>(there ? data.h0 + at.state(d, first + row) : nullptr, at.n.hidden, quad * 4));
    }
}

/* c += a b, of float32 in full. */
template <class T, bool STRICT>
__device__ __forceinline__ void rnn_multiply(float *c, const uint32_t *a, const uint32_t *b)
{
    if constexpr (STRICT) {
        uint32_t high_a[4], low_a[4], high_b[2], low_b[2];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float x = __uint_as_float(a[k]);
            high_a[k] = tensor_core<T>::rounded(x);
            low_a[k] = tensor_core<T>::rounded(x - __uint_as_float(high_a[k]));
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const float x = __uint_as_float(b[k]);
            high_b[k] = tensor_core<T>::rounded(x);
            low_b[k] = tensor_core<T>::rounded(x - __uint_as_float(high_b[k]));
        }
        tensor_core<T>::mma(c, low_a, high_b);
        tensor_core<T>::mma(c, high_a, low_b);
        tensor_core<T>::mma(c, high_a, high_b);
    } else {
        tensor_core<T>::mma(c, a, b);
    }
}

/* A chunk's weights as a lane has them: of each gate, for each of two multiplications. */
template <int GATES> using rnn_chunk_weights = uint32_t[GATES][2][4];

template <int GATES>
__device__ __forceinline__ void rnn_take_weights(const uint32_t *weights, int32_t chunk,
                                                 rnn_chunk_weights<GATES> &to)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int gate = 0; gate < GATES; gate++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            *(uint4 *)to[gate][half] =
                *(const uint4 *)(weights + (((chunk * GATES + gate) * 2 + half) * 32 + lane) * 4);
}

/* Float32 in full needs the registers for the parts of each number. */
template <int GATES, int EIGHTS, bool STRICT>
constexpr int rnn_chunks_held = STRICT || EIGHTS > 2 ? 0 : RNN_CHUNKS_HELD(GATES, EIGHTS);

/* The same from R itself, for a warp that has part `part` alone: sixteen bytes of a row are a lane's share of
 * both multiplications (rnn_fragment_at). */
template <class T, int GATES, bool STRICT>
__device__ __forceinline__ void rnn_read_weights(const rnn_data<T> &data, const rnn_places &at, int32_t d,
                                                 int32_t part, int32_t chunk, rnn_chunk_weights<GATES> &to)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int gate = 0; gate < GATES; gate++)
#pragma unroll
        for (int eight = 0; eight < 2; eight++) {
            const uint4 v = rnn_weights_of<T, STRICT>(data, at, d, part, gate, eight * 8 + lane / 4,
                                                      chunk * RNN_CHUNK_WORDS + lane % 4 * 4);
            to[gate][0][eight] = v.x;
            to[gate][0][eight + 2] = v.y;
            to[gate][1][eight] = v.z;
            to[gate][1][eight + 2] = v.w;
        }
}

/* sum += a chunk of R times that chunk of 8 * EIGHTS hidden states, `pitch` bytes apart. from: where the lane
 * reads, which is part lane % 4 * 16 of the row that column lane / 4 of the product is. A lane's sums of an
 * eight of columns: units lane / 4 and, the last two, lane / 4 + 8; of each, columns lane % 4 * 2 and the
 * next.
 */
template <class T, int GATES, int EIGHTS, bool STRICT>
__device__ __forceinline__ void rnn_multiply_chunk(int32_t pitch, int32_t chunk,
                                                   const rnn_chunk_weights<GATES> &a, const char *from,
                                                   float (&sum)[GATES][EIGHTS][4])
{
    uint32_t b[EIGHTS][4];
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
        *(uint4 *)b[e] = *(const uint4 *)(from + e * 8 * pitch + chunk * RNN_CHUNK_WORDS * 4);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int gate = 0; gate < GATES; gate++)
#pragma unroll
            for (int e = 0; e < EIGHTS; e++)
                rnn_multiply<T, STRICT>(sum[gate][e], a[gate][half], b[e] + 2 * half);
}

#endif
