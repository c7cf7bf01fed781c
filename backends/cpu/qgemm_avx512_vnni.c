/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of 8-bit products for AVX-512 with VNNI: blocks of 12 x 32, whose instruction multiplies
 * four bytes by four and adds without saturating; and for AMX: blocks of 32 x 32, the rest as without it. */
#include "backends/cpu/amx_instructions.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma,bmi,bmi2,prefer-vector-width=512")
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
#define DOT(s, a, b) _mm512_dpbusd_epi32(s, a, b)
#include "backends/cpu/qgemm_finish_avx512.inc"
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

#define TAPS_PAIRS
#define TAPS_DOT(s, a, b) _mm512_dpbusd_epi32(s, a, b)
#include "backends/cpu/qgemm_taps.inc"

const grt_qgemm_kernel *grt_qgemm_kernel_avx512_vnni(void)
{
    static const grt_qgemm_kernel kernel = {.name = "avx512-vnni",
                                            .mr = ROWS,
                                            .panels = PANELS,
                                            .wide = false,
                                            .step = 1,
                                            .block = multiply_block,
                                            .plain = multiply_block_plain,
                                            QGEMM_LOOPS};
    return cpu_isa_has_avx512_vnni() ? &kernel : NULL;
}

#include "backends/cpu/qgemm_tiles.inc"

const grt_qgemm_kernel *grt_qgemm_kernel_amx(void)
{
    static const grt_qgemm_kernel kernel = {.name = "amx",
                                            .mr = CPU_AMX_BLOCK_ROWS,
                                            .panels = PANELS,
                                            .wide = false,
                                            .step = TILE_ROWS,
                                            .block = multiply_tiles,
                                            .leave = cpu_amx_release,
                                            QGEMM_LOOPS};
    return cpu_isa_may_use_tiles() ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx512_vnni(void)
{
    return NULL;
}

const grt_qgemm_kernel *grt_qgemm_kernel_amx(void)
{
    return NULL;
}

#endif
