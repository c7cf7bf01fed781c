/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of float32 to float8, e4m3fn or e5m2: to the nearest, what is too large to the largest number. */
#ifndef GRT_BACKENDS_CUDA_FLOAT8_CUH
#define GRT_BACKENDS_CUDA_FLOAT8_CUH

#include "src/base/float.h"

/* a's code in the low byte, b's in the next one. */
static __device__ __forceinline__ uint32_t cuda_float8_pair(float a, float b, bool is_e5m2)
{
#if __CUDA_ARCH__ >= 890
    uint16_t pair;
    if (is_e5m2)
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
    else
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
    return pair;
#else
    const grt_float8_format format = is_e5m2 ? GRT_FLOAT8_E5M2 : GRT_FLOAT8_E4M3FN;
    return grt_float_to_float8(a, format, true) | (uint32_t)grt_float_to_float8(b, format, true) << 8;
#endif
}

#endif
