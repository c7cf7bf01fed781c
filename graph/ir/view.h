/* SPDX-License-Identifier: Apache-2.0 */
/* Views: nodes whose results lie in the memory of their input 0, so that nothing is to be done for them. */
#ifndef GRT_GRAPH_IR_VIEW_H
#define GRT_GRAPH_IR_VIEW_H

#include "graph/ir/ir.h"

/* Are the node's outputs input 0's elements in the same order: all of them (OP_VIEW), or parts of known size
 * that follow each other (OP_PARTS), each of which begins where kernels may read (GRT_VALUE_ALIGNMENT)? */
bool ir_is_view(const ir_node *node);

#endif
