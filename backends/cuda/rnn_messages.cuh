/* SPDX-License-Identifier: Apache-2.0 */
/* How blocks of a recurrent layer tell each other hidden states: a message is a word and the step that it
 * belongs to, and arrives whole: who reads the step has the word, without a fence or a counter. Two steps'
 * messages have a place each. A block writes those of step i + 2 after it has read all of step i + 1, which
 * every block sent after reading all of step i: nobody still reads what is overwritten. Places begin as
 * zeros, which are no step's.
 *
 * Where a word has bits to spare, the step is in them; else the message has 8 bytes. */
#ifndef GRT_BACKENDS_CUDA_RNN_MESSAGES_CUH
#define GRT_BACKENDS_CUDA_RNN_MESSAGES_CUH

#include "backends/cuda/rnn_tiles.h"
#include "backends/cuda/tensor_core.cuh"

#include <type_traits>

enum { RNN_THREADS = RNN_WARPS * 32, RNN_READS = 4 /* of 16 bytes that a thread has under way */ };

static __device__ __forceinline__ uint4 rnn_read_message(const void *from)
{
    uint4 v;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/* A word of h; of 16-bit numbers the lane of the even unit has it. */
template <class T> __device__ __forceinline__ uint32_t rnn_word(float h)
{
    if constexpr (sizeof(T) == 4)
        return __float_as_uint(h);
    else
        return tensor_core<T>::pair(h, __shfl_down_sync(0xffffffffu, h, 1));
}

/* Word and step beside each other: two messages in 16 bytes. */
template <class T> struct rnn_plain_message {
    enum { WORDS = 2 /* of 16 bytes */ };
    static __device__ __forceinline__ uint32_t word_of(float h)
    {
        return rnn_word<T>(h);
    }
    static __device__ __forceinline__ void send(void *messages, int64_t at, uint32_t word, uint32_t step)
    {
        asm volatile("st.volatile.global.v2.u32 [%0], {%1,%2};" ::"l"((uint2 *)messages + at), "r"(word),
                     "r"(step)
                     : "memory");
    }
    static __device__ __forceinline__ bool is_of(const uint4 &v, uint32_t step)
    {
        return v.y == step && v.w == step;
    }
    static __device__ __forceinline__ void store(char *to, const uint4 &v)
    {
        *(uint2 *)to = make_uint2(v.x, v.z);
    }
};

/* The step in a word's spare bits. */
template <class T> struct rnn_spare;

/* What is multiplied as TF32 has 13 bits less than float32. */
template <> struct rnn_spare<float> {
    static constexpr uint32_t BITS = 0x1fff;
    static __device__ __forceinline__ uint32_t mark(uint32_t step)
    {
        return step & BITS;
    }
    static __device__ __forceinline__ uint32_t word_of(float h)
    {
        return tensor_core<float>::rounded(h);
    }
    static __device__ __forceinline__ uint4 words(const uint4 &v)
    {
        return make_uint4(v.x & ~BITS, v.y & ~BITS, v.z & ~BITS, v.w & ~BITS);
    }
};

/* 16-bit numbers within -1 .. 1 do not use the top bit of their exponents. NaN is told as 1.5, which is none
 * of them. Rows that have no steps keep any first state, which arrives as nonsense, and only in their own
 * sums, which nobody uses. */
template <class T> struct rnn_spare {
    static constexpr uint32_t BITS = 0x40004000;
    /* The third step in the same place looks as this one does. */
    static __device__ __forceinline__ uint32_t mark(uint32_t step)
    {
        const uint32_t turn = step / 2 % 3 + 1;
        return (turn & 1) << 14 | (turn & 2) << 29;
    }
    static __device__ __forceinline__ uint32_t word_of(float h)
    {
        return rnn_word<T>(h == h ? h : 1.5f);
    }
    /* More than any number there is, in either half. */
    static __device__ __forceinline__ uint32_t beyond(uint32_t word)
    {
        constexpr uint32_t HALF = std::is_same<T, __half>::value ? 0x0200u : 0x0040u; /* of an exponent */
        return ((word & 0x3fff3fffu) + (HALF | HALF << 16)) & BITS;
    }
    static __device__ __forceinline__ uint32_t with_nan(uint32_t word)
    {
        const uint32_t far = beyond(word);
        return word | (far & 0x4000u ? 0x7fffu : 0) | (far & 0x40000000u ? 0x7fff0000u : 0);
    }
    static __device__ __forceinline__ uint4 words(uint4 v)
    {
        v = make_uint4(v.x & ~BITS, v.y & ~BITS, v.z & ~BITS, v.w & ~BITS);
        if (beyond(v.x) | beyond(v.y) | beyond(v.z) | beyond(v.w))
            v = make_uint4(with_nan(v.x), with_nan(v.y), with_nan(v.z), with_nan(v.w));
        return v;
    }
};

/* Four messages in 16 bytes. */
template <class T> struct rnn_spare_message {
    enum { WORDS = 4 };
    using spare = rnn_spare<T>;
    static __device__ __forceinline__ uint32_t word_of(float h)
    {
        return spare::word_of(h);
    }
    static __device__ __forceinline__ void send(void *messages, int64_t at, uint32_t word, uint32_t step)
    {
        asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"((uint32_t *)messages + at),
                     "r"((word & ~spare::BITS) | spare::mark(step))
                     : "memory");
    }
    static __device__ __forceinline__ bool is_of(const uint4 &v, uint32_t step)
    {
        const uint32_t mark = spare::mark(step);
        return (((v.x ^ mark) | (v.y ^ mark) | (v.z ^ mark) | (v.w ^ mark)) & spare::BITS) == 0;
    }
    static __device__ __forceinline__ void store(char *to, const uint4 &v)
    {
        *(uint4 *)to = spare::words(v);
    }
};

/* An LSTM's states are within -1 .. 1, as a sigmoid times a hyperbolic tangent. */
template <class T, int GATES, bool STRICT>
using rnn_message = typename std::conditional<sizeof(T) == 4 ? !STRICT : GATES == 4, rnn_spare_message<T>,
                                              rnn_plain_message<T>>::type;

template <class T, int GATES, bool STRICT> struct rnn_messages : rnn_message<T, GATES, STRICT> {
    using message = rnn_message<T, GATES, STRICT>;

    /* The hidden states of the slice's first `rows` rows after `step` steps, once they are there. */
    static __device__ __forceinline__ void receive(const rnn_tiles &t, const void *messages, uint32_t step,
                                                   int32_t d, int32_t slice, int32_t rows, char *hidden)
    {
        enum { WORDS = message::WORDS };
        const char *from =
            (const char *)messages + rnn_message_at(&t, (int32_t)step, d, slice, 0) * (16 / WORDS);
        const int32_t each = t.row_words / WORDS, all = rows * each;
        for (int32_t first = threadIdx.x; first < all; first += RNN_THREADS * RNN_READS) {
            uint4 v[RNN_READS];
            bool missing;
            do {
                missing = false;
#pragma unroll
                for (int k = 0; k < RNN_READS; k++)
                    if (first + k * RNN_THREADS < all)
                        v[k] = rnn_read_message(from + 16 * (first + k * RNN_THREADS));
#pragma unroll
                for (int k = 0; k < RNN_READS; k++)
                    missing = missing || (first + k * RNN_THREADS < all && !message::is_of(v[k], step));
            } while (missing);
#pragma unroll
            for (int k = 0; k < RNN_READS; k++) {
                const int32_t i = first + k * RNN_THREADS;
                if (i < all)
                    message::store(hidden + i / each * t.pitch + i % each * (4 * WORDS), v[k]);
            }
        }
    }
};

#endif
