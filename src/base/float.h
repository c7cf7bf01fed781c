/* The small float formats, converted to and from float32. Round to nearest even; NaN stays NaN. */
#ifndef GRT_BASE_FLOAT_H
#define GRT_BASE_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline float grt_bits_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t grt_float_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* IEEE binary16. */
static inline float grt_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f)
        return grt_bits_to_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent)
        return grt_bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float f = (float)mantissa * 0x1p-24f;
    return sign ? -f : f;
}
static inline uint16_t grt_float_to_half(float f)
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
static inline float grt_bfloat16_to_float(uint16_t h)
{
    return grt_bits_to_float((uint32_t)h << 16);
}
static inline uint16_t grt_float_to_bfloat16(float f)
{
    uint32_t bits = grt_float_to_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
