/* SPDX-License-Identifier: Apache-2.0 */
/* The small float formats, converted to and from float32. Round to nearest even; NaN stays NaN. */
#ifndef GRT_BASE_FLOAT_H
#define GRT_BASE_FLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* For device code too. */
#ifdef __CUDACC__
#define GRT_INLINE static __host__ __device__ inline
#else
#define GRT_INLINE static inline
#endif

GRT_INLINE float grt_bits_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
GRT_INLINE uint32_t grt_float_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* IEEE binary16. */
GRT_INLINE float grt_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f)
        return grt_bits_to_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent)
        return grt_bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float f = (float)mantissa * 0x1p-24f;
    return sign ? -f : f;
}
GRT_INLINE uint16_t grt_float_to_half(float f)
{
    uint32_t bits = grt_float_to_bits(f), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* rounds to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* subnormal: let the FPU round at 2^-24 */
        float tiny = grt_bits_to_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (grt_float_to_bits(tiny) - 0x3f000000u));
    }
    uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude + 0xfffu + odd - 0x38000000u) >> 13);
}

/* bfloat16: the upper half of a float32. */
GRT_INLINE float grt_bfloat16_to_float(uint16_t h)
{
    return grt_bits_to_float((uint32_t)h << 16);
}
GRT_INLINE uint16_t grt_float_to_bfloat16(float f)
{
    uint32_t bits = grt_float_to_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* ---- 8 and 4 bits ----
 * A format has a sign, an exponent with a bias, and m bits of mantissa; all have subnormals. These two work
 * on magnitudes. */

/* Value of a finite code without its sign. */
GRT_INLINE float grt_small_to_float(uint32_t code, uint32_t m, uint32_t bias)
{
    uint32_t exponent = code >> m, mantissa = code & ((1u << m) - 1u);
    if (!exponent)
        return (float)mantissa * grt_bits_to_float((128u - bias - m) << 23);
    return grt_bits_to_float((exponent + 127u - bias) << 23 | mantissa << (23u - m));
}
/* Code of the nearest value to a finite f >= 0; larger than the format's largest code if f is out of its
 * range. */
GRT_INLINE uint32_t grt_float_to_small(float f, uint32_t m, uint32_t bias)
{
    uint32_t bits = grt_float_to_bits(f);
    if (bits < (128u - bias) << 23) { /* subnormal: let the FPU round to whole units */
        float units = f * grt_bits_to_float((126u + bias + m) << 23);
        return grt_float_to_bits(units + 0x1p23f) & 0x7fffffu;
    }
    uint32_t odd = bits >> (23u - m) & 1u;
    return (bits + ((1u << (22u - m)) - 1u) + odd - ((127u - bias) << 23)) >> (23u - m);
}

/* OCP and "fnuz" float8. `saturate`: what is out of range becomes the largest finite value, not NaN or
 * infinity. */
typedef struct grt_float8_format {
    uint32_t m, bias;
    uint8_t largest, overflow, nan; /* codes: largest finite, what overflow gives without saturation, NaN */
    bool unsigned_zero;             /* fnuz: there is no -0; its code is NaN, which has no sign */
} grt_float8_format;
#define GRT_FLOAT8_E4M3FN   ((grt_float8_format){3, 7, 0x7e, 0x7f, 0x7f, false})
#define GRT_FLOAT8_E4M3FNUZ ((grt_float8_format){3, 8, 0x7f, 0x80, 0x80, true})
#define GRT_FLOAT8_E5M2     ((grt_float8_format){2, 15, 0x7b, 0x7c, 0x7e, false})
#define GRT_FLOAT8_E5M2FNUZ ((grt_float8_format){2, 16, 0x7f, 0x80, 0x80, true})

GRT_INLINE float grt_float8_to_float(uint8_t code, grt_float8_format format)
{
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
    float f;
    if (format.unsigned_zero && code == 0x80u)
        return grt_bits_to_float(0x7fc00000u);
    if (magnitude > format.largest)
        f = grt_bits_to_float(magnitude == format.overflow && format.overflow != format.nan ? 0x7f800000u
                                                                                            : 0x7fc00000u);
    else
        f = grt_small_to_float(magnitude, format.m, format.bias);
    return grt_bits_to_float(grt_float_to_bits(f) | sign);
}
GRT_INLINE uint8_t grt_float_to_float8(float f, grt_float8_format format, bool saturate)
{
    uint32_t bits = grt_float_to_bits(f), magnitude = bits & 0x7fffffffu, code;
    uint8_t sign = (uint8_t)(bits >> 24 & 0x80u);
    if (magnitude > 0x7f800000u)
        code = format.nan;
    else if (magnitude == 0x7f800000u)
        code = saturate ? format.largest : format.overflow;
    else {
        code = grt_float_to_small(grt_bits_to_float(magnitude), format.m, format.bias);
        if (code > format.largest)
            code = saturate ? format.largest : format.overflow;
    }
    if (format.unsigned_zero && (code == 0 || code == format.nan))
        return (uint8_t)code;
    return (uint8_t)(sign | code);
}

/* Powers of two from 2^-127 (code 0) to 2^127; 0xff is NaN. */
typedef enum grt_rounding { GRT_ROUND_UP, GRT_ROUND_DOWN, GRT_ROUND_NEAREST } grt_rounding;
GRT_INLINE float grt_float8e8m0_to_float(uint8_t code)
{
    if (code == 0xff)
        return grt_bits_to_float(0x7fc00000u);
    return code ? grt_bits_to_float((uint32_t)code << 23) : 0x1p-127f;
}
/* The sign is ignored: ONNX leaves negative values undefined. */
GRT_INLINE uint8_t grt_float_to_float8e8m0(float f, grt_rounding rounding, bool saturate)
{
    uint32_t bits = grt_float_to_bits(f) & 0x7fffffffu, exponent = bits >> 23, fraction = bits & 0x7fffffu;
    if (bits > 0x7f800000u)
        return 0xff;
    if (bits == 0x7f800000u)
        return saturate ? 0xfe : 0xff;
    if (bits == 0)
        return saturate ? 0 : 0xff;
    if (exponent == 0) { /* below 2^-126: the code for 2^-127 is 0, the one above it 1 */
        if (fraction < 0x400000u)
            return saturate ? 0 : 0xff;
        fraction = (fraction - 0x400000u) << 1; /* of 2^-127 */
    }
    bool up =
        rounding == GRT_ROUND_UP ? fraction > 0 : rounding == GRT_ROUND_NEAREST && fraction >= 0x400000u;
    if (up && (exponent < 0xfe || !saturate))
        exponent++;
    return (uint8_t)exponent;
}

/* float4e2m1: 0 0.5 1 1.5 2 3 4 6, with sign; no infinity, no NaN. Out of range is the largest; NaN becomes a
 * zero of the other sign, which is what ONNX's reference makes of it. */
GRT_INLINE float grt_float4_to_float(uint8_t code)
{
    float f = grt_small_to_float(code & 7u, 1, 1);
    return code & 8u ? -f : f;
}
GRT_INLINE uint8_t grt_float_to_float4(float f)
{
    uint32_t bits = grt_float_to_bits(f), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return bits >> 31 ? 0 : 8;
    uint32_t code = magnitude < 0x7f800000u ? grt_float_to_small(grt_bits_to_float(magnitude), 1, 1) : 7u;
    return (uint8_t)((code > 7u ? 7u : code) | (bits >> 28 & 8u));
}

/* Nearest float that has an odd last bit unless exact: rounding it again, to a format of at most 22 bits of
 * precision, gives what rounding the double at once would have given. */
GRT_INLINE float grt_double_to_float_odd(double d)
{
    float f = (float)d;
    double back = (double)f;
    if (back == d || f != f || (grt_float_to_bits(f) & 0x7fffffffu) == 0x7f800000u)
        return f;
    uint32_t bits = grt_float_to_bits(f);
    if (bits & 1u)
        return f;
    /* The even neighbour was taken: go to the odd one on the other side of d. */
    bool away = (back < d) == (d > 0.0);
    return grt_bits_to_float(away ? bits + 1u : bits - 1u);
}

#endif
