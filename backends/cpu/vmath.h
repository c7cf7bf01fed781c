/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions in float32 that the compiler can vectorise: no branches, no tables, no calls.
 *
 * Polynomials are minimax fits (weighted for relative error) made for these intervals; the remaining error is
 * that of a few float32 roundings, 1 to 4 units in the last place where the result is normal. NaN in, NaN
 * out. Nothing here converts a float to an integer by a cast, which would be undefined for NaN: integers are
 * read off the bits after adding a large constant. */
#ifndef GRT_BACKENDS_CPU_VMATH_H
#define GRT_BACKENDS_CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float vm_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t vm_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline float vm_abs(float x)
{
    return vm_float(vm_bits(x) & 0x7fffffffu);
}
static inline float vm_copysign(float x, float sign)
{
    return vm_float((vm_bits(x) & 0x7fffffffu) | (vm_bits(sign) & 0x80000000u));
}

#define VM_ROUND 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */

/* x = n ln2 + r, |r| <= ln2 / 2: returns e^r - 1 and the bits whose low part is n. */
static inline float vm_exp_reduce(float x, uint32_t *out_n)
{
    float t = x * 1.44269504f + VM_ROUND;
    *out_n = vm_bits(t) - vm_bits(VM_ROUND);
    t -= VM_ROUND;
    float r = (x - t * 0.693359375f) - t * -2.12194440e-4f;
    float p = 1.395171466e-03f;
    p = p * r + 8.369598665e-03f;
    p = p * r + 4.166618732e-02f;
    p = p * r + 1.666651289e-01f;
    p = p * r + 5.000000101e-01f;
    return p * r * r + r;
}
/* 2^n for n in [-126, 127] */
static inline float vm_exp2i(uint32_t n)
{
    return vm_float((n + 127u) << 23);
}

static inline float vm_exp(float x)
{
    uint32_t n;
    x = x < -104.0f ? -104.0f : x; /* e^-104 rounds to 0, e^89 to infinity: the ends come out by themselves */
    x = x > 89.0f ? 89.0f : x;
    float q = vm_exp_reduce(x, &n);
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    return (1.0f + q) * vm_exp2i(half) * vm_exp2i(n - half);
}

static inline float vm_expm1(float x)
{
    uint32_t n;
    float c = x < -25.0f ? -25.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float q = vm_exp_reduce(c, &n);
    float s = vm_exp2i(n - 1u); /* half the scale, as 2^128 is no float */
    float y = (s * q + (s - 0.5f)) * 2.0f;
    return vm_abs(x) < 1e-7f ? x : y;
}

static inline float vm_log(float x)
{
    float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    float scaled = tiny != 0.0f ? x * 16777216.0f : x;
    /* m in [sqrt(1/2), sqrt(2)) */
    uint32_t bits = vm_bits(scaled) - 0x3f3504f3u;
    float e = (float)((int32_t)bits >> 23) - tiny * 24.0f;
    float f = vm_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = -7.926650500e-02f;
    p = p * f + 1.297510452e-01f;
    p = p * f + -1.314607150e-01f;
    p = p * f + 1.416902954e-01f;
    p = p * f + -1.662172310e-01f;
    p = p * f + 2.000274977e-01f;
    p = p * f + -2.500089467e-01f;
    p = p * f + 3.333331177e-01f;
    float f2 = f * f;
    float y = f2 * f * p + e * -2.12194440e-4f - 0.5f * f2 + f + e * 0.693359375f;
    y = x < INFINITY ? y : x; /* infinity and NaN */
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : y;
}
/* ln(1 + t) for t >= 0 */
static inline float vm_log1p_positive(float t)
{
    float u = 1.0f + t;
    float lost = t - (u - 1.0f);
    return vm_log(u) + lost / u;
}

static inline float vm_sigmoid(float x)
{
    return 1.0f / (1.0f + vm_exp(-x));
}

static inline float vm_tanh(float x)
{
    float z = x * x;
    float p = -5.543100981e-03f;
    p = p * z + 2.049662335e-02f;
    p = p * z + -5.369713036e-02f;
    p = p * z + 1.333095018e-01f;
    p = p * z + -3.333326474e-01f;
    float small = p * z * x + x;
    float a = vm_abs(x);
    float large = 1.0f - 2.0f / (vm_exp(2.0f * a) + 1.0f);
    return a < 0.625f ? small : vm_copysign(large, x);
}

/* erf(x) / x for z = x^2 <= 0.9 */
static inline float vm_erf_small(float z)
{
    float p = 8.223980702e-05f;
    p = p * z + -8.108081062e-04f;
    p = p * z + 5.197991664e-03f;
    p = p * z + -2.685818582e-02f;
    p = p * z + 1.128367407e-01f;
    p = p * z + -3.761263239e-01f;
    return p * z + 1.128379167e+00f;
}
/* erfc(u) for u >= 0.9: e^-u^2 times a polynomial in 1 / (1 + u/2) */
static inline float vm_erfc_large(float u)
{
    float t = 1.0f / (1.0f + 0.5f * u);
    float p = 7.620214153e-02f;
    p = p * t + -1.709379926e-01f;
    p = p * t + 7.149767739e-03f;
    p = p * t + 1.178476805e-01f;
    p = p * t + 1.528095092e-01f;
    p = p * t + 2.543056428e-01f;
    p = p * t + 2.807871765e-01f;
    p = p * t + 2.822161763e-01f;
    p = p * t + -4.672896921e-06f;
    return p * vm_exp(-u * u);
}
static inline float vm_erf(float x)
{
    float a = vm_abs(x);
    float large = vm_copysign(1.0f - vm_erfc_large(a), x);
    return a < 0.92f ? x * vm_erf_small(x * x) : large;
}

/* x * Phi(x). The tail x < 0 goes through erfc, where 1 + erf would cancel. */
static inline float vm_gelu(float x)
{
    float u = x * 0.707106781186547524f, a = vm_abs(u), h = 0.5f * x;
    float middle = h + h * (u * vm_erf_small(u * u));
    a = a < 14.0f ? a : 14.0f; /* erfc is 0 long before; keeps infinity out of the products */
    float tail = vm_erfc_large(a);
    tail = x < 0.0f ? (tail == 0.0f ? 0.0f : h * tail) : x - (tail == 0.0f ? 0.0f : h * tail);
    return vm_abs(u) < 0.92f ? middle : (x != x ? x : tail);
}

/* sin(x + quarters * pi / 2) for |x| <= VM_MOST_ANGLE, in double: x = n pi / 2 + r, |r| <= pi / 4; pi / 2 in
 * two parts, whose first times n is exact. Polynomials are FreeBSD's for float32. */
#define VM_MOST_ANGLE 1e8f
static inline double vm_sine(float x, uint64_t quarters)
{
    double t = (double)x * 0.636619772367581343 + 0x1.8p52;
    uint64_t n, bits;
    memcpy(&n, &t, sizeof n);
    n += quarters;
    t -= 0x1.8p52;
    double r = ((double)x - t * 1.57079631090164184570) - t * 1.58932547735281966916e-08, z = r * r;
    double s = 2.7183114939898219064e-6;
    s = s * z - 1.98393348360966317347e-4;
    s = s * z + 8.3333293858894631756e-3;
    s = s * z - 1.66666666416265235595e-1;
    s = s * z * r + r;
    double c = 2.43904487962774090654e-5;
    c = c * z - 1.38867637746099294692e-3;
    c = c * z + 4.16666233237390631894e-2;
    c = c * z - 4.99999997251031003120e-1;
    c = c * z + 1.0;
    double y = n & 1u ? c : s;
    memcpy(&bits, &y, sizeof bits);
    bits ^= n << 62 & (uint64_t)1 << 63;
    memcpy(&y, &bits, sizeof y);
    return y;
}
static inline float vm_sin(float x)
{
    float y = (float)vm_sine(x, 0);
    return x == 0.0f ? x : y; /* keeps the sign of 0 */
}
static inline float vm_cos(float x)
{
    return (float)vm_sine(x, 1);
}

/* Inverse circular functions are base + m + (low + m z P(z)): m is the argument that the polynomial gets,
 * with its sign and factor, z its square; base and low are a multiple of pi / 2 in two parts. So only small
 * numbers are added to the exact base + m. */
#define VM_HALF_PI     1.57079637e+00f
#define VM_HALF_PI_LOW -4.37113883e-08f

/* asin(s) / s - 1 for z = s^2 <= 1/4 */
static inline float vm_asin_rest(float z)
{
    float p = 4.221856857e-02f;
    p = p * z + 2.414760003e-02f;
    p = p * z + 4.547709903e-02f;
    p = p * z + 7.495241769e-02f;
    p = p * z + 1.666675393e-01f;
    return p * z;
}
/* asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)) from 1/2 on; beyond 1 that is the root of a negative number.
 * What base + m loses where it is just above 1, and the result below, is given back. */
static inline float vm_asin(float x)
{
    float a = vm_abs(x), half = 0.5f - 0.5f * a, z = a > 0.5f ? half : a * a;
    float m = a > 0.5f ? -2.0f * sqrtf(half) : a, base = a > 0.5f ? VM_HALF_PI : 0.0f;
    float low = a > 0.5f ? VM_HALF_PI_LOW : 0.0f, sum = base + m, lost = m - (sum - base);
    return vm_copysign(sum + (lost + low + m * vm_asin_rest(z)), x);
}
/* pi / 2 - asin(x); 2 asin(sqrt((1 - x) / 2)) from 1/2 on, pi less as much for -x */
static inline float vm_acos(float x)
{
    float a = vm_abs(x), half = 0.5f - 0.5f * a, z = a > 0.5f ? half : a * a;
    float m = a > 0.5f ? vm_copysign(2.0f * sqrtf(half), x) : -x;
    float turns = a > 0.5f ? (x < 0.0f ? 2.0f : 0.0f) : 1.0f;
    return (turns * VM_HALF_PI + m) + (turns * VM_HALF_PI_LOW + m * vm_asin_rest(z));
}
/* atan(x) = pi / 2 - atan(1 / x) from 1 on */
static inline float vm_atan(float x)
{
    float a = vm_abs(x), m = a > 1.0f ? -1.0f / a : a, z = m * m;
    float p = -1.827214272e-03f;
    p = p * z + 1.106444707e-02f;
    p = p * z + -3.145571391e-02f;
    p = p * z + 5.823456421e-02f;
    p = p * z + -8.419460103e-02f;
    p = p * z + 1.095757663e-01f;
    p = p * z + -1.426524550e-01f;
    p = p * z + 1.999863863e-01f;
    p = p * z + -3.333330187e-01f;
    float base = a > 1.0f ? VM_HALF_PI : 0.0f, low = a > 1.0f ? VM_HALF_PI_LOW : 0.0f;
    return vm_copysign((base + m) + (low + m * (p * z)), x);
}

/* x tanh(ln(1 + e^x)) = x w (w + 2) / (w (w + 2) + 2), w = e^x */
static inline float vm_mish(float x)
{
    float w = vm_exp(x < 20.0f ? x : 20.0f); /* from there on the fraction is 1 */
    float n = w * (w + 2.0f);
    return x * (n / (n + 2.0f));
}

static inline float vm_unit(float x)
{
    x = x < 0.0f ? 0.0f : x;
    return x > 1.0f ? 1.0f : x;
}

#endif
