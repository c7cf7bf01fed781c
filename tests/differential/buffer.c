/* See buffer.h. */
#include "tests/differential/buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, PATTERN = 0x5a };

void *guarded(size_t bytes)
{
    unsigned char *all = malloc(bytes + 2 * GUARD);
    if (!all)
        exit(2);
    memset(all, PATTERN, bytes + 2 * GUARD);
    return all + GUARD;
}

bool guards_hold(const void *data, size_t bytes)
{
    const unsigned char *all = (const unsigned char *)data - GUARD;
    for (size_t i = 0; i < GUARD; i++)
        if (all[i] != PATTERN || all[GUARD + bytes + i] != PATTERN)
            return false;
    return true;
}

void release(void *data)
{
    if (data)
        free((unsigned char *)data - GUARD);
}

bool is_float(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT || dtype == GRT_DTYPE_DOUBLE || dtype == GRT_DTYPE_FLOAT16 ||
           dtype == GRT_DTYPE_BFLOAT16;
}

static uint16_t to_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, exponent = bits >> 23 & 0xffu, mantissa = bits >> 13 & 0x3ffu;
    if (exponent < 113)
        return (uint16_t)sign;
    return (uint16_t)(sign | (exponent > 142 ? 31u << 10 : (exponent - 112) << 10 | mantissa));
}

static double from_half(uint16_t h)
{
    const int exponent = h >> 10 & 31;
    const double m = h & 0x3ff, v = exponent == 31 ? (h & 0x3ff ? (double)NAN : (double)INFINITY)
                                    : exponent     ? ldexp(1024 + m, exponent - 25)
                                                   : ldexp(m, -24);
    return h & 0x8000u ? -v : v;
}

static uint16_t to_bfloat16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double from_bfloat16(uint16_t b)
{
    const uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

double element(const grt_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case GRT_DTYPE_FLOAT:
        return (double)((const float *)t->data)[i];
    case GRT_DTYPE_DOUBLE:
        return ((const double *)t->data)[i];
    case GRT_DTYPE_FLOAT16:
        return from_half(((const uint16_t *)t->data)[i]);
    case GRT_DTYPE_BFLOAT16:
        return from_bfloat16(((const uint16_t *)t->data)[i]);
    case GRT_DTYPE_INT32:
        return (double)((const int32_t *)t->data)[i];
    case GRT_DTYPE_INT64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return (double)((const uint8_t *)t->data)[i];
    }
}

void set_element(const grt_tensor *t, int64_t i, double v)
{
    switch (t->dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)t->data)[i] = (float)v;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)t->data)[i] = v;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)t->data)[i] = to_half((float)v);
        break;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)t->data)[i] = to_bfloat16((float)v);
        break;
    case GRT_DTYPE_INT32:
        ((int32_t *)t->data)[i] = (int32_t)v;
        break;
    case GRT_DTYPE_INT64:
        ((int64_t *)t->data)[i] = (int64_t)v;
        break;
    default:
        ((uint8_t *)t->data)[i] = (uint8_t)v;
    }
}
