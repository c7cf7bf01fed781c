/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear of one number, to 8 or 16 bits or to float8, with a float32 scale. */
#ifndef GRT_BACKENDS_CUDA_QUANTISER_CUH
#define GRT_BACKENDS_CUDA_QUANTISER_CUH

#include "backends/cuda/float8.cuh"

/* The scale's inverse is taken once: with what is left of a product by it, the quotient is rounded as a
 * division's. Scales whose inverse is not accurate are multiplied by a power of two, and numbers by the same
 * one. */
struct cuda_quotient {
    float unit, scale, inverse;

    __device__ __forceinline__ explicit cuda_quotient(float of)
    {
        const float far = 1e30f, power = 18446744073709551616.0f;
        unit = fabsf(of) < 1 / far ? power : fabsf(of) > far ? 1 / power : 1.0f;
        scale = of * unit;
        inverse = 1.0f / scale;
        if (isinf(scale)) /* nothing is left */
            scale = 0;
    }
    /* Of 1e6 and more it may be off by a unit of the last place: all types are limited to less. */
    __device__ __forceinline__ float operator()(float x) const
    {
        const float v = x * unit, q = __fmul_rn(v, inverse), rest = __fmaf_rn(-q, scale, v);
        return fabsf(q) < 1e6f ? __fmaf_rn(rest, inverse, q) : q; /* infinity stays, and NaN */
    }
    /* Of numbers whose quotients are below that, by a scale whose unit is one. */
    __device__ __forceinline__ float finite(float x) const
    {
        const float q = __fmul_rn(x, inverse);
        return __fmaf_rn(__fmaf_rn(-q, scale, x), inverse, q);
    }
};

struct cuda_quantiser {
    cuda_quotient quotient;
    float low, high;
    int32_t zero;

    __device__ __forceinline__ cuda_quantiser(float of, int32_t zero_point, int bits, bool is_signed)
        : quotient(of), zero(zero_point)
    {
        const int32_t least = is_signed ? -(1 << (bits - 1)) : 0;
        low = (float)(least - zero);
        high = (float)(least + (1 << bits) - 1 - zero);
    }
    /* In the low bits; what is above means nothing. */
    __device__ __forceinline__ int32_t operator()(float x) const
    {
        const float q = fminf(fmaxf(quotient(x), low), high);    /* NaN becomes the least */
        return __float_as_int(__fadd_rn(q, 12582912.0f)) + zero; /* the sum's low bits are the integer */
    }
};

#endif
