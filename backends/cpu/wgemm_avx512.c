/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over weights of few bits for AVX-512: numbers of 4 bits are looked up in a register. */
#include "backends/cpu/isa.h"
#include "backends/cpu/wgemm_kernel.h"

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2,prefer-vector-width=512")

#include <immintrin.h>

#define LOOK_UP(table, codes) ((floats)_mm512_permutexvar_ps((__m512i)(codes), _mm512_loadu_ps(table)))
enum { LANES = 16 };

typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline __attribute__((always_inline)) void wgemm_avx512_widen(const uint8_t *from, ints *out)
{
    *out = (ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

#define WIDEN_BYTES wgemm_avx512_widen
#define MOST_ROWS   12
#define TWO_PARTS   4
#include "backends/cpu/wgemm_loops.inc"

static const grt_wgemm_kernel wgemm_kernel_avx512 = {.few_rows = 16, .few = wgemm_few, .widen = wgemm_widen};

const grt_wgemm_kernel *grt_wgemm_kernel_avx512(void)
{
    return &wgemm_kernel_avx512;
}

#endif
