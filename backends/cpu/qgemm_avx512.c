/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernel of 8-bit products for AVX-512 without VNNI: blocks of 12 x 32 of int16 pairs, exact as in
 * qgemm_avx2.c. */
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2,prefer-vector-width=512")
#include "backends/cpu/qgemm_loops.inc"

#include <immintrin.h>

#define VECTORS      1
#define VECTOR       __m512i
#define ROWS         12
#define PANELS       2
#define ZERO         _mm512_setzero_si512
#define LOAD         _mm512_loadu_si512
#define STORE        _mm512_storeu_si512
#define SPREAD       _mm512_set1_epi32
#define ADD          _mm512_add_epi32
#define SUB          _mm512_sub_epi32
#define DOT(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#include "backends/cpu/qgemm_finish_avx512.inc"
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

#define QGEMM_WIDE
#define TAPS_PAIRS
#define TAPS_DOT(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#include "backends/cpu/qgemm_taps.inc"

const grt_qgemm_kernel *grt_qgemm_kernel_avx512(void)
{
    static const grt_qgemm_kernel kernel = {.name = "avx512",
                                            .mr = ROWS,
                                            .panels = PANELS,
                                            .wide = true,
                                            .pairs = &kernel,
                                            .step = 1,
                                            .block = multiply_block,
                                            .plain = multiply_block_plain,
                                            QGEMM_LOOPS};
    return cpu_isa_best() >= CPU_ISA_AVX512 ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx512(void)
{
    return NULL;
}

#endif
