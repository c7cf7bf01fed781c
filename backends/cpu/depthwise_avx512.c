/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise loops for x86-64 with AVX-512. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX512_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#include <immintrin.h>
#include <string.h>

enum { LANES = 16 };
#define MOST_PIXELS 12
#define DEPTHWISE   cpu_depthwise_avx512
#define INLINE      static inline __attribute__((always_inline))

typedef __m512 floats;
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

INLINE floats read_some(const void *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

INLINE void write_some(float *p, int64_t n, floats v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

#include "backends/cpu/depthwise_loops.inc"
#endif
