/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that cannot wrap: products and sums report overflow instead. */
#ifndef GRT_BASE_CHECKED_H
#define GRT_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool grt_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool grt_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
/* The nearest int64_t where the result does not fit. */
static inline int64_t grt_mul_saturated(int64_t a, int64_t b)
{
    int64_t product;
    return grt_mul_i64(a, b, &product) ? product : (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}
static inline int64_t grt_add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    return grt_add_i64(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}
static inline int64_t grt_sub_saturated(int64_t a, int64_t b)
{
    int64_t difference;
    return !__builtin_sub_overflow(a, b, &difference) ? difference : a < 0 ? INT64_MIN : INT64_MAX;
}
static inline bool grt_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool grt_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
/* Next multiple of `alignment` (a power of two). The caller keeps n far below SIZE_MAX. */
static inline size_t grt_align_up(size_t n, size_t alignment)
{
    return (n + alignment - 1) & ~(alignment - 1);
}

#endif
