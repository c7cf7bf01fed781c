/* SPDX-License-Identifier: Apache-2.0 */
/* Vector loops of the normalisations. */
#include "backends/cpu/norm.h"

#include "backends/cpu/dispatch.h"

#include <stddef.h>

CPU_BODY stats_body(const float *x, int64_t n, bool rms, float *out_mean, float *out_variance)
{
    float sum = 0.0f, squares = 0.0f, mean = 0.0f;
    if (!rms) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        mean = sum / (float)n;
    }
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *out_mean = mean;
    *out_variance = squares / (float)n;
}
CPU_DISPATCH(stats, (const float *x, int64_t n, bool rms, float *out_mean, float *out_variance),
             (x, n, rms, out_mean, out_variance))

CPU_BODY apply_body(const float *x, float *y, int64_t n, float mean, float factor, const float *scale,
                    const float *bias)
{
    if (scale && bias) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
    } else if (scale) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor * scale[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * factor;
    }
}
CPU_DISPATCH(apply,
             (const float *x, float *y, int64_t n, float mean, float factor, const float *scale,
              const float *bias),
             (x, y, n, mean, factor, scale, bias))

CPU_BODY affine_body(const float *x, float *y, int64_t n, float mean, float a, float b)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * a + b;
}
CPU_DISPATCH(affine, (const float *x, float *y, int64_t n, float mean, float a, float b),
             (x, y, n, mean, a, b))

void cpu_norm_stats(const float *x, int64_t n, bool rms, float *out_mean, float *out_variance)
{
    stats(x, n, rms, out_mean, out_variance);
}

void cpu_norm_apply(const float *x, float *y, int64_t n, float mean, float factor, const float *scale,
                    const float *bias)
{
    apply(x, y, n, mean, factor, scale, bias);
}

void cpu_norm_affine(const float *x, float *y, int64_t n, float mean, float a, float b)
{
    affine(x, y, n, mean, a, b);
}
