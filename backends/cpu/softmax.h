/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and small products in float32, vectorised for this machine: what Softmax and Attention share. */
#ifndef GRT_BACKENDS_CPU_SOFTMAX_H
#define GRT_BACKENDS_CPU_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* y = softmax(x), or its logarithm, of rows of n one behind the other; y may be x. A row of -inf alone gives
 * NaN. */
void cpu_softmax_rows(const float *x, float *y, int64_t rows, int64_t n, bool log);
/* scores[j] = alpha * <q, k row j> for n rows of `size`. */
void cpu_dot_rows(const float *q, const float *k, int64_t row, int64_t n, int64_t size, float alpha,
                  float *scores);
/* y = sum over j of weights[j] * v row j, for n rows of `size`. */
void cpu_sum_rows(const float *weights, const float *v, int64_t row, int64_t n, int64_t size, float *y);
/* scores = cap * tanh(scores / cap), so that they stay within cap. */
void cpu_cap_scores(float *scores, int64_t n, float cap);

#endif
