/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 for AVX2. */
#include "backends/cpu/bgemm_kernel.h"
#include "backends/cpu/isa.h"

#include <stddef.h>

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma,bmi,bmi2")

#define LANES       8
#define ROWS        6
#define BOTH_PANELS 3
#include "backends/cpu/bgemm_loops.inc"

static BGEMM_FINISH(bgemm_finish)

    const grt_bgemm_kernel *grt_bgemm_kernel_avx2(void)
{
    static const grt_bgemm_kernel kernel = {"avx2", ROWS, true, bgemm_block, bgemm_finish, NULL};
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_bgemm_kernel *grt_bgemm_kernel_avx2(void)
{
    return NULL;
}

#endif
