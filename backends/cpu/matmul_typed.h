/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of types that the packed float32 product does not serve: double and the integers. */
#ifndef GRT_BACKENDS_CPU_MATMUL_TYPED_H
#define GRT_BACKENDS_CPU_MATMUL_TYPED_H

#include "src/base/tensor.h"

typedef struct cpu_matmul {
    int64_t m, n, k;
    int64_t row_a, col_a, row_b, col_b; /* strides in elements; C is dense */
    int32_t threads;
} cpu_matmul;

/* dtype: DOUBLE, INT32, UINT32, INT64 or UINT64; integers wrap around. */
void cpu_matmul_typed(grt_dtype dtype, const cpu_matmul *g, const void *a, const void *b, void *c);
/* y = alpha * y + beta * C for Gemm, C (may be NULL) having 1 or y's rows and columns. */
void cpu_matmul_add_c(grt_tensor *y, const cpu_matmul *g, float alpha, float beta, const grt_tensor *c,
                      int64_t c_rows, int64_t c_cols);

#endif
