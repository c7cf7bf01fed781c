/* Whole arrays between the 16-bit float formats and float32: kernels compute 16-bit types in float32. */
#ifndef GRT_BACKENDS_CPU_HALF_H
#define GRT_BACKENDS_CPU_HALF_H

#include "src/base/tensor.h"

/* dtype: FLOAT16 or BFLOAT16. */
void cpu_half_widen(grt_dtype dtype, const void *src, float *dst, int64_t n);
void cpu_half_narrow(grt_dtype dtype, const float *src, void *dst, int64_t n);
static inline bool cpu_is_half(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

#endif
