/* SPDX-License-Identifier: Apache-2.0 */
/* float32 loops for x86-64 with AVX2, FMA and F16C. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX2_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define PW_TABLES cpu_pw_f32_avx2
#include "backends/cpu/pointwise_f32.inc"
#endif
