/* Conversion of arrays between 16-bit floats and float32. */
#include "backends/cpu/half.h"

#include "src/base/float.h"

void cpu_half_widen(grt_dtype dtype, const void *src, float *dst, int64_t n)
{
    const uint16_t *in = src;
    if (dtype == GRT_DTYPE_BFLOAT16)
        for (int64_t i = 0; i < n; i++)
            dst[i] = grt_bfloat16_to_float(in[i]);
    else
        for (int64_t i = 0; i < n; i++)
            dst[i] = grt_half_to_float(in[i]);
}

void cpu_half_narrow(grt_dtype dtype, const float *src, void *dst, int64_t n)
{
    uint16_t *out = dst;
    if (dtype == GRT_DTYPE_BFLOAT16)
        for (int64_t i = 0; i < n; i++)
            out[i] = grt_float_to_bfloat16(src[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = grt_float_to_half(src[i]);
}
