/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float32 by weights of 2, 4 or 8 bits, integers or floats, with scales and zero points per block
 * of k and column:
 *
 *   Y[m,n] = sum(A * (W - zero) * scale) + bias[n]
 *
 * Weights stay packed. For a few rows they become float32 in registers, which is a matter of memory's speed;
 * for many, a strip of columns at a time in cache, which the float32 product then reads. */
#ifndef GRT_BACKENDS_CPU_WGEMM_H
#define GRT_BACKENDS_CPU_WGEMM_H

#include "backends/cpu/wgemm_kernel.h"

#include <stddef.h>

/* k, n, block and bits are set: bytes of the arrays. False: overflow. */
bool grt_wgemm_size(grt_wgemm *w, size_t *out_bytes);
/* The arrays lie there from now on, as zeros; `memory` is 64-byte aligned, and w->numbers is its begin. */
void grt_wgemm_place(grt_wgemm *w, void *memory);
/* A column of k numbers, or a row of n, each once. Several columns may be put at a time, rows may not. */
void grt_wgemm_put_column(grt_wgemm *w, int64_t column, const uint8_t *numbers);
void grt_wgemm_put_row(grt_wgemm *w, int64_t x, const uint8_t *numbers);

/* Bytes of 64-byte aligned scratch for m rows. False: overflow. */
bool grt_wgemm_scratch_bytes(const grt_wgemm *w, int64_t m, int threads, size_t *out_bytes);
/* a: m x k, y: m x n, without gaps. bias: n, or NULL. */
void grt_wgemm_run(const grt_wgemm *w, int64_t m, const float *a, const float *bias, float *y, void *scratch,
                   int threads);

#endif
