/* SPDX-License-Identifier: Apache-2.0 */
/* Activations: the scalar formulas that every CPU kernel applies to float32 results.
 *
 * They are branch-free arithmetic, so that a loop over them marked `omp simd` becomes vector code for
 * whatever instruction set the calling function is compiled for. One definition serves the GEMM epilogue,
 * oneDNN's fallbacks and recurrent layers, so that they agree bit for bit on the same machine; act_avx2.h and
 * act_avx512.h have that of the costlier ones for their instruction sets. */
#ifndef GRT_BACKENDS_CPU_ACT_H
#define GRT_BACKENDS_CPU_ACT_H

#include "src/base/activation.h"

#include <stdint.h>
#include <string.h>

/* GCC refuses to turn a conditional expression into a vector select while a floating-point operation in one
 * of its arms might trap. Nothing here unmasks floating-point exceptions; without this the loops below stay
 * scalar and cost 10 times as much. It holds for the rest of the including file. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#define GRT_ACT_INLINE static inline __attribute__((always_inline))

/* Comparisons are written so that NaN goes through: NaN < x is false, and the other arm keeps v. */
GRT_ACT_INLINE float grt_act_at_least(float v, float low)
{
    return v < low ? low : v;
}

GRT_ACT_INLINE float grt_act_at_most(float v, float high)
{
    return v > high ? high : v;
}

/* e^v * 2^-lower for v within the clamps of its two callers. Chains of dependent operations are kept short:
 * what a core can look ahead is little more than one of them. */
GRT_ACT_INLINE float grt_act_exp_clamped(float v, int32_t lower)
{
    /* Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low mantissa bits. */
    float shifted = v * 1.44269504f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = (v - n * 0.693359375f) + n * 2.12194440e-4f, r2 = r * r;
    float low = 1.6666665459e-1f * r + 5.0000001201e-1f;
    float mid = 8.3334519073e-3f * r + 4.1665795894e-2f;
    float high = 1.9875691500e-4f * r + 1.3981999507e-3f;
    float p = ((high * r2 + mid) * r2 + low) * r2 + (r + 1.0f);
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    uint32_t scale_bits = (uint32_t)(bits - 0x4B400000 + 127 - lower) << 23;
    float scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    return p * scale;
}

/* e^x within 2 ulp; 0 below -87 (no denormals), infinity above 88.7, NaN for NaN. At the clamps the ends come
 * out by themselves: the smallest exponent gives a scale of zero, the largest overflows. It is one more than
 * a float's exponent can say: scale by 2^(n-1), then by 2. */
GRT_ACT_INLINE float grt_act_exp(float x)
{
    return grt_act_exp_clamped(grt_act_at_most(grt_act_at_least(x, -87.33654f), 89.0f), 1) * 2.0f;
}

/* The same for arguments that do not come near the upper end. */
GRT_ACT_INLINE float grt_act_exp_low(float x)
{
    return grt_act_exp_clamped(grt_act_at_least(x, -88.02969f), 0);
}

GRT_ACT_INLINE float grt_act_sigmoid(float x)
{
    return 1.0f / (1.0f + grt_act_exp(-x));
}

/* tanh: an odd polynomial where 1 - 2/(e^2x + 1) would cancel, that formula elsewhere. */
GRT_ACT_INLINE float grt_act_tanh(float x)
{
    float s = x * x;
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    float small = p * s * x + x;
    float big = 1.0f - 2.0f / (grt_act_exp(2.0f * x) + 1.0f);
    return s < 0.390625f ? small : big;
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|), the logarithm as 2 * artanh(t / (2 + t)) on t in (0, 1]. */
GRT_ACT_INLINE float grt_act_softplus(float x)
{
    float t = grt_act_exp(x > 0.0f ? -x : x);
    float q = t / (2.0f + t);
    float s = q * q;
    float p = 1.0f / 13.0f;
    p = p * s + 1.0f / 11.0f;
    p = p * s + 1.0f / 9.0f;
    p = p * s + 1.0f / 7.0f;
    p = p * s + 1.0f / 5.0f;
    p = p * s + 1.0f / 3.0f;
    p = p * s + 1.0f;
    return grt_act_at_least(x, 0.0f) + 2.0f * q * p;
}

/* x * Phi(x). The complementary error function keeps its relative accuracy in the tail, where 1 + erf(x)
 * would lose all of it: for z >= 0, erfc(z) = t * exp(-z^2 + P(t)) with t = 1 / (1 + z / 2). Both signs are
 * max(x, 0) - |x| * erfc(z) / 2. Beyond 40 that tail is zero, and must not meet an infinite factor; the limit
 * is set on the bits, which order as the absolute values do. NaN stays in the first term. */
GRT_ACT_INLINE float grt_act_gelu_erf(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffffu;
    bits = bits < 0x42200000u ? bits : 0x42200000u;
    float a;
    memcpy(&a, &bits, sizeof a);
    float z = a * 0.70710678f, t = 1.0f / (1.0f + a * 0.35355339f), t2 = t * t, t4 = t2 * t2;
    float p0 = 1.00002368f * t - 1.26551223f, p1 = 0.09678418f * t + 0.37409196f;
    float p2 = 0.27886807f * t - 0.18628806f, p3 = 1.48851587f * t - 1.13520398f;
    float p4 = 0.17087277f * t - 0.82215223f;
    float p = (p4 * t4 + (p3 * t2 + p2)) * t4 + (p1 * t2 + p0);
    return grt_act_at_least(x, 0.0f) - 0.5f * a * t * grt_act_exp_low(p - z * z);
}

GRT_ACT_INLINE float grt_act_gelu_tanh(float x)
{
    /* 0.5 * (1 + tanh(u)) is sigmoid(2u), which does not cancel for negative u. */
    float u = 1.5957691216f * (x + 0.044715f * x * x * x);
    return x * grt_act_sigmoid(u);
}

/* One activation over n floats in place; `kind` is resolved outside the loop. */
#define GRT_ACT_LOOP(expr)                                  \
    do {                                                    \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
        {                                                   \
            const float x = v[i];                           \
            v[i] = (expr);                                  \
        }                                                   \
    } while (0)

GRT_ACT_INLINE void grt_act_apply(grt_act act, float *v, int64_t n)
{
    const float a = act.a, b = act.b;
    switch (act.kind) {
    case GRT_ACT_NONE:
        break;
    case GRT_ACT_RELU:
        GRT_ACT_LOOP(grt_act_at_least(x, 0.0f));
        break;
    case GRT_ACT_LEAKY_RELU:
        GRT_ACT_LOOP(x < 0.0f ? a * x : x);
        break;
    case GRT_ACT_CLIP:
        GRT_ACT_LOOP(grt_act_at_most(grt_act_at_least(x, a), b));
        break;
    case GRT_ACT_ELU:
        GRT_ACT_LOOP(x < 0.0f ? a * (grt_act_exp(x) - 1.0f) : x);
        break;
    case GRT_ACT_SIGMOID:
        GRT_ACT_LOOP(grt_act_sigmoid(x));
        break;
    case GRT_ACT_TANH:
        GRT_ACT_LOOP(grt_act_tanh(x));
        break;
    case GRT_ACT_SILU:
        GRT_ACT_LOOP(x * grt_act_sigmoid(a * x));
        break;
    case GRT_ACT_GELU_ERF:
        GRT_ACT_LOOP(grt_act_gelu_erf(x));
        break;
    case GRT_ACT_GELU_TANH:
        GRT_ACT_LOOP(grt_act_gelu_tanh(x));
        break;
    case GRT_ACT_HARD_SIGMOID:
        GRT_ACT_LOOP(grt_act_at_most(grt_act_at_least(a * x + b, 0.0f), 1.0f));
        break;
    case GRT_ACT_HARD_SWISH:
        GRT_ACT_LOOP(x * grt_act_at_most(grt_act_at_least(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f));
        break;
    case GRT_ACT_SOFTPLUS:
        GRT_ACT_LOOP(grt_act_softplus(x));
        break;
    }
}

#endif
