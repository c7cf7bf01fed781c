/* SPDX-License-Identifier: Apache-2.0 */
/* Converting runs of elements between any two numeric dtypes.
 *
 * The types that C has are "plain": float32, float64, the integers, bool. All others are first widened to a
 * plain one (floats to float32, 2- and 4-bit integers to 8 bits), or narrowed from it at the end. */
#ifndef GRT_BACKENDS_CPU_CONVERT_H
#define GRT_BACKENDS_CPU_CONVERT_H

#include "src/base/float.h"
#include "src/base/tensor.h"

/* The plain type that elements of `dtype` are worked on as. */
grt_dtype cpu_plain_dtype(grt_dtype dtype);

typedef struct cpu_convert_options {
    bool saturate;         /* float8 */
    grt_rounding rounding; /* float8e8m0 */
} cpu_convert_options;

enum { CONVERT_BLOCK = 1024 };

/* Elements begin .. begin+n-1 of `in` to a plain block. begin must be a multiple of 4, so that it begins a
 * byte. */
void cpu_widen(grt_dtype dtype, const void *in, int64_t begin, int64_t n, void *out);
/* A plain block to elements begin .. begin+n-1 of `out`; the last byte is padded with zero bits. */
void cpu_narrow(grt_dtype dtype, const void *in, int64_t n, void *out, int64_t begin,
                cpu_convert_options options);
/* Both types plain. Out of range: integers wrap; floats that no 64-bit integer holds give the lowest one. */
void cpu_convert_plain(grt_dtype from, const void *in, grt_dtype to, void *out, int64_t n);
/* Any numeric types; n at most CONVERT_BLOCK, begin a multiple of 4. */
void cpu_convert(grt_dtype from, const void *in, grt_dtype to, void *out, int64_t begin, int64_t n,
                 cpu_convert_options options);

#endif
