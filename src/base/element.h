/* SPDX-License-Identifier: Apache-2.0 */
/* Single elements of tensors whatever their dtype, as double, and of packed ones: for kernels where
 * generality matters more than speed, and for the small inputs of the others, on the host and in device code.
 * Hot loops have typed code of their own. */
#ifndef GRT_BASE_ELEMENT_H
#define GRT_BASE_ELEMENT_H

#include "src/base/float.h"
#include <graphrt/graphrt.h>

#include <math.h>

GRT_INLINE double grt_element_load(grt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return (double)((const float *)data)[i];
    case GRT_DTYPE_DOUBLE:
        return ((const double *)data)[i];
    case GRT_DTYPE_FLOAT16:
        return (double)grt_half_to_float(((const uint16_t *)data)[i]);
    case GRT_DTYPE_BFLOAT16:
        return (double)grt_bfloat16_to_float(((const uint16_t *)data)[i]);
    case GRT_DTYPE_INT64:
        return (double)((const int64_t *)data)[i];
    case GRT_DTYPE_UINT64:
        return (double)((const uint64_t *)data)[i];
    case GRT_DTYPE_INT32:
        return (double)((const int32_t *)data)[i];
    case GRT_DTYPE_UINT32:
        return (double)((const uint32_t *)data)[i];
    case GRT_DTYPE_INT16:
        return (double)((const int16_t *)data)[i];
    case GRT_DTYPE_UINT16:
        return (double)((const uint16_t *)data)[i];
    case GRT_DTYPE_INT8:
        return (double)((const int8_t *)data)[i];
    default: /* UINT8, BOOL */
        return (double)((const uint8_t *)data)[i];
    }
}

GRT_INLINE double grt_element_get(const grt_tensor *tensor, int64_t i)
{
    return grt_element_load(tensor->dtype, tensor->data, i);
}

/* To an integer type's range, fraction cut off; NaN is 0. `high` is the first value above the range. */
GRT_INLINE int64_t grt_element_truncate(double value, double low, double high)
{
    if (!(value == value))
        return 0;
    if (value < low)
        return (int64_t)low;
    return value >= high ? (high >= 0x1p63 ? INT64_MAX : (int64_t)high - 1) : (int64_t)value;
}

/* Floats are rounded to nearest, integers cut off and limited to their range, BOOL is value != 0. */
GRT_INLINE void grt_element_store(grt_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)data)[i] = (float)value;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)data)[i] = value;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_half((float)value);
        break;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_bfloat16((float)value);
        break;
    case GRT_DTYPE_INT64:
        ((int64_t *)data)[i] = grt_element_truncate(value, -0x1p63, 0x1p63);
        break;
    case GRT_DTYPE_UINT64:
        ((uint64_t *)data)[i] = value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
        break;
    case GRT_DTYPE_INT32:
        ((int32_t *)data)[i] = (int32_t)grt_element_truncate(value, -0x1p31, 0x1p31);
        break;
    case GRT_DTYPE_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)grt_element_truncate(value, 0, 0x1p32);
        break;
    case GRT_DTYPE_INT16:
        ((int16_t *)data)[i] = (int16_t)grt_element_truncate(value, -0x1p15, 0x1p15);
        break;
    case GRT_DTYPE_UINT16:
        ((uint16_t *)data)[i] = (uint16_t)grt_element_truncate(value, 0, 0x1p16);
        break;
    case GRT_DTYPE_INT8:
        ((int8_t *)data)[i] = (int8_t)grt_element_truncate(value, -128, 128);
        break;
    case GRT_DTYPE_UINT8:
        ((uint8_t *)data)[i] = (uint8_t)grt_element_truncate(value, 0, 256);
        break;
    default: /* BOOL */
        ((uint8_t *)data)[i] = value != 0;
    }
}

GRT_INLINE void grt_element_put(grt_tensor *tensor, int64_t i, double value)
{
    grt_element_store(tensor->dtype, tensor->data, i, value);
}

/* Of the four 8-bit float types that have more than an exponent. */
GRT_INLINE grt_float8_format grt_float8_format_of(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT8E4M3FN:
        return GRT_FLOAT8_E4M3FN;
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
        return GRT_FLOAT8_E4M3FNUZ;
    case GRT_DTYPE_FLOAT8E5M2:
        return GRT_FLOAT8_E5M2;
    default:
        return GRT_FLOAT8_E5M2FNUZ;
    }
}

/* Element i of packed elements of `bits` bits: 2 or 4. */
GRT_INLINE uint8_t grt_packed_get(const void *data, int64_t i, int bits)
{
    const int per_byte = 8 / bits;
    return (uint8_t)(((const uint8_t *)data)[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1));
}

#endif
