/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to bytes: rounded to the nearest integer, ties to even, moved by a zero point and limited. */
#ifndef GRT_BACKENDS_CPU_BYTE_ROUNDING_H
#define GRT_BACKENDS_CPU_BYTE_ROUNDING_H

#include "src/base/tensor.h"

#include <string.h>

typedef struct cpu_byte_rounding {
    float low, high; /* before the zero point is added */
    int32_t zero;
} cpu_byte_rounding;

/* Element 0 of uint8 or int8. */
static inline int32_t cpu_byte_of(const grt_tensor *t)
{
    return t->dtype == GRT_DTYPE_INT8 ? *(const int8_t *)t->data : *(const uint8_t *)t->data;
}

/* All of the type's range, and its zero point, which gives the type. */
static inline cpu_byte_rounding cpu_byte_rounding_of(const grt_tensor *zero)
{
    const bool is_signed = zero->dtype == GRT_DTYPE_INT8;
    const int32_t at = cpu_byte_of(zero);
    return (cpu_byte_rounding){(float)((is_signed ? INT8_MIN : 0) - at),
                               (float)((is_signed ? INT8_MAX : UINT8_MAX) - at), at};
}

/* Adding 1.5 * 2^23 rounds and leaves the integer in the low mantissa bits. Callers are compiled without
 * contraction, so that all instruction sets give the same bits. */
static inline __attribute__((always_inline)) uint8_t cpu_round_to_byte(const cpu_byte_rounding *r, float v)
{
    v = v > r->low ? v : r->low;
    v = v < r->high ? v : r->high;
    const float shifted = v + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (uint8_t)(bits - 0x4B400000 + r->zero);
}

#endif
