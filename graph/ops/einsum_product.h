/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of two operands as a matrix product. */
#ifndef GRT_GRAPH_OPS_EINSUM_PRODUCT_H
#define GRT_GRAPH_OPS_EINSUM_PRODUCT_H

#include "graph/ir/ir.h"

/* Puts Transpose, Reshape and MatMul in the place of an Einsum of two float operands that sums over a label
 * of both, where every label has one size wherever it stands. */
grt_status einsum_to_product(ir_node *node, bool *out_done);

#endif
