/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of a row, and products of few rows. */
#include "backends/cpu/softmax.h"

#include "backends/cpu/act.h"
#include "backends/cpu/dispatch.h"

#include <math.h>
#include <string.h>

/* Rows are taken in blocks; the last, ragged one goes through a copy that is filled up with what adds
 * nothing, as single exponentials cost almost as much as a vector of them. */
enum { BLOCK = 16 };

static inline __attribute__((always_inline)) float exp_sum_body(const float *x, float top, float *y,
                                                                int64_t n)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        const float e = grt_act_exp(x[i] - top);
        y[i] = e;
        sum += e;
    }
    return sum;
}

CPU_BODY softmax_row_body(const float *x, float *y, int64_t n, bool log)
{
    const int64_t whole = n / BLOCK * BLOCK;
    float top = -INFINITY, sum = 0.0f, rest[BLOCK], scratch[BLOCK];
    for (int64_t i = 0; i < BLOCK; i++)
        rest[i] = whole + i < n ? x[whole + i] : -INFINITY;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < whole; i++)
        top = x[i] > top ? x[i] : top;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < BLOCK; i++)
        top = rest[i] > top ? rest[i] : top;
    if (log) {
        for (int64_t i = 0; i < whole; i += BLOCK)
            sum += exp_sum_body(x + i, top, scratch, BLOCK);
        sum += exp_sum_body(rest, top, scratch, BLOCK);
        const float shift = logf(sum);
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - top - shift;
        return;
    }
    sum = exp_sum_body(x, top, y, whole);
    sum += exp_sum_body(rest, top, scratch, BLOCK);
    memcpy(y + whole, scratch, (size_t)(n - whole) * sizeof *y);
    const float factor = 1.0f / sum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}
CPU_DISPATCH(softmax_row, (const float *x, float *y, int64_t n, bool log), (x, y, n, log))

void cpu_softmax_row(const float *x, float *y, int64_t n, bool log)
{
    if (n > 0)
        softmax_row(x, y, n, log);
}

CPU_BODY dot_rows_body(const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
                       float *scores)
{
    for (int64_t j = 0; j < n; j++) {
        const float *b = k + j * row;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t d = 0; d < size; d++)
            sum += q[d] * b[d];
        scores[j] = alpha * sum;
    }
}
CPU_DISPATCH(dot_rows,
             (const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
              float *scores),
             (q, k, row, n, size, alpha, scores))

void cpu_dot_rows(const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
                  float *scores)
{
    dot_rows(q, k, row, n, size, alpha, scores);
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
