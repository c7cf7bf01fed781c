/* SPDX-License-Identifier: Apache-2.0 */
/* Activations on vectors of 16 with AVX-512: what act.h and vmath.h say of their results holds here.
 *
 * An instruction that scales by a power of two takes the place of arithmetic on exponents, and underflows and
 * overflows by itself. Divisions have a unit of their own, beside which the polynomials go on: they cost
 * nothing more. The including file has CPU_HAS_AVX512_COPY. */
#ifndef GRT_BACKENDS_CPU_ACT_AVX512_H
#define GRT_BACKENDS_CPU_ACT_AVX512_H

#include "backends/cpu/act.h"

#include <immintrin.h>

#define ACT_AVX512 \
    static inline __attribute__((always_inline, target("avx512f,avx512vl,avx512dq,avx512bw,fma")))

/* x = n ln2 + r, |r| <= ln2 / 2: returns (e^r - 1 - r) / r^2. Coefficients are those of vmath.h. */
ACT_AVX512 __m512 act_avx512_reduce(__m512 x, __m512 *out_n, __m512 *out_r)
{
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.395171466e-03f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.369598665e-03f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.166618732e-02f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.666651289e-01f));
    *out_n = n;
    *out_r = r;
    return _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.000000101e-01f));
}

/* Maxima and minima give their second operand for NaN. */
ACT_AVX512 __m512 act_avx512_clamp(__m512 x, float low, float high)
{
    return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
}

/* e^89 rounds to infinity, by itself. */
ACT_AVX512 __m512 act_avx512_power(__m512 x, __mmask16 lanes)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 n, r, p = act_avx512_reduce(x, &n, &r);
    p = _mm512_fmadd_ps(p, r, one);
    return _mm512_maskz_scalef_ps(lanes, _mm512_fmadd_ps(p, r, one), n);
}

/* e^-104 rounds to 0; a mask makes it so, as Intel's processors leave an underflow to microcode. */
ACT_AVX512 __m512 act_avx512_exp(__m512 x)
{
    const __mmask16 above = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-104.0f), _CMP_NLT_UQ);
    return act_avx512_power(_mm512_min_ps(_mm512_set1_ps(89.0f), x), above);
}

/* x P(x^2) / Q(x^2): a fit of least relative error (2e-8) up to the point where erf rounds to 1, whose
 * coefficients have one sign, so that no sum cancels. */
ACT_AVX512 __m512 act_avx512_erf(__m512 x)
{
    const __m512 v = act_avx512_clamp(x, -3.93f, 3.93f), z = _mm512_mul_ps(v, v);
    __m512 p = _mm512_set1_ps(2.041909850e-06f), q = _mm512_set1_ps(3.800296943e-05f);
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(2.847996701e-04f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(1.165170527e-03f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(3.779484150e-03f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(1.499719934e-02f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(5.278990000e-02f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(1.142565605e-01f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(1.907817536e-01f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(5.024086483e-01f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(1.128379145e+00f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(1.0f));
    return act_avx512_clamp(_mm512_div_ps(_mm512_mul_ps(v, p), q), -1.0f, 1.0f);
}

/* y / (1 + e^-x): y times the sigmoid of x. What is below e^-87 is nothing beside 1, and at e^-87.4 and less
 * it would underflow. */
ACT_AVX512 __m512 act_avx512_gate(__m512 y, __m512 x)
{
    const __m512 v = act_avx512_clamp(_mm512_sub_ps(_mm512_setzero_ps(), x), -87.0f, 89.0f);
    return _mm512_div_ps(y, _mm512_add_ps(act_avx512_power(v, 0xffff), _mm512_set1_ps(1.0f)));
}

/* x P(x^2) / Q(x^2), as for erf. */
ACT_AVX512 __m512 act_avx512_tanh(__m512 x)
{
    const __m512 v = act_avx512_clamp(x, -9.02f, 9.02f), z = _mm512_mul_ps(v, v);
    __m512 p = _mm512_set1_ps(1.331912468e-08f), q = _mm512_set1_ps(7.762042867e-07f);
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(2.058352560e-05f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(3.283097505e-04f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(3.494037534e-03f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(2.587108481e-02f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(1.337972054e-01f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(4.671303579e-01f));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(1.0f));
    q = _mm512_fmadd_ps(q, z, _mm512_set1_ps(1.0f));
    return act_avx512_clamp(_mm512_div_ps(_mm512_mul_ps(v, p), q), -1.0f, 1.0f);
}

/* max(x, 0) - t erfc(t / sqrt(2)) / 2 with t = |x|, and erfc as the power -16 of a polynomial: a fit of least
 * relative error on [0, 6], 1.7e-7 of erfc. Behind 6 results are below 1e-8, and off by less than 1e-13; at
 * 40 the power is infinite. Sums by even and odd terms wait less for each other. */
ACT_AVX512 __m512 act_avx512_gelu_erf(__m512 x)
{
    const __m512 t = _mm512_min_ps(_mm512_abs_ps(x), _mm512_set1_ps(40.0f));
    const __m512 z = _mm512_mul_ps(t, t);
    __m512 even = _mm512_set1_ps(2.721334128e-09f), odd = _mm512_set1_ps(-5.598521000e-08f);
    even = _mm512_fmadd_ps(even, z, _mm512_set1_ps(6.354785776e-07f));
    odd = _mm512_fmadd_ps(odd, z, _mm512_set1_ps(-3.351279810e-06f));
    even = _mm512_fmadd_ps(even, z, _mm512_set1_ps(1.373668434e-05f));
    odd = _mm512_fmadd_ps(odd, z, _mm512_set1_ps(3.965656344e-05f));
    even = _mm512_fmadd_ps(even, z, _mm512_set1_ps(4.029565456e-05f));
    odd = _mm512_fmadd_ps(odd, z, _mm512_set1_ps(3.280553973e-03f));
    even = _mm512_fmadd_ps(even, z, _mm512_set1_ps(2.113923873e-02f));
    odd = _mm512_fmadd_ps(odd, z, _mm512_set1_ps(4.986756201e-02f));
    even = _mm512_fmadd_ps(even, z, _mm512_set1_ps(1.0f));
    __m512 p = _mm512_fmadd_ps(odd, t, even);
    p = _mm512_mul_ps(p, p);
    p = _mm512_mul_ps(p, p);
    p = _mm512_mul_ps(p, p);
    p = _mm512_mul_ps(p, p);
    return _mm512_fnmadd_ps(_mm512_div_ps(t, p), _mm512_set1_ps(0.5f), _mm512_max_ps(_mm512_setzero_ps(), x));
}

ACT_AVX512 __m512 act_avx512_gelu_tanh(__m512 x)
{
    const __m512 square = _mm512_mul_ps(x, x);
    const __m512 inner = _mm512_fmadd_ps(_mm512_mul_ps(square, _mm512_set1_ps(0.044715f)), x, x);
    return act_avx512_gate(x, _mm512_mul_ps(inner, _mm512_set1_ps(1.5957691216f)));
}

/* The first n lanes, at most all. */
ACT_AVX512 __mmask16 act_avx512_lanes(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1u);
}

/* `kind` is a constant where this is inlined. Kinds that are not here are left alone: act.h has them. */
ACT_AVX512 __m512 act_avx512_of(grt_act_kind kind, float a, __m512 x)
{
    switch (kind) {
    case GRT_ACT_SIGMOID:
        return act_avx512_gate(_mm512_set1_ps(1.0f), x);
    case GRT_ACT_TANH:
        return act_avx512_tanh(x);
    case GRT_ACT_SILU:
        return act_avx512_gate(x, _mm512_mul_ps(_mm512_set1_ps(a), x));
    case GRT_ACT_GELU_ERF:
        return act_avx512_gelu_erf(x);
    case GRT_ACT_GELU_TANH:
        return act_avx512_gelu_tanh(x);
    default:
        return x;
    }
}

#endif
