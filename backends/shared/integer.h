/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul: where their inputs are, and their shapes. */
#ifndef GRT_BACKENDS_SHARED_INTEGER_H
#define GRT_BACKENDS_SHARED_INTEGER_H

#include "backends/kernel.h"
#include "backends/shared/window.h"
#include "src/base/float.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Positions of inputs by role; 0: the op has none (input 0 is always the data). */
typedef struct grt_integer_places {
    int32_t scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y, bias;
} grt_integer_places;

const grt_integer_places *grt_integer_places_of(const grt_op_desc *desc);

static inline const grt_tensor *grt_integer_in(const grt_tensor *const *in, int32_t n_in, int32_t place)
{
    return place && place < n_in ? in[place] : NULL;
}

typedef struct grt_integer_conv {
    cpu_window w;
    int64_t batch, groups, in_channels, out_channels; /* in_channels: per group */
} grt_integer_conv;

typedef struct grt_integer_matmul {
    int64_t m, n, k, batch;
    int32_t lead;                                                 /* leading dims of the output */
    int64_t dims[GRT_MAX_RANK], a[GRT_MAX_RANK], b[GRT_MAX_RANK]; /* strides in matrices */
} grt_integer_matmul;

/* For kernel rows: the shape is one of these, which free releases. Errors: INVALID_ARGUMENT. */
grt_status grt_integer_conv_reshape(grt_reshape *reshape);
grt_status grt_integer_matmul_reshape(grt_reshape *reshape);

/* Of the QLinear ops: their inputs beyond the fourth are not covered by a row's types. */
bool grt_qlinear_supports(const grt_kernel_node *node, grt_text *why);

/* Which of `n` zero points or scales belongs to row (or column) i of a matrix: there is one for all, one for
 * each row of a matrix, or one for each row of all matrices. */
GRT_INLINE int64_t grt_integer_level(int64_t n, int64_t per_matrix, int64_t matrix, int64_t i)
{
    return n == 1 ? 0 : n > per_matrix ? matrix * per_matrix + i : i;
}

#ifdef __cplusplus
}
#endif
#endif
