/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd, LpNormalization, MeanVarianceNormalization, Det: attributes and axes. */
#ifndef GRT_BACKENDS_SHARED_CUMULATE_H
#define GRT_BACKENDS_SHARED_CUMULATE_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_cumulate {
    bool product, exclusive, reverse;
} grt_cumulate;

typedef struct grt_lp_norm {
    int64_t axis, p;
} grt_lp_norm;

/* Some of a tensor's axes, walked as one flat index (grt_strided_offset). */
typedef struct grt_axes_walk {
    int32_t rank;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK], total;
} grt_axes_walk;

/* MeanVarianceNormalization: the axes that share a mean and a variance, and the others. */
typedef struct grt_mvn {
    grt_axes_walk kept, over;
} grt_mvn;

/* For kernel rows: states and shapes are released with free. */
grt_status grt_cumulate_create(const grt_kernel_node *node, void **out_state);
bool grt_lp_norm_supports(const grt_kernel_node *node, grt_text *why);
grt_status grt_lp_norm_create(const grt_kernel_node *node, void **out_state);
grt_status grt_mvn_reshape(grt_reshape *reshape);

/* The axis that input `axis`, in host memory, names. Errors: INVALID_ARGUMENT. */
grt_status grt_cumulate_axis(const grt_op_desc *desc, const grt_tensor *x, const grt_tensor *axis,
                             int32_t *out_axis);
/* Errors: INVALID_ARGUMENT if Det's matrices are not square. */
grt_status grt_det_check(const grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif
