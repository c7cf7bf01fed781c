/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise loops for the instruction set that the compiler was told to build for, and the choice among the
 * copies. */
#include "backends/cpu/isa.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4 };
#define MOST_PIXELS 6
#define INLINE      static inline __attribute__((always_inline))

typedef float floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

INLINE floats read_some(const void *p, int64_t n)
{
    const float *from = p;
    floats v = {0};
    for (int64_t i = 0; i < n && i < LANES; i++)
        v[i] = from[i];
    return v;
}

INLINE void write_some(float *p, int64_t n, floats v)
{
    for (int64_t i = 0; i < n && i < LANES; i++)
        p[i] = v[i];
}

INLINE floats within_lanes(floats v, floats least, floats most)
{
    const ints low = v < least; /* not so for NaN */
    v = (floats)(((ints)least & low) | ((ints)v & ~low));
    const ints high = v > most;
    return (floats)(((ints)most & high) | ((ints)v & ~high));
}

#include "backends/cpu/depthwise_loops.inc"

const depthwise_kernel cpu_depthwise_base = {LANES, run_depthwise_pixels, NULL};

const depthwise_kernel *cpu_depthwise_best(void)
{
    switch (cpu_isa_best()) {
#ifdef CPU_HAS_AVX512_COPY
    case CPU_ISA_AVX512:
    case CPU_ISA_AMX:
        return &cpu_depthwise_avx512;
#endif
#ifdef CPU_HAS_AVX2_COPY
    case CPU_ISA_AVX2:
        return &cpu_depthwise_avx2;
#endif
    default:
        return &cpu_depthwise_base;
    }
}
