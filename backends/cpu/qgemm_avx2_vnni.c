/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernel of 8-bit products for AVX2 with VNNI (256 bits): blocks of 6 x 16. A machine whose
 * level is capped to AVX2 has none of it: its kernel is that of processors without VNNI. */
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2,avxvnni,fma,bmi,bmi2")
#include "backends/cpu/qgemm_loops.inc"

#include <immintrin.h>

#define VECTORS      2
#define VECTOR       __m256i
#define ROWS         6
#define PANELS       1
#define ZERO         _mm256_setzero_si256
#define LOAD(p)      _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v)  _mm256_storeu_si256((__m256i *)(p), v)
#define SPREAD(v)    _mm256_set1_epi32(v)
#define ADD          _mm256_add_epi32
#define SUB          _mm256_sub_epi32
#define DOT(s, a, b) _mm256_dpbusd_avx_epi32(s, a, b)
#include "backends/cpu/qgemm_finish_avx2.inc"
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

#define TAPS_DOT(s, a, b) _mm256_dpbusd_avx_epi32(s, a, b)
#include "backends/cpu/qgemm_taps.inc"

const grt_qgemm_kernel *grt_qgemm_kernel_avx2_vnni(void)
{
    static const grt_qgemm_kernel kernel = {.name = "avx2-vnni",
                                            .mr = ROWS,
                                            .panels = PANELS,
                                            .wide = false,
                                            .step = 1,
                                            .block = multiply_block,
                                            .plain = multiply_block_plain,
                                            QGEMM_LOOPS};
    return cpu_isa_has_avx_vnni() ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx2_vnni(void)
{
    return NULL;
}

#endif
