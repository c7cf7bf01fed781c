/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows of bytes by weights of 4 bits for AVX2, whose instruction saturates sums of two products
 * in 16 bits: 2 * 15 * 127 of them fit eight times, which a block of 32 or part of a larger one has. */
#include "backends/cpu/isa.h"
#include "backends/cpu/wgemm_bytes.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma,bmi,bmi2")

#include <immintrin.h>

enum { LANES = 8 };
#define ROWS               6
#define MOST_BITS          4
#define INTS               __m256i
#define FLOATS             __m256
#define SUMS               __m256i
#define LOAD_INTS(p)       _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_FLOATS(p)     _mm256_loadu_ps(p)
#define STORE_FLOATS(p, v) _mm256_storeu_ps(p, v)
#define SET_INTS           _mm256_set1_epi32
#define SET_FLOATS         _mm256_set1_ps
#define FLOATS_ZERO        _mm256_setzero_ps
#define SUMS_ZERO          _mm256_setzero_si256
#define AND                _mm256_and_si256
#define SHIFT_RIGHT        _mm256_srli_epi32
#define SUBTRACT           _mm256_sub_epi32
#define MULTIPLY           _mm256_mullo_epi32
#define MULTIPLY_FLOATS    _mm256_mul_ps
#define FMA                _mm256_fmadd_ps
#define TO_FLOATS          _mm256_cvtepi32_ps
#define WIDEN(p)           _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
/* 16 bits */
#define ADD_PRODUCTS(s, w, x) _mm256_add_epi16(s, _mm256_maddubs_epi16(w, x))
#define ADD                   _mm256_add_epi32
#define WORDS_AT_ONCE(groups) 4
#define SUM_UP(s)             _mm256_madd_epi16(s, _mm256_set1_epi16(1))
#include "backends/cpu/wgemm_bytes.inc"

const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx2(void)
{
    static const grt_wgemm_byte_kernel kernel = {
        .rows = ROWS, .bits = MOST_BITS, .multiply = wgemm_multiply_bytes};
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx2(void)
{
    return NULL;
}

#endif
