/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/element.h"

#include <math.h>
#include <string.h>

/* A small float: exponent and mantissa bits and bias. Special values are the caller's business. */
static double small_float(unsigned bits, int mantissa_bits, int exponent_bits, int bias)
{
    unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
    double magnitude = exponent
                           ? ldexp((double)(mantissa | 1u << mantissa_bits), exponent - bias - mantissa_bits)
                           : ldexp((double)mantissa, 1 - bias - mantissa_bits);
    return negative ? -magnitude : magnitude;
}

static double half_to_double(unsigned bits)
{
    if ((bits >> 10 & 31) == 31)
        return bits & 1023 ? NAN : bits >> 15 ? -INFINITY : INFINITY;
    return small_float(bits, 10, 5, 15);
}

static double float8(grt_dtype dtype, unsigned bits)
{
    switch ((int)dtype) {
    case GRT_DTYPE_FLOAT8E4M3FN:
        return (bits & 127) == 127 ? NAN : small_float(bits, 3, 4, 7);
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
        return bits == 128 ? NAN : small_float(bits, 3, 4, 8);
    case GRT_DTYPE_FLOAT8E5M2:
        if ((bits & 124) == 124)
            return bits & 3 ? NAN : bits >> 7 ? -INFINITY : INFINITY;
        return small_float(bits, 2, 5, 15);
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
        return bits == 128 ? NAN : small_float(bits, 2, 5, 16);
    default: /* FLOAT8E8M0: an exponent only */
        return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
    }
}

static unsigned packed_element(const grt_tensor *t, int64_t i, int width)
{
    int64_t per_byte = 8 / width;
    return ((const unsigned char *)t->data)[i / per_byte] >> (i % per_byte * width) & ((1u << width) - 1);
}

static int sign_extend(unsigned bits, int width)
{
    return bits >> (width - 1) ? (int)bits - (1 << width) : (int)bits;
}

#define LOAD(type) \
    type v;        \
    memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v)
#define CASE(NAME, type)     \
    case GRT_DTYPE_##NAME: { \
        LOAD(type);          \
        return (double)v;    \
    }

double element_get(const grt_tensor *t, int64_t i)
{
    switch (t->dtype) {
        CASE(FLOAT, float)
        CASE(DOUBLE, double)
        CASE(UINT8, uint8_t)
        CASE(INT8, int8_t)
        CASE(UINT16, uint16_t)
        CASE(INT16, int16_t)
        CASE(INT32, int32_t)
        CASE(INT64, int64_t)
        CASE(UINT32, uint32_t)
        CASE(UINT64, uint64_t)
        CASE(BOOL, uint8_t)
    case GRT_DTYPE_FLOAT16: {
        LOAD(uint16_t);
        return half_to_double(v);
    }
    case GRT_DTYPE_BFLOAT16: {
        LOAD(uint16_t);
        uint32_t bits = (uint32_t)v << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    case GRT_DTYPE_COMPLEX64:
        return (double)((const float *)t->data)[2 * i];
    case GRT_DTYPE_COMPLEX128:
        return ((const double *)t->data)[2 * i];
    case GRT_DTYPE_FLOAT8E4M3FN:
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
    case GRT_DTYPE_FLOAT8E5M2:
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
    case GRT_DTYPE_FLOAT8E8M0:
        return float8(t->dtype, ((const unsigned char *)t->data)[i]);
    case GRT_DTYPE_UINT4:
        return packed_element(t, i, 4);
    case GRT_DTYPE_INT4:
        return sign_extend(packed_element(t, i, 4), 4);
    case GRT_DTYPE_FLOAT4E2M1:
        return small_float(packed_element(t, i, 4), 1, 2, 1);
    case GRT_DTYPE_UINT2:
        return packed_element(t, i, 2);
    case GRT_DTYPE_INT2:
        return sign_extend(packed_element(t, i, 2), 2);
    default:
        return NAN;
    }
}

double element_imaginary(const grt_tensor *t, int64_t i)
{
    if (t->dtype == GRT_DTYPE_COMPLEX64)
        return (double)((const float *)t->data)[2 * i + 1];
    return t->dtype == GRT_DTYPE_COMPLEX128 ? ((const double *)t->data)[2 * i + 1] : 0;
}

/* Bits of a float of 16 bits, rounded towards zero: for made-up inputs that is good enough. */
static uint16_t element_to_half(double value)
{
    const int sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    if (size < 0x1p-14)
        return (uint16_t)(sign | (int)(size * 0x1p24));
    if (size >= 0x1p16)
        return (uint16_t)(sign | 31 << 10);
    int exponent;
    double m = frexp(size, &exponent); /* m in [0.5, 1) */
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)(m * 2048) & 1023));
}

static void set_packed(grt_tensor *t, int64_t i, int width, unsigned bits)
{
    int64_t per_byte = 8 / width;
    unsigned char *byte = (unsigned char *)t->data + i / per_byte;
    unsigned shift = (unsigned)(i % per_byte * width);
    *byte = (unsigned char)((*byte & ~(((1u << width) - 1) << shift)) | bits << shift);
}

#define STORE(type, value_)                                           \
    do {                                                              \
        type v = (type)(value_);                                      \
        memcpy((char *)t->data + (size_t)i * sizeof v, &v, sizeof v); \
    } while (0)
#define SET(NAME, type)     \
    case GRT_DTYPE_##NAME:  \
        STORE(type, value); \
        break;

void element_set(grt_tensor *t, int64_t i, double value)
{
    /* The byte that means 1 in each format of 8 bits. */
    static const unsigned char one[GRT_DTYPE_COUNT] = {[GRT_DTYPE_FLOAT8E4M3FN] = 0x38,
                                                       [GRT_DTYPE_FLOAT8E4M3FNUZ] = 0x40,
                                                       [GRT_DTYPE_FLOAT8E5M2] = 0x3c,
                                                       [GRT_DTYPE_FLOAT8E5M2FNUZ] = 0x40,
                                                       [GRT_DTYPE_FLOAT8E8M0] = 127};
    switch (t->dtype) {
        SET(FLOAT, float)
        SET(DOUBLE, double)
        SET(UINT8, uint8_t)
        SET(INT8, int8_t)
        SET(UINT16, uint16_t)
        SET(INT16, int16_t)
        SET(INT32, int32_t)
        SET(INT64, int64_t)
        SET(UINT32, uint32_t)
        SET(UINT64, uint64_t)
    case GRT_DTYPE_BOOL:
        STORE(uint8_t, value != 0);
        break;
    case GRT_DTYPE_FLOAT16:
        STORE(uint16_t, element_to_half(value));
        break;
    case GRT_DTYPE_BFLOAT16: {
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        STORE(uint16_t, bits >> 16);
        break;
    }
    case GRT_DTYPE_COMPLEX64:
        ((float *)t->data)[2 * i] = (float)value;
        ((float *)t->data)[2 * i + 1] = 0;
        break;
    case GRT_DTYPE_COMPLEX128:
        ((double *)t->data)[2 * i] = value;
        ((double *)t->data)[2 * i + 1] = 0;
        break;
    case GRT_DTYPE_UINT4:
    case GRT_DTYPE_INT4:
        set_packed(t, i, 4, value != 0);
        break;
    case GRT_DTYPE_FLOAT4E2M1:
        set_packed(t, i, 4, value != 0 ? 2 : 0);
        break;
    case GRT_DTYPE_UINT2:
    case GRT_DTYPE_INT2:
        set_packed(t, i, 2, value != 0);
        break;
    case GRT_DTYPE_STRING:
    case GRT_DTYPE_NONE:
    case GRT_DTYPE_COUNT:
        break;
    default: /* float8; e8m0 has no zero: its smallest value stands in */
        ((unsigned char *)t->data)[i] = value != 0 ? one[t->dtype] : 0;
    }
}

bool dtype_is_float(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT || dtype == GRT_DTYPE_DOUBLE || dtype == GRT_DTYPE_FLOAT16 ||
           dtype == GRT_DTYPE_BFLOAT16;
}

bool dtype_is_integer(grt_dtype dtype)
{
    return (dtype >= GRT_DTYPE_UINT8 && dtype <= GRT_DTYPE_INT64) || dtype == GRT_DTYPE_UINT32 ||
           dtype == GRT_DTYPE_UINT64;
}
