/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for x86-64 with AVX-512. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX512_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#define LANES 16
#define ROWS  cpu_rows_avx512
#include "backends/cpu/rows.inc"
#endif
