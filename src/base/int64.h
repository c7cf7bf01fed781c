/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of int64_t that C has no operator for. */
#ifndef GRT_BASE_INT64_H
#define GRT_BASE_INT64_H

#include "src/base/float.h"

GRT_INLINE int64_t grt_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

GRT_INLINE int64_t grt_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What no int64 holds becomes the lowest one. */
GRT_INLINE int64_t grt_int64_of(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

/* Wraps around like any integer product; a negative power of anything but 1 and -1 is 0. */
GRT_INLINE int64_t grt_int64_power(int64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1) {
        result *= exponent & 1 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

#endif
