/* SPDX-License-Identifier: Apache-2.0 */
/* The equations of Einsum: which label each axis of an operand has. */
#ifndef GRT_BASE_EINSUM_H
#define GRT_BASE_EINSUM_H

#include "src/base/op_desc.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* Labels are small numbers: letters first, then the axes that an ellipsis stands for, which are aligned at
 * its right end. */
enum { GRT_EINSUM_ELLIPSIS = 52, GRT_EINSUM_LABELS = GRT_EINSUM_ELLIPSIS + GRT_MAX_RANK };

/* Labels of the axes of input i, whose rank is given. *out_ellipsis is the number of axes that its ellipsis
 * stands for. */
grt_status grt_einsum_input(const grt_op_desc *desc, int32_t i, int32_t n_in, int32_t rank,
                            int8_t out_labels[GRT_MAX_RANK], int32_t *out_ellipsis);
/* Labels of the output, given the longest ellipsis of the inputs. Without "->" these are the axes of the
 * ellipsis and then, in alphabetical order, the letters that occur once. */
grt_status grt_einsum_output(const grt_op_desc *desc, int32_t ellipsis, int8_t out_labels[GRT_MAX_RANK],
                             int32_t *out_rank);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
