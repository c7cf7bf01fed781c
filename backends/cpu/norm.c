/* SPDX-License-Identifier: Apache-2.0 */
/* Vector loops of the normalisations. */
#include "backends/cpu/norm.h"

#include "backends/cpu/dispatch.h"

CPU_BODY affine_body(const float *x, float *y, int64_t n, float mean, float a, float b)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * a + b;
}
CPU_DISPATCH(affine, (const float *x, float *y, int64_t n, float mean, float a, float b),
             (x, y, n, mean, a, b))

CPU_BODY shift_and_scale_body(const float *x, float *y, int64_t n, double mean, float factor)
{
    const float high = (float)mean, low = (float)(mean - (double)high);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ((x[i] - high) - low) * factor;
}
CPU_DISPATCH(shift_and_scale, (const float *x, float *y, int64_t n, double mean, float factor),
             (x, y, n, mean, factor))

void cpu_norm_rows(const cpu_norm *norm, const float *x, float *y, int64_t rows, float *means, float *factors)
{
    cpu_rows_best()->normalise(norm, x, y, rows, means, factors);
}

void cpu_norm_stats(const float *x, int64_t n, bool rms, float *out_mean, float *out_variance)
{
    cpu_rows_best()->stats(x, n, rms, out_mean, out_variance);
}

void cpu_norm_affine(const float *x, float *y, int64_t n, float mean, float a, float b)
{
    affine(x, y, n, mean, a, b);
}

void cpu_norm_shift(const float *x, float *y, int64_t n, double mean, float factor)
{
    shift_and_scale(x, y, n, mean, factor);
}
