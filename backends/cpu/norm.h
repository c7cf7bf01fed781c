/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of floats brought to zero mean and unit variance: what the normalisations share. */
#ifndef GRT_BACKENDS_CPU_NORM_H
#define GRT_BACKENDS_CPU_NORM_H

#include "backends/cpu/rows.h"

/* Rows one after the other; y may be x, or NULL: only means and factors of the rows are wanted. */
void cpu_norm_rows(const cpu_norm *norm, const float *x, float *y, int64_t rows, float *means,
                   float *factors);

/* Mean and variance (of the population) in two passes; with rms, mean is 0 and variance the mean square. */
void cpu_norm_stats(const float *x, int64_t n, bool rms, float *out_mean, float *out_variance);
/* y = (x - mean) * a + b: the difference first, which loses nothing. y may be x. */
void cpu_norm_affine(const float *x, float *y, int64_t n, float mean, float a, float b);
/* y = (x - mean) * factor, the mean in two parts: one float alone would move results near 0. y may be x. */
void cpu_norm_shift(const float *x, float *y, int64_t n, double mean, float factor);

#endif
