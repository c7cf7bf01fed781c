/* SPDX-License-Identifier: Apache-2.0 */
/* Activations on vectors of 8 with AVX2: what act.h says of their results holds here.
 *
 * Compilers turn the clamps of act.h into comparisons and blends around the arithmetic, which is then twice
 * as many instructions as these. The exponent of a power of two is in the low bits of a rounded sum, so that
 * one shift makes the scale. */
#ifndef GRT_BACKENDS_CPU_ACT_AVX2_H
#define GRT_BACKENDS_CPU_ACT_AVX2_H

#include "backends/cpu/act.h"

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define CPU_HAS_ACT_AVX2 1

#include <immintrin.h>

#define ACT_AVX2 static inline __attribute__((always_inline, target("avx2,fma")))

/* A power of e as (1 + r + r^2 p) * scale, from x = n ln2 + r. */
typedef struct act_avx2_power {
    __m256 r, p, scale;
} act_avx2_power;

/* Of sign * x, with scale = 2^(n - lower); n - lower is at least -127, where the scale is zero, and at most
 * 127. `sign` is 1 or -1, a constant where this is inlined. Coefficients are those of vmath.h. */
ACT_AVX2 act_avx2_power act_avx2_reduce(__m256 x, int sign, int lower)
{
    /* 1.5 * 2^23 leaves an integer in the low bits of the mantissa; 127 - lower makes it an exponent. */
    const __m256 magic = _mm256_set1_ps(12582912.0f + (float)(127 - lower));
    const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps((float)sign * 1.44269504f), magic);
    const __m256 n = _mm256_sub_ps(shifted, magic), ln2 = _mm256_set1_ps(0.693359375f);
    const __m256 near = sign < 0 ? _mm256_fnmsub_ps(n, ln2, x) : _mm256_fnmadd_ps(n, ln2, x);
    const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), near);
    __m256 p = _mm256_set1_ps(1.395171466e-03f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.369598665e-03f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.166618732e-02f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.666651289e-01f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.000000101e-01f));
    return (act_avx2_power){r, p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23))};
}

ACT_AVX2 __m256 act_avx2_scaled(act_avx2_power e)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    return _mm256_mul_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(e.p, e.r, one), e.r, one), e.scale);
}

/* Maxima and minima give their second operand for NaN. */
ACT_AVX2 __m256 act_avx2_clamp(__m256 x, float low, float high)
{
    return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), x));
}

/* e^x within denormals, too: the scale is two factors, either of which is a normal number, or zero at the
 * lower clamp, as Intel's processors leave an underflow to microcode. */
ACT_AVX2 __m256 act_avx2_exp(__m256 x)
{
    const __m256 halves = act_avx2_clamp(x, -176.0f, 89.0f); /* 2^-254: two factors without bits */
    const act_avx2_power e = act_avx2_reduce(halves, 1, 0);
    const __m256i one = _mm256_set1_epi32(0x3f800000);
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(e.scale), one);
    const __m256i first = _mm256_and_si256(_mm256_srai_epi32(n, 1), _mm256_set1_epi32(~0x7fffff));
    const __m256 rest = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_sub_epi32(n, first), one));
    act_avx2_power part = e;
    part.scale = _mm256_castsi256_ps(_mm256_add_epi32(first, one));
    return _mm256_mul_ps(act_avx2_scaled(part), rest);
}

/* x P(x^2) / Q(x^2): a fit of least relative error (2e-8) up to the point where erf rounds to 1, whose
 * coefficients have one sign, so that no sum cancels. */
ACT_AVX2 __m256 act_avx2_erf(__m256 x)
{
    const __m256 v = act_avx2_clamp(x, -3.93f, 3.93f), z = _mm256_mul_ps(v, v);
    __m256 p = _mm256_set1_ps(2.041909850e-06f), q = _mm256_set1_ps(3.800296943e-05f);
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(2.847996701e-04f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(1.165170527e-03f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(3.779484150e-03f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(1.499719934e-02f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(5.278990000e-02f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(1.142565605e-01f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.907817536e-01f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(5.024086483e-01f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.128379145e+00f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(1.0f));
    return act_avx2_clamp(_mm256_div_ps(_mm256_mul_ps(v, p), q), -1.0f, 1.0f);
}

/* y / (1 + e^-x): y times the sigmoid of x. At the clamps e^-x is zero and infinite; half of it is in range
 * longer, and doubled in the sum. */
ACT_AVX2 __m256 act_avx2_gate(__m256 y, __m256 x)
{
    const __m256 half = act_avx2_scaled(act_avx2_reduce(act_avx2_clamp(x, -89.0f, 87.33654f), -1, 1));
    return _mm256_div_ps(y, _mm256_fmadd_ps(half, _mm256_set1_ps(2.0f), _mm256_set1_ps(1.0f)));
}

/* x P(x^2) / Q(x^2), as for erf. */
ACT_AVX2 __m256 act_avx2_tanh(__m256 x)
{
    const __m256 v = act_avx2_clamp(x, -9.02f, 9.02f), z = _mm256_mul_ps(v, v);
    __m256 p = _mm256_set1_ps(1.331912468e-08f), q = _mm256_set1_ps(7.762042867e-07f);
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(2.058352560e-05f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(3.283097505e-04f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(3.494037534e-03f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(2.587108481e-02f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.337972054e-01f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(4.671303579e-01f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.0f));
    q = _mm256_fmadd_ps(q, z, _mm256_set1_ps(1.0f));
    return act_avx2_clamp(_mm256_div_ps(_mm256_mul_ps(v, p), q), -1.0f, 1.0f);
}

/* max(x, 0) - t erfc(t / sqrt(2)) / 2 with t = |x|, and erfc as the power -16 of a polynomial: a fit of least
 * relative error on [0, 6], 1.7e-7 of erfc. Behind 6 results are below 1e-8, and off by less than 1e-13; at
 * 40 the power is infinite. Sums by even and odd terms wait less for each other. */
ACT_AVX2 __m256 act_avx2_gelu_erf(__m256 x)
{
    const __m256 t = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), _mm256_set1_ps(40.0f));
    const __m256 z = _mm256_mul_ps(t, t);
    __m256 even = _mm256_set1_ps(2.721334128e-09f), odd = _mm256_set1_ps(-5.598521000e-08f);
    even = _mm256_fmadd_ps(even, z, _mm256_set1_ps(6.354785776e-07f));
    odd = _mm256_fmadd_ps(odd, z, _mm256_set1_ps(-3.351279810e-06f));
    even = _mm256_fmadd_ps(even, z, _mm256_set1_ps(1.373668434e-05f));
    odd = _mm256_fmadd_ps(odd, z, _mm256_set1_ps(3.965656344e-05f));
    even = _mm256_fmadd_ps(even, z, _mm256_set1_ps(4.029565456e-05f));
    odd = _mm256_fmadd_ps(odd, z, _mm256_set1_ps(3.280553973e-03f));
    even = _mm256_fmadd_ps(even, z, _mm256_set1_ps(2.113923873e-02f));
    odd = _mm256_fmadd_ps(odd, z, _mm256_set1_ps(4.986756201e-02f));
    even = _mm256_fmadd_ps(even, z, _mm256_set1_ps(1.0f));
    __m256 p = _mm256_fmadd_ps(odd, t, even);
    p = _mm256_mul_ps(p, p);
    p = _mm256_mul_ps(p, p);
    p = _mm256_mul_ps(p, p);
    p = _mm256_mul_ps(p, p);
    return _mm256_fnmadd_ps(_mm256_div_ps(t, p), _mm256_set1_ps(0.5f), _mm256_max_ps(_mm256_setzero_ps(), x));
}

ACT_AVX2 __m256 act_avx2_gelu_tanh(__m256 x)
{
    const __m256 square = _mm256_mul_ps(x, x);
    const __m256 inner = _mm256_fmadd_ps(_mm256_mul_ps(square, _mm256_set1_ps(0.044715f)), x, x);
    return act_avx2_gate(x, _mm256_mul_ps(inner, _mm256_set1_ps(1.5957691216f)));
}

/* True for the kinds that act_avx2_of has. */
static inline bool act_avx2_has(grt_act_kind kind)
{
    return kind == GRT_ACT_SIGMOID || kind == GRT_ACT_TANH || kind == GRT_ACT_SILU ||
           kind == GRT_ACT_GELU_ERF || kind == GRT_ACT_GELU_TANH;
}

/* `kind` is a constant where this is inlined. Kinds that are not here are left alone: act.h has them. */
ACT_AVX2 __m256 act_avx2_of(grt_act_kind kind, float a, __m256 x)
{
    switch (kind) {
    case GRT_ACT_SIGMOID:
        return act_avx2_gate(_mm256_set1_ps(1.0f), x);
    case GRT_ACT_TANH:
        return act_avx2_tanh(x);
    case GRT_ACT_SILU:
        return act_avx2_gate(x, _mm256_mul_ps(_mm256_set1_ps(a), x));
    case GRT_ACT_GELU_ERF:
        return act_avx2_gelu_erf(x);
    case GRT_ACT_GELU_TANH:
        return act_avx2_gelu_tanh(x);
    default:
        return x;
    }
}

enum { ACT_AVX2_LANES = 8 };

/* n floats, fewer than a vector. */
ACT_AVX2 __m256 act_avx2_get(const float *from, int64_t n)
{
    float whole[ACT_AVX2_LANES] = {0};
    memcpy(whole, from, (size_t)n * sizeof *from);
    return _mm256_loadu_ps(whole);
}

ACT_AVX2 void act_avx2_put(float *to, int64_t n, __m256 v)
{
    float whole[ACT_AVX2_LANES];
    _mm256_storeu_ps(whole, v);
    memcpy(to, whole, (size_t)n * sizeof *to);
}

#define ACT_AVX2_KIND(KIND)                                                                   \
    case KIND:                                                                                \
        for (; i + ACT_AVX2_LANES <= n; i += ACT_AVX2_LANES)                                  \
            _mm256_storeu_ps(v + i, act_avx2_of(KIND, act.a, _mm256_loadu_ps(v + i)));        \
        if (i < n)                                                                            \
            act_avx2_put(v + i, n - i, act_avx2_of(KIND, act.a, act_avx2_get(v + i, n - i))); \
        return

/* grt_act_apply by these. */
ACT_AVX2 void act_avx2_apply(grt_act act, float *v, int64_t n)
{
    int64_t i = 0;
    switch (act.kind) {
        ACT_AVX2_KIND(GRT_ACT_SIGMOID);
        ACT_AVX2_KIND(GRT_ACT_TANH);
        ACT_AVX2_KIND(GRT_ACT_SILU);
        ACT_AVX2_KIND(GRT_ACT_GELU_ERF);
        ACT_AVX2_KIND(GRT_ACT_GELU_TANH);
    default:
        grt_act_apply(act, v, n);
    }
}

#undef ACT_AVX2_KIND
#endif
#endif
