/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of two operands as a matrix product, or as a Mul. */
#ifndef GRT_GRAPH_OPS_EINSUM_PRODUCT_H
#define GRT_GRAPH_OPS_EINSUM_PRODUCT_H

#include "graph/ir/ir.h"

/* Puts Transpose, Reshape and MatMul in the place of an Einsum of two float operands that sums over a label
 * of both, and Transpose, Unsqueeze and Mul in that of one that sums over none, where every label has one
 * size wherever it stands. */
grt_status einsum_to_product(ir_node *node, bool *out_done);
/* Removes what was put between `last` (NULL: the graph's begin) and the node: it stays an Einsum. */
void einsum_take_back(ir_node *node, const ir_node *last);

#endif
