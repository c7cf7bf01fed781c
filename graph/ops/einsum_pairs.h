/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of many operands by pairs. */
#ifndef GRT_GRAPH_OPS_EINSUM_PAIRS_H
#define GRT_GRAPH_OPS_EINSUM_PAIRS_H

#include "graph/ir/ir.h"

/* op_row.expand: done if that leaves fewer operands, or fewer labels in one, or a matrix product. Sums of
 * float16 and bfloat16 are made in float32 where there were more than two. */
grt_status einsum_expand(ir_node *node, bool *out_done);

#endif
