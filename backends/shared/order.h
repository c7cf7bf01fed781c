/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as unsigned keys in the same order: so that sorting knows one type only. On the CPU and in device
 * code. */
#ifndef GRT_BACKENDS_SHARED_ORDER_H
#define GRT_BACKENDS_SHARED_ORDER_H

#include "src/base/float.h"
#include "src/base/tensor.h"

#include <string.h>

/* Order of a float's bit pattern; both zeros are one, every NaN is greater than all numbers. */
GRT_INLINE uint64_t cpu_order_double(double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof bits);
    if (v != v)
        return UINT64_MAX;
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

GRT_INLINE uint64_t cpu_order_float(float v)
{
    uint32_t bits = grt_float_to_bits(v == 0 ? 0 : v);
    return v != v ? UINT64_MAX : bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Key of element i of a tensor of numbers or bools: a < b exactly if key(a) < key(b). */
GRT_INLINE uint64_t cpu_order_key(grt_dtype dtype, const void *data, int64_t i)
{
    const uint64_t top = (uint64_t)1 << 63;
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return cpu_order_float(((const float *)data)[i]);
    case GRT_DTYPE_DOUBLE:
        return cpu_order_double(((const double *)data)[i]);
    case GRT_DTYPE_FLOAT16:
        return cpu_order_double((double)grt_half_to_float(((const uint16_t *)data)[i]));
    case GRT_DTYPE_BFLOAT16:
        return cpu_order_double((double)grt_bfloat16_to_float(((const uint16_t *)data)[i]));
    case GRT_DTYPE_INT64:
        return (uint64_t)((const int64_t *)data)[i] ^ top;
    case GRT_DTYPE_INT32:
        return (uint64_t)(int64_t)((const int32_t *)data)[i] ^ top;
    case GRT_DTYPE_INT16:
        return (uint64_t)(int64_t)((const int16_t *)data)[i] ^ top;
    case GRT_DTYPE_INT8:
        return (uint64_t)(int64_t)((const int8_t *)data)[i] ^ top;
    case GRT_DTYPE_UINT64:
        return ((const uint64_t *)data)[i];
    case GRT_DTYPE_UINT32:
        return ((const uint32_t *)data)[i];
    case GRT_DTYPE_UINT16:
        return ((const uint16_t *)data)[i];
    default: /* UINT8, BOOL */
        return ((const uint8_t *)data)[i];
    }
}

#endif
