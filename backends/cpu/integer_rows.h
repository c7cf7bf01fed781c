/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows of small integers with a matrix of bytes, summed in int32. */
#ifndef GRT_BACKENDS_CPU_INTEGER_ROWS_H
#define GRT_BACKENDS_CPU_INTEGER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_INTEGER_ROWS = 4 };

/* sums[row * n + j] = sum over k of a[row * stride + k] * b[k * n + j], for up to CPU_INTEGER_ROWS rows. Of
 * a, magnitudes are below 2^9, and there is room for one more element behind each row. Sums wrap around. */
void cpu_integer_rows(int16_t *a, int64_t stride, int rows, const void *b, bool b_signed, int64_t k,
                      int64_t n, int32_t *sums);

#endif
