/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd: attributes and axis. */
#ifndef GRT_BACKENDS_SHARED_CUMULATE_H
#define GRT_BACKENDS_SHARED_CUMULATE_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_cumulate {
    bool product, exclusive, reverse;
} grt_cumulate;

/* For kernel rows: the state is released with free. */
grt_status grt_cumulate_create(const grt_kernel_node *node, void **out_state);

/* The axis that input `axis`, in host memory, names. Errors: INVALID_ARGUMENT. */
grt_status grt_cumulate_axis(const grt_op_desc *desc, const grt_tensor *x, const grt_tensor *axis,
                             int32_t *out_axis);

#ifdef __cplusplus
}
#endif
#endif
