/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows of bytes by weights of 4 or 8 bits for AVX-512 with VNNI. */
#include "backends/cpu/isa.h"
#include "backends/cpu/wgemm_bytes.h"

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma,bmi,bmi2,prefer-vector-width=512")

#include <immintrin.h>

enum { LANES = 16 };
#define ROWS                  12
#define MOST_BITS             8
#define INTS                  __m512i
#define FLOATS                __m512
#define SUMS                  __m512i
#define LOAD_INTS(p)          _mm512_loadu_si512(p)
#define LOAD_FLOATS(p)        _mm512_loadu_ps(p)
#define STORE_FLOATS(p, v)    _mm512_storeu_ps(p, v)
#define SET_INTS              _mm512_set1_epi32
#define SET_FLOATS            _mm512_set1_ps
#define FLOATS_ZERO           _mm512_setzero_ps
#define SUMS_ZERO             _mm512_setzero_si512
#define AND                   _mm512_and_si512
#define SHIFT_RIGHT           _mm512_srli_epi32
#define SUBTRACT              _mm512_sub_epi32
#define MULTIPLY              _mm512_mullo_epi32
#define MULTIPLY_FLOATS       _mm512_mul_ps
#define FMA                   _mm512_fmadd_ps
#define TO_FLOATS             _mm512_cvtepi32_ps
#define WIDEN(p)              _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define ADD_PRODUCTS(s, w, x) _mm512_dpbusd_epi32(s, w, x)
#define ADD                   _mm512_add_epi32
#define SUM_UP(s)             (s)
#define WORDS_AT_ONCE(groups) (groups)
#include "backends/cpu/wgemm_bytes.inc"

const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx512_vnni(void)
{
    static const grt_wgemm_byte_kernel kernel = {
        .rows = ROWS, .bits = MOST_BITS, .multiply = wgemm_multiply_bytes};
    return cpu_isa_has_avx512_vnni() ? &kernel : NULL;
}

#else

const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_avx512_vnni(void)
{
    return NULL;
}

#endif
