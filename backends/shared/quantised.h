/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on 8-bit tensors (graphrt::QConv, QMatMul, QAdd, QMul, QTable, QGlobalAveragePool, QSoftmax): where
 * their inputs are, and what kernels of all devices ask of them. */
#ifndef GRT_BACKENDS_SHARED_QUANTISED_H
#define GRT_BACKENDS_SHARED_QUANTISED_H

#include "backends/kernel.h"
#include "backends/shared/window.h"
#include "src/base/activation.h"
#include "src/base/qproduct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of QAdd and QMul; all of them are there. */
enum { QB_A, QB_A_SCALE, QB_A_ZERO, QB_B, QB_B_SCALE, QB_B_ZERO, QB_Y_SCALE, QB_Y_ZERO, QB_INPUTS };

/* True for activations that limits of a rounded result stand for. */
static inline bool grt_act_is_limit(grt_act act)
{
    return act.kind == GRT_ACT_NONE || act.kind == GRT_ACT_RELU || act.kind == GRT_ACT_CLIP;
}

/* True if all inputs are 8-bit tensors but those of the bits `scales`, which are float32. `why` may be NULL.
 */
bool grt_qbytes_fit(const grt_kernel_node *node, uint32_t scales, grt_text *why);
/* True if the dtypes of all inputs but the residual's fit. */
bool grt_qproduct_types_fit(const grt_kernel_node *node);
/* True if all constants have as many elements as grt_qproduct_check_columns asks for: what reads them before
 * there are dims, when a session is made, must ask first. */
bool grt_qproduct_constants_fit(const grt_kernel_node *node, int64_t n);
/* Fails unless what is per column has one element or n. */
grt_status grt_qproduct_check_columns(const grt_reshape *r, int64_t n);
/* The same, and unless the residual has the result's dims. */
grt_status grt_qproduct_check(const grt_reshape *r, int64_t n);

/* True if the weights of a QConv and their zero points are constant, and fit its groups. */
bool grt_qconv_has_filters(const grt_kernel_node *node);
/* The window of a QConv of `channels` input channels and grt_qproduct_check. */
grt_status grt_qconv_fit(const grt_reshape *r, bool channels_last, int64_t channels, cpu_window *out);

/* How b repeats in QAdd and QMul: a is [outer, repeats, inner], b is [outer, 1, inner]. */
typedef struct grt_qrepeat {
    int64_t outer, repeats, inner;
} grt_qrepeat;

/* False if b is not a with one run of dims that are 1. A dim of -1 is unknown and taken as one that fits. */
bool grt_qrepeat_read(const grt_tensor *a, const grt_tensor *b, grt_qrepeat *out);

/* For rows of QAdd and QMul, whose b is of any grt_qrepeat; and of QTable. */
bool grt_qbinary_supports(const grt_kernel_node *node, grt_text *why);
grt_status grt_qbinary_reshape(grt_reshape *r);
grt_status grt_qtable_reshape(grt_reshape *r);

#ifdef __cplusplus
}
#endif
#endif
