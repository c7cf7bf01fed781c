/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization: attributes. */
#ifndef GRT_BACKENDS_SHARED_LP_NORM_H
#define GRT_BACKENDS_SHARED_LP_NORM_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_lp_norm {
    int64_t axis, p;
} grt_lp_norm;

/* For kernel rows: the state is released with free. */
bool grt_lp_norm_supports(const grt_kernel_node *node, grt_text *why);
grt_status grt_lp_norm_create(const grt_kernel_node *node, void **out_state);

#ifdef __cplusplus
}
#endif
#endif
