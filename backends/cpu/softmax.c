/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of a row, capped scores, and products of few rows. */
#include "backends/cpu/softmax.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/vmath.h"

#include <string.h>

void cpu_softmax_rows(const float *x, float *y, int64_t rows, int64_t n, bool log)
{
    if (n > 0)
        cpu_rows_best()->softmax(x, y, rows, n, log);
}

void cpu_dot_rows(const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
                  float *scores)
{
    cpu_rows_best()->dots(q, k, row, n, size, alpha, scores);
}

CPU_BODY sum_rows_body(const float *weights, const float *v, int64_t row, int64_t n, int64_t size, float *y)
{
    if (size == 0) /* then there may be no memory */
        return;
    memset(y, 0, (size_t)size * sizeof *y);
    for (int64_t j = 0; j < n; j++) {
        const float *from = v + j * row;
        const float weight = weights[j];
#pragma omp simd
        for (int64_t d = 0; d < size; d++)
            y[d] += weight * from[d];
    }
}
CPU_DISPATCH(sum_rows, (const float *weights, const float *v, int64_t row, int64_t n, int64_t size, float *y),
             (weights, v, row, n, size, y))

void cpu_sum_rows(const float *weights, const float *v, int64_t row, int64_t n, int64_t size, float *y)
{
    sum_rows(weights, v, row, n, size, y);
}

CPU_BODY cap_scores_body(float *scores, int64_t n, float cap)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        scores[i] = cap * vm_tanh(scores[i] / cap);
}
CPU_DISPATCH(cap_scores, (float *scores, int64_t n, float cap), (scores, n, cap))

void cpu_cap_scores(float *scores, int64_t n, float cap)
{
    cap_scores(scores, n, cap);
}
