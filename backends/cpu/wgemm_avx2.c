/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over weights of few bits for AVX2. */
#include "backends/cpu/isa.h"
#include "backends/cpu/wgemm_kernel.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma,bmi,bmi2")

#include "backends/cpu/wgemm_loops.inc"

static const grt_wgemm_kernel wgemm_kernel_avx2 = {.few = wgemm_few, .widen = wgemm_widen};

const grt_wgemm_kernel *grt_wgemm_kernel_avx2(void)
{
    return &wgemm_kernel_avx2;
}

#endif
