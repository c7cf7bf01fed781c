/* SPDX-License-Identifier: Apache-2.0 */
/* float32 loops for x86-64 with AVX-512. */
#include "backends/cpu/isa.h"
#ifdef CPU_HAS_AVX512_COPY
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512")
#define PW_TABLES cpu_pw_f32_avx512
#include "backends/cpu/pointwise_f32.inc"
#endif
