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
#define DEPTHWISE   cpu_depthwise_avx2
#define INLINE      static inline __attribute__((always_inline))

typedef __m256 floats;
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

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

#include "backends/cpu/depthwise_loops.inc"
#endif
