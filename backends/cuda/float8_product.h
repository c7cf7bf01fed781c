/* SPDX-License-Identifier: Apache-2.0 */
/* What is around a product of float8 that the library computes: operands that are widened where it has none,
 * and how float32 sums become results. */
#ifndef GRT_BACKENDS_CUDA_FLOAT8_PRODUCT_H
#define GRT_BACKENDS_CUDA_FLOAT8_PRODUCT_H

#include "backends/cuda/cuda.h"
#include "src/base/activation.h"

/* y = act(sum * x_scale * w_scale[column] + bias + residual), rounded to y's type; float8 in units of
 * y_scale. All data are in device memory. */
typedef struct cuda_float8_finish {
    const float *sums;
    int64_t rows, columns;                    /* columns: a multiple of 4 */
    const float *x_scale, *w_scale, *y_scale; /* y_scale NULL: y is no float8 */
    bool w_scale_each;
    const float *bias;    /* NULL: none */
    const void *residual; /* of y's type, which is no float8; NULL: none */
    grt_act act;
    void *y;
    grt_dtype dtype; /* of y */
} cuda_float8_finish;

grt_status cuda_float8_finish_enqueue(const cuda_float8_finish *f, cudaStream_t stream);

/* Float8 as float32; n is a multiple of 4. */
grt_status cuda_float8_widen_enqueue(const void *from, grt_dtype dtype, float *to, int64_t n,
                                     cudaStream_t stream);

#endif
