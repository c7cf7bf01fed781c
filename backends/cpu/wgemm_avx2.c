/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over weights of few bits for AVX2. */
#include "backends/cpu/isa.h"
#include "backends/cpu/wgemm_kernel.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma,bmi,bmi2")

#include <immintrin.h>

enum { LANES = 8 };

typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline __attribute__((always_inline)) void wgemm_avx2_widen(const uint8_t *from, ints *out)
{
    *out = (ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

#define WIDEN_BYTES wgemm_avx2_widen
#define MOST_ROWS   8
#define TWO_PARTS   4
#include "backends/cpu/wgemm_loops.inc"

static const grt_wgemm_kernel wgemm_kernel_avx2 = {.few_rows = 8, .few = wgemm_few, .widen = wgemm_widen};

const grt_wgemm_kernel *grt_wgemm_kernel_avx2(void)
{
    return &wgemm_kernel_avx2;
}

#endif
