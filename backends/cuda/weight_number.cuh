/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of weight_tile.cuh: weights of 4 and 8 bits as pairs of 16-bit floats, less their zero point,
 * exactly; and numbers of x. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_NUMBER_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_NUMBER_CUH

#include "backends/cuda/tensor_core.cuh"
#include "backends/cuda/weight_product.h"

#include <cuda_fp8.h>

#include <type_traits>

/* Tensor cores multiply float16 where x is, else bfloat16. */
template <class T> struct weight_operand;
template <> struct weight_operand<__half> {
    using type = __half;
    enum { PARTS = 1 };
};
template <> struct weight_operand<__nv_bfloat16> {
    using type = __nv_bfloat16;
    enum { PARTS = 1 };
};
template <> struct weight_operand<float> {
    using type = __nv_bfloat16;
    enum { PARTS = 3 };
};

/* ---- weights ----
 * A float16 or bfloat16 with that exponent has an integer in its lowest bits: 1024 + w is exact, so is the
 * difference to 1024 + zero. */

template <class O> struct weight_offset;
template <> struct weight_offset<__half> {
    enum : uint32_t { BITS = 0x64006400u }; /* 1024 */
};
template <> struct weight_offset<__nv_bfloat16> {
    enum : uint32_t { BITS = 0x43004300u }; /* 128 */
};

__device__ __forceinline__ uint32_t weight_minus(uint32_t a, uint32_t b, __half)
{
    const __half2 c = __hsub2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&c;
}
__device__ __forceinline__ uint32_t weight_minus(uint32_t a, uint32_t b, __nv_bfloat16)
{
    const __nv_bfloat162 c = __hsub2(*(const __nv_bfloat162 *)&a, *(const __nv_bfloat162 *)&b);
    return *(const uint32_t *)&c;
}

/* x & MASK | offset in one instruction, which has room for one constant. */
template <uint32_t MASK> __device__ __forceinline__ uint32_t weight_masked(uint32_t x, uint32_t offset)
{
    uint32_t y;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "n"(MASK), "r"(offset));
    return y;
}
__device__ __forceinline__ uint32_t weight_constant(uint32_t x)
{
    asm("" : "+r"(x));
    return x;
}

/* Twice a 16-bit float with this upper byte and a lower one of `both`. */
template <int WHICH> __device__ __forceinline__ uint32_t weight_pair(uint32_t both, uint32_t upper)
{
    return __byte_perm(both, upper, WHICH ? 0x4141 : 0x4040);
}

/* The left operand of one step. `words`: a lane's 8 numbers. `zero`: the zero points of columns g and g + 8,
 * two bytes, as `prepare` makes them, once for each block. */
template <class O, cuda_weight_numbers N> struct weight_reader;

template <> struct weight_reader<__nv_bfloat16, CUDA_WEIGHT_4> {
    enum { WORDS = 1 };
    static __device__ __forceinline__ void prepare(uint32_t both, uint32_t (&zero)[2])
    {
        zero[0] = weight_pair<0>(both, weight_offset<__nv_bfloat16>::BITS >> 24);
        zero[1] = weight_pair<1>(both, weight_offset<__nv_bfloat16>::BITS >> 24);
    }
    static __device__ __forceinline__ void read(const uint32_t *words, const uint32_t (&zero)[2],
                                                uint32_t (&a)[4])
    {
        const uint32_t offset = weight_constant(weight_offset<__nv_bfloat16>::BITS);
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight_minus(weight_masked<0x000f000fu>(words[0] >> (4 * i), offset), zero[i % 2],
                                __nv_bfloat16{});
    }
};

/* Columns g + 8 are 4 bits up: 1024 + 16 w, of which a sixteenth is 64 + w. Nothing of it is rounded. */
template <> struct weight_reader<__half, CUDA_WEIGHT_4> {
    enum { WORDS = 1 };
    static __device__ __forceinline__ void prepare(uint32_t both, uint32_t (&zero)[2])
    {
        const uint32_t less = 0x63806380u; /* 960 - (1024 + zero) is -(64 + zero) */
        zero[0] = weight_pair<0>(both, weight_offset<__half>::BITS >> 24);
        zero[1] = weight_minus(less, weight_pair<1>(both, weight_offset<__half>::BITS >> 24), __half{});
    }
    static __device__ __forceinline__ void read(const uint32_t *words, const uint32_t (&zero)[2],
                                                uint32_t (&a)[4])
    {
        const uint32_t offset = weight_constant(weight_offset<__half>::BITS), sixteenth = 0x2c002c00u;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t word = words[0] >> (8 * i);
            a[2 * i] = weight_minus(weight_masked<0x000f000fu>(word, offset), zero[0], __half{});
            const uint32_t high = weight_masked<0x00f000f0u>(word, offset);
            const __half2 y =
                __hfma2(*(const __half2 *)&high, *(const __half2 *)&sixteenth, *(const __half2 *)&zero[1]);
            a[2 * i + 1] = *(const uint32_t *)&y;
        }
    }
};

template <> struct weight_reader<__half, CUDA_WEIGHT_8> {
    enum { WORDS = 2 };
    static __device__ __forceinline__ void prepare(uint32_t both, uint32_t (&zero)[2])
    {
        zero[0] = weight_pair<0>(both, weight_offset<__half>::BITS >> 24);
        zero[1] = weight_pair<1>(both, weight_offset<__half>::BITS >> 24);
    }
    static __device__ __forceinline__ void read(const uint32_t *words, const uint32_t (&zero)[2],
                                                uint32_t (&a)[4])
    {
        const uint32_t offset = weight_offset<__half>::BITS;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight_minus(__byte_perm(words[i / 2], offset, i % 2 ? 0x5352 : 0x5150), zero[i % 2],
                                __half{});
    }
};

/* Eight bits do not fit below bfloat16's exponent: by float32. */
template <> struct weight_reader<__nv_bfloat16, CUDA_WEIGHT_8> {
    enum { WORDS = 2 };
    enum : uint32_t { OFFSET = 0x4b000000u }; /* 2^23 */
    static __device__ __forceinline__ void prepare(uint32_t both, uint32_t (&zero)[2])
    {
        zero[0] = OFFSET | (both & 255);
        zero[1] = OFFSET | (both >> 8 & 255);
    }
    static __device__ __forceinline__ void read(const uint32_t *words, const uint32_t (&zero)[2],
                                                uint32_t (&a)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float less = __uint_as_float(zero[i % 2]);
            const float low = __uint_as_float(__byte_perm(words[i / 2], OFFSET, i % 2 ? 0x7442 : 0x7440)),
                        high = __uint_as_float(__byte_perm(words[i / 2], OFFSET, i % 2 ? 0x7443 : 0x7441));
            a[i] = tensor_core<__nv_bfloat16>::pair(low - less, high - less);
        }
    }
};

/* There are no zero points. */
template <class O> struct weight_reader<O, CUDA_WEIGHT_E4M3> {
    enum { WORDS = 2 };
    static __device__ __forceinline__ void prepare(uint32_t, uint32_t (&zero)[2])
    {
        zero[0] = zero[1] = 0;
    }
    static __device__ __forceinline__ void read(const uint32_t *words, const uint32_t (&)[2],
                                                uint32_t (&a)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const __half2_raw raw = __nv_cvt_fp8x2_to_halfraw2(
                (__nv_fp8x2_storage_t)(words[i / 2] >> (i % 2 * 16) & 0xffff), __NV_E4M3);
            if constexpr (weight_offset<O>::BITS == weight_offset<__half>::BITS) {
                a[i] = *(const uint32_t *)&raw;
            } else {
                const float2 both = __half22float2(__half2(raw));
                a[i] = tensor_core<__nv_bfloat16>::pair(both.x, both.y);
            }
        }
    }
};

/* ---- weights as they are stored ----
 * Where a block's sum of x is known, zero points need not be subtracted from each weight. Of float16, an
 * integer in the lowest bits alone is that many units of 2^-24, exactly: tensor cores take denormal numbers
 * as they are, and what the sums are to be multiplied by makes up for it. LOW, HIGH: that factor for columns
 * g and g + 8; ADDED: what all weights have too much. */

template <class O, cuda_weight_numbers N> struct weight_raw;

template <> struct weight_raw<__half, CUDA_WEIGHT_4> {
    enum { LOW = 1 << 24, HIGH = 1 << 20, ADDED = 0 };
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t (&a)[4])
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            a[2 * i] = words[0] >> (8 * i) & 0x000f000fu;
            a[2 * i + 1] = words[0] >> (8 * i) & 0x00f000f0u;
        }
    }
};

template <> struct weight_raw<__nv_bfloat16, CUDA_WEIGHT_4> {
    enum { LOW = 1, HIGH = 1, ADDED = 128 };
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t (&a)[4])
    {
        const uint32_t offset = weight_constant(weight_offset<__nv_bfloat16>::BITS);
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight_masked<0x000f000fu>(words[0] >> (4 * i), offset);
    }
};

/* A lane's numbers of a packed tile. */
template <class R>
__device__ __forceinline__ void weight_read_words(const char *tile, int lane, uint32_t (&words)[4 * R::WORDS])
{
#pragma unroll
    for (int i = 0; i < R::WORDS; i++)
        *(uint4 *)&words[4 * i] = *(const uint4 *)(tile + i * 512 + lane * 16);
}

/* Two bytes: the zero points of columns g and g + 8 of a tile, where blocks of k have none of their own. */
__device__ __forceinline__ uint32_t weight_column_zeros(const cuda_weight_product &p, int tile, int g)
{
    return p.zeros && p.blocks == 1 ? ((const uint16_t *)p.zeros)[min(tile, p.tiles_n - 1) * 8 + g]
                                    : (uint32_t)p.zero * 0x101u;
}

/* ---- x ----
 * Numbers 0, 1, 8 and 9 of a row of x from `from` on: for each part, two registers of the right operand. */

template <class T> __device__ __forceinline__ void weight_read_x(const T *from, uint32_t (&b)[1][2])
{
    b[0][0] = *(const uint32_t *)from;
    b[0][1] = *(const uint32_t *)(from + 8);
}

/* The upper 16 bits of a float32 are a bfloat16: what is left after cutting them off is exact, and after
 * three cuts nothing is left. */
__device__ __forceinline__ void weight_read_x(const float *from, uint32_t (&b)[3][2])
{
    const float2 low = *(const float2 *)from, high = *(const float2 *)(from + 8);
    float x[4] = {low.x, low.y, high.x, high.y};
#pragma unroll
    for (int part = 0; part < 3; part++) {
        uint32_t top[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            top[i] = __float_as_uint(x[i]) & 0xffff0000u;
            const bool infinite = (top[i] & 0x7fff0000u) == 0x7f800000u;
            x[i] = infinite ? 0.0f : x[i] - __uint_as_float(top[i]);
        }
        b[part][0] = top[0] >> 16 | top[1];
        b[part][1] = top[2] >> 16 | top[3];
    }
}

/* Calls use(NUMBERS()), whose NUMBERS::value is the format of the weights as a constant. */
template <class USE> static grt_status weight_with_numbers(cuda_weight_numbers numbers, const USE &use)
{
    switch (numbers) {
    case CUDA_WEIGHT_4:
        return use(std::integral_constant<cuda_weight_numbers, CUDA_WEIGHT_4>());
    case CUDA_WEIGHT_8:
        return use(std::integral_constant<cuda_weight_numbers, CUDA_WEIGHT_8>());
    default:
        return use(std::integral_constant<cuda_weight_numbers, CUDA_WEIGHT_E4M3>());
    }
}

#endif
