/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for x86-64 with AVX2 and FMA. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX2_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma")
#define LANES 8
#define ROWS  cpu_rows_avx2
#include "backends/cpu/rows.inc"
#endif
