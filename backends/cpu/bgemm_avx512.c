/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 for AVX-512 without products of bfloat16. */
#include "backends/cpu/bgemm_kernel.h"
#include "backends/cpu/isa.h"

#include <stddef.h>

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2,prefer-vector-width=512")

#define LANES       16
#define ROWS        12
#define BOTH_PANELS 12
#include "backends/cpu/bgemm_loops.inc"

BGEMM_FINISH(grt_bgemm_finish_avx512)

const grt_bgemm_kernel *grt_bgemm_kernel_avx512(void)
{
    static const grt_bgemm_kernel kernel = {"avx512", ROWS, true, bgemm_block, grt_bgemm_finish_avx512, NULL};
    return cpu_isa_best() >= CPU_ISA_AVX512 ? &kernel : NULL;
}

#else

const grt_bgemm_kernel *grt_bgemm_kernel_avx512(void)
{
    return NULL;
}

#endif
