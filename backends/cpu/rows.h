/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of floats that end in one number, compiled once per instruction set (rows.inc).
 *
 * A compiler may not reorder a float sum, and what it makes of a reduction's clause ends in a chain of as
 * many additions as a vector has lanes: for rows of a few vectors that chain was most of the time. */
#ifndef GRT_BACKENDS_CPU_ROWS_H
#define GRT_BACKENDS_CPU_ROWS_H

#include "backends/cpu/attention_short.h"

#include <stdbool.h>
#include <stdint.h>

/* What normalises rows of `size`: y = (x - mean) * factor * scale + bias, factor = 1 / sqrt(variance +
 * epsilon). */
typedef struct cpu_norm {
    int64_t size;
    bool rms; /* the mean is 0, and the variance the mean square */
    float epsilon;
    const float *scale, *bias; /* of `size` values; bias, or both, may be NULL */
} cpu_norm;

/* How a row becomes one number: a sum of values, of their absolute values or squares; the largest or the
 * least, NaN if one is NaN. */
typedef enum cpu_fold {
    CPU_FOLD_SUM,
    CPU_FOLD_ABS,
    CPU_FOLD_SQUARE,
    CPU_FOLD_LARGEST,
    CPU_FOLD_LEAST
} cpu_fold;

typedef struct cpu_rows {
    /* As cpu_softmax_rows, for n > 0. */
    void (*softmax)(const float *x, float *y, int64_t rows, int64_t n, bool log);
    /* As cpu_dot_rows. */
    void (*dots)(const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
                 float *scores);
    /* As cpu_norm_stats. */
    void (*stats)(const float *x, int64_t n, bool rms, float *out_mean, float *out_variance);
    /* As cpu_norm_rows. */
    void (*normalise)(const cpu_norm *norm, const float *x, float *y, int64_t rows, float *means,
                      float *factors);
    /* out[i], for i < rows, is row i's number; rows have n > 0 values and lie one behind the other. Sums are
     * made in float32 for at most a thousand values, then in double. */
    void (*fold)(cpu_fold how, const float *x, int64_t rows, int64_t n, double *out);
    /* True if short_head computes heads of these sizes. */
    bool (*short_fits)(int64_t keys, int64_t size, int64_t v_size);
    void (*short_head)(const attention_short *head);
} cpu_rows;

extern const cpu_rows cpu_rows_base, cpu_rows_avx2, cpu_rows_avx512;

/* Those of this process's instruction set. */
const cpu_rows *cpu_rows_best(void);

#endif
