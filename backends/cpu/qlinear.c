/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation with one scale, per instruction set. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/qlinear.h"

#include "backends/cpu/dispatch.h"

CPU_BODY quantise_body(const float *x, int64_t n, float scale, int32_t zero, float low, float high,
                       uint8_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] / scale;
        v = v > low ? v : low; /* NaN: low */
        v = v < high ? v : high;
        v = (v + 12582912.0f) - 12582912.0f; /* to the nearest integer, ties to even */
        y[i] = (uint8_t)((int32_t)v + zero);
    }
}
CPU_DISPATCH(quantise,
             (const float *x, int64_t n, float scale, int32_t zero, float low, float high, uint8_t *y),
             (x, n, scale, zero, low, high, y))

void cpu_quantise_bytes(const float *x, int64_t n, float scale, int32_t zero, bool is_signed, uint8_t *y)
{
    const int32_t least = is_signed ? INT8_MIN : 0, most = is_signed ? INT8_MAX : UINT8_MAX;
    quantise(x, n, scale, zero, (float)(least - zero), (float)(most - zero), y);
}

CPU_BODY dequantise_body(const uint8_t *x, int64_t n, float scale, int32_t zero, int32_t flip, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((x[i] ^ flip) - zero) * scale;
}
CPU_DISPATCH(dequantise, (const uint8_t *x, int64_t n, float scale, int32_t zero, int32_t flip, float *y),
             (x, n, scale, zero, flip, y))

void cpu_dequantise_bytes(const uint8_t *x, int64_t n, float scale, int32_t zero, bool is_signed, float *y)
{
    dequantise(x, n, scale, zero + (is_signed ? 128 : 0), is_signed ? 0x80 : 0, y);
}

CPU_BODY widen_range_body(const float *x, int64_t n, float *low, float *high)
{
    float least = *low, most = *high;
#pragma omp simd reduction(min : least) reduction(max : most)
    for (int64_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    *low = least;
    *high = most;
}
CPU_DISPATCH(widen_range, (const float *x, int64_t n, float *low, float *high), (x, n, low, high))

void cpu_widen_range(const float *x, int64_t n, float *low, float *high)
{
    widen_range(x, n, low, high);
}
