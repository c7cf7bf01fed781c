/* SPDX-License-Identifier: Apache-2.0 */
/* float32 loops for the instruction set that the compiler was told to build for. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#define PW_TABLES cpu_pw_f32_base
#include "backends/cpu/pointwise_f32.inc"
