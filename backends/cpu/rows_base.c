/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the instruction set that the compiler was told to build for, and the choice among the copies. */
#include "backends/cpu/isa.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#define LANES 4
#define ROWS  cpu_rows_base
#include "backends/cpu/rows.inc"

const cpu_rows *cpu_rows_best(void)
{
    switch (cpu_isa_best()) {
#ifdef CPU_HAS_AVX512_COPY
    case CPU_ISA_AVX512:
    case CPU_ISA_AMX:
        return &cpu_rows_avx512;
#endif
#ifdef CPU_HAS_AVX2_COPY
    case CPU_ISA_AVX2:
        return &cpu_rows_avx2;
#endif
    default:
        return &cpu_rows_base;
    }
}
