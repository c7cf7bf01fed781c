/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of a matrix of weights of few bits, and which scale an element has. */
#ifndef GRT_BACKENDS_SHARED_WEIGHT_ROWS_H
#define GRT_BACKENDS_SHARED_WEIGHT_ROWS_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element i of a row has scale row * row_step + i / block: one for all, one a row, one a column, or one for a
 * block of a row. Zero points lie as scales do, if there is not one for all. */
typedef struct grt_weight_rows {
    int64_t row_step, block;
    bool one_zero; /* or none */
} grt_weight_rows;

/* zero: NULL if there is none. False: they do not fit. */
bool grt_weight_rows_read(const grt_op_desc *desc, const grt_tensor *w, const grt_tensor *scale,
                          const grt_tensor *zero, grt_weight_rows *out);
/* The same, with a message, when dims are known. */
grt_status grt_weight_rows_fit(const grt_reshape *r, grt_weight_rows *out);
/* For a row of the table of kernels: weights and scales of these dtypes. The result has the type of the
 * scales; float32 if they are powers of two (e8m0). */
bool grt_weight_rows_supported(const grt_kernel_node *node, grt_dtype_set weights, grt_dtype_set scales,
                               grt_text *why);

#ifdef __cplusplus
}
#endif
#endif
