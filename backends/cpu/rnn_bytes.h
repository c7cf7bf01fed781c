/* SPDX-License-Identifier: Apache-2.0 */
/* Products of recurrent layers with 8-bit weights: floats are rounded to 8 bits of their range, as
 * DynamicQuantizeLinear does it, multiplied exactly, and scaled. */
#ifndef GRT_BACKENDS_CPU_RNN_BYTES_H
#define GRT_BACKENDS_CPU_RNN_BYTES_H

#include "backends/cpu/cpu.h"

#include <stdbool.h>

/* One direction's weights, [k, n], and what they stand for: (weight - zero) * scale. */
typedef struct cpu_rnn_bytes {
    int64_t k, n;
    const void *weights, *zero; /* int8 or uint8; zero may be NULL */
    const uint8_t *packed;      /* weights by cpu_rnn_bytes_pack, or NULL */
    int64_t rows;               /* that they are packed for: 0 a few, -1 not known */
    const float *scale;
    bool is_signed, zero_each, scale_each; /* each: one per column, else one */
    bool backwards; /* from the last packed column to the first: a cache holds what was used last */
} cpu_rnn_bytes;

/* Are weights of [directions, k, n], scales and zero points (or NULL) of the sizes that cpu_rnn_bytes_of
 * wants: one per direction, or one per direction and column? */
bool cpu_rnn_bytes_fit(const grt_tensor *weights, const grt_tensor *scale, const grt_tensor *zero,
                       int64_t directions, int64_t k, int64_t n);
/* Weights [k, n] of the node as the kernels of 8-bit products of so many rows read them (qgemm.h), for what
 * it keeps. */
grt_status cpu_rnn_bytes_pack(const grt_kernel_node *node, const void *weights, int64_t k, int64_t n,
                              bool is_signed, int64_t rows, uint8_t **out_packed);
cpu_rnn_bytes cpu_rnn_bytes_of(const grt_tensor *weights, const grt_tensor *scale, const grt_tensor *zero,
                               int64_t direction);

/* Bytes of 64-byte aligned scratch for products of these sizes, and all smaller ones if `scratch` is not kept
 * between them. False: overflow. */
bool cpu_rnn_bytes_scratch(int64_t k, int64_t n, int threads, size_t *out_bytes);
/* The same for cpu_rnn_bytes_run of m rows with weights packed for `rows`. */
bool cpu_rnn_bytes_run_scratch(int64_t rows, int64_t m, int64_t k, int64_t n, int threads, size_t *out_bytes);
/* c[m, n] = bias[n] + a[m, k] * weights; all rows of a are rounded in the range of the first `ranged`. */
void cpu_rnn_bytes_run(const cpu_rnn_bytes *b, int64_t m, int64_t ranged, const float *a, const float *bias,
                       float *c, void *scratch, int threads);

/* Columns [first, end) of a product. first is a multiple of CPU_RNN_BYTES_BLOCK. */
typedef struct cpu_rnn_columns {
    int64_t first, end;
} cpu_rnn_columns;

enum { CPU_RNN_BYTES_BLOCK = 32 };

/* Adds some columns of a product to c; each row of a has a range of its own. By one of the threads that share
 * `scratch`. The weights are packed for few rows, or not at all if these are all columns. */
void cpu_rnn_bytes_run_columns(const cpu_rnn_bytes *b, int64_t m, const float *a, cpu_rnn_columns own_columns,
                               float *c, void *scratch, int thread);

#endif
