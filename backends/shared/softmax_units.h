/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of bytes: exponentials are integers, in units of 2^-23 of the largest. Their sums are the same in
 * any order; each exponential is a float32, and so is 2^23 more than it. */
#ifndef GRT_BACKENDS_SHARED_SOFTMAX_UNITS_H
#define GRT_BACKENDS_SHARED_SOFTMAX_UNITS_H

#include <math.h>
#include <stdint.h>

#define GRT_SOFTMAX_UNITS 8388608.0

/* exp(-i * scale). */
static inline int32_t grt_softmax_units(int32_t i, float scale)
{
    return (int32_t)lrint(exp(-(double)i * (double)scale) * GRT_SOFTMAX_UNITS);
}

#endif
