/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue of products of bytes on the device: the CPU's operations, in its order, none contracted. */
#ifndef GRT_BACKENDS_CUDA_QFINISH_CUH
#define GRT_BACKENDS_CUDA_QFINISH_CUH

#include "backends/cuda/qproduct.h"

/* Byte i of a word. */
static __device__ __forceinline__ int32_t cuda_qwhole(uint32_t word, int i, bool is_signed)
{
    const uint32_t v = word >> (8 * i) & 0xFF;
    return is_signed ? (int32_t)(int8_t)v : (int32_t)v;
}

static __device__ __forceinline__ float cuda_qscaled(int32_t sum, float scale, float bias)
{
    return __fadd_rn(__fmul_rn((float)sum, scale), bias);
}

/* NaN becomes the least. */
static __device__ __forceinline__ float cuda_qlimited(float v, float low, float high)
{
    return fminf(fmaxf(v, low), high);
}

/* To the nearest integer, ties to even, of numbers whose absolute value is below 2^22: the sum's low bits are
 * that integer. Conversions have a quarter of the additions' rate. */
static __device__ __forceinline__ float cuda_qrounded(float v)
{
    return __fadd_rn(v, 12582912.0f);
}

/* Bytes of residuals, as unsigned ones that are signed less 128: what flips them, and their zero point behind
 * the number that has 2^23 for its exponent, so that a byte becomes a float by being put in front of it. */
struct cuda_qresidual {
    uint32_t flip;
    float zero, scale;
    bool sum; /* v is rounded to y's type before */

    __device__ __forceinline__ cuda_qresidual(const cuda_qhead &h, grt_dtype dtype, bool is_sum)
        : flip(dtype == GRT_DTYPE_INT8 ? 0x80808080u : 0),
          zero(8388608.0f + (float)(h.r_zero + (dtype == GRT_DTYPE_INT8 ? 128 : 0))), scale(h.r_scale),
          sum(is_sum)
    {
    }
    /* v and byte i of the flipped word. */
    __device__ __forceinline__ float add(const cuda_qhead &h, float v, uint32_t word, int i) const
    {
        const float level = __uint_as_float(__byte_perm(word, 0x4B000000u, 0x7440 | (uint32_t)i)),
                    r = __fmul_rn(__fadd_rn(level, -zero), scale);
        if (sum)
            v = __fmul_rn(__fadd_rn(cuda_qrounded(cuda_qlimited(v, h.low, h.high)), -12582912.0f), h.y_scale);
        return __fadd_rn(v, r);
    }
};

/* A number that is rounded to y's type, and one of its column, in units of the sum's scale. */
static __device__ __forceinline__ float cuda_qsum(const cuda_qhead &h, float v, float of_column)
{
    const float y = __fadd_rn(cuda_qrounded(cuda_qlimited(v, h.low, h.high)), -12582912.0f);
    return __fadd_rn(__fmul_rn(y, h.y_scale), of_column);
}

/* The limits and the zero point of results. */
struct cuda_qlimits {
    float low, high;
    int32_t zero;

    __device__ __forceinline__ cuda_qlimits(const cuda_qhead &h, bool sum)
        : low(sum ? h.sum_low : h.low), high(sum ? h.sum_high : h.high), zero(sum ? h.sum_zero : h.y_zero)
    {
    }
    /* In the low byte; what is above means nothing. */
    __device__ __forceinline__ uint32_t byte(float v) const
    {
        return __float_as_uint(cuda_qrounded(cuda_qlimited(v, low, high))) + (uint32_t)zero;
    }
};

/* Bytes of levels by conversions that saturate: signed ones, which are flipped where bytes are unsigned.
 * floor: all ones where none may be below the middle of the type, as behind Relu with a zero point there. */
struct cuda_qsaturation {
    int32_t zero;
    uint32_t flip, floor;

    __device__ __forceinline__ cuda_qsaturation(int32_t y_zero, grt_dtype y, float low)
        : zero(y_zero - middle_of(y) - 0x4B400000), flip(y == GRT_DTYPE_INT8 ? 0 : 0x80808080u),
          floor(rintf(low) == (float)(middle_of(y) - y_zero) ? ~0u : 0)
    {
    }
    /* True if these limits of numbers that are rounded are the type's, but for the floor. */
    static __device__ __forceinline__ bool fits(float low, float high, int32_t y_zero, grt_dtype y)
    {
        const int32_t middle = middle_of(y) - y_zero;
        return (rintf(low) == (float)(middle - 128) || rintf(low) == (float)middle) &&
               rintf(high) == (float)(middle + 127);
    }
    __device__ __forceinline__ int32_t level(float v) const
    {
        return __float_as_int(cuda_qrounded(v)) + zero;
    }
    __device__ __forceinline__ uint32_t word(const int32_t *level) const
    {
        uint32_t high, all, below;
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(level[3]), "r"(level[2]));
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(level[1]), "r"(level[0]), "r"(high));
        asm("prmt.b32 %0, %1, 0, 0xBA98;" : "=r"(below) : "r"(all)); /* each byte's sign, eight times */
        return (all & ~(below & floor)) ^ flip;
    }

    static __device__ __forceinline__ int32_t middle_of(grt_dtype y)
    {
        return y == GRT_DTYPE_INT8 ? 0 : 128;
    }
};

/* The low bytes, a's first. */
static __device__ __forceinline__ uint32_t cuda_qword(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

#endif
