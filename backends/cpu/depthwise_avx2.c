/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise loops for x86-64 with AVX2 and FMA. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX2_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma")
#include <immintrin.h>
#include <string.h>

enum { LANES = 8 };
#define MOST_PIXELS 12
#define INLINE      static inline __attribute__((always_inline))

typedef __m256 floats;

INLINE __m256i first_lanes(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE floats read_some(const void *p, int64_t n)
{
    return _mm256_maskload_ps(p, first_lanes(n));
}

INLINE void write_some(float *p, int64_t n, floats v)
{
    _mm256_maskstore_ps(p, first_lanes(n), v);
}

INLINE floats within_lanes(floats v, floats least, floats most)
{
    return _mm256_min_ps(most, _mm256_max_ps(least, v)); /* the second operand where one is NaN */
}

#include "backends/cpu/depthwise_loops.inc"

const depthwise_kernel cpu_depthwise_avx2 = {LANES, run_depthwise_pixels, NULL};
#endif
