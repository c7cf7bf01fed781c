/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of weight_tile.cuh: weights of 4 and 8 bits as pairs of 16-bit floats, less their zero point,
 * exactly; and numbers of x. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_NUMBER_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_NUMBER_CUH

#include "backends/cuda/tensor_core.cuh"
#include "backends/cuda/weight_product.h"

#include <cuda_fp8.h>

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

/* The left operand of one step. zero: of columns g and g + 8. `words`: a lane's 8 numbers. */
template <class O, cuda_weight_numbers N> struct weight_reader;

template <class O> struct weight_reader<O, CUDA_WEIGHT_4> {
    enum { WORDS = 1 };
    static __device__ __forceinline__ void read(const uint32_t *words, const int (&zero)[2], uint32_t (&a)[4])
    {
        const uint32_t offset = weight_offset<O>::BITS;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight_minus((words[0] >> (4 * i) & 0x000f000fu) | offset,
                                offset | (uint32_t)zero[i % 2] * 0x10001u, O{});
    }
};

template <> struct weight_reader<__half, CUDA_WEIGHT_8> {
    enum { WORDS = 2 };
    static __device__ __forceinline__ void read(const uint32_t *words, const int (&zero)[2], uint32_t (&a)[4])
    {
        const uint32_t offset = weight_offset<__half>::BITS;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight_minus(__byte_perm(words[i / 2], offset, i % 2 ? 0x5352 : 0x5150),
                                offset | (uint32_t)zero[i % 2] * 0x10001u, __half{});
    }
};

/* Eight bits do not fit below bfloat16's exponent: by float32. */
template <> struct weight_reader<__nv_bfloat16, CUDA_WEIGHT_8> {
    enum { WORDS = 2 };
    static __device__ __forceinline__ void read(const uint32_t *words, const int (&zero)[2], uint32_t (&a)[4])
    {
        const uint32_t offset = 0x4b000000u; /* 2^23 */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float less = __uint_as_float(offset | (uint32_t)zero[i % 2]);
            const float low = __uint_as_float(__byte_perm(words[i / 2], offset, i % 2 ? 0x7442 : 0x7440)),
                        high = __uint_as_float(__byte_perm(words[i / 2], offset, i % 2 ? 0x7443 : 0x7441));
            a[i] = tensor_core<__nv_bfloat16>::pair(low - less, high - less);
        }
    }
};

template <class O> struct weight_reader<O, CUDA_WEIGHT_E4M3> {
    enum { WORDS = 2 };
    static __device__ __forceinline__ void read(const uint32_t *words, const int (&)[2], uint32_t (&a)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const __half2_raw raw = __nv_cvt_fp8x2_to_halfraw2(
                (__nv_fp8x2_storage_t)(words[i / 2] >> (i % 2 * 16) & 0xffff), __NV_E4M3);
            if constexpr (sizeof(O) == sizeof(__half) && weight_offset<O>::BITS == 0x64006400u) {
                a[i] = *(const uint32_t *)&raw;
            } else {
                const float2 both = __half22float2(__half2(raw));
                a[i] = tensor_core<__nv_bfloat16>::pair(both.x, both.y);
            }
        }
    }
};

/* ---- x ----
 * Four numbers of a row of x from `from` on: for each part, two registers of the right operand. */

template <class T> __device__ __forceinline__ void weight_read_x(const T *from, uint32_t (&b)[1][2])
{
    const uint2 x = *(const uint2 *)from;
    b[0][0] = x.x;
    b[0][1] = x.y;
}

/* The upper 16 bits of a float32 are a bfloat16: what is left after cutting them off is exact, and after
 * three cuts nothing is left. */
__device__ __forceinline__ void weight_read_x(const float *from, uint32_t (&b)[3][2])
{
    const float4 four = *(const float4 *)from;
    float x[4] = {four.x, four.y, four.z, four.w};
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

#endif
