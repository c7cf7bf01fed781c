/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes the passes that make groups of element-wise nodes (pointwise, rows) can take. */
#ifndef GRT_GRAPH_PASSES_POINTWISE_NODE_H
#define GRT_GRAPH_PASSES_POINTWISE_NODE_H

#include "graph/passes/rewrite.h"

#define POINTWISE_NARROW_FLOATS (GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))
#define POINTWISE_FLOATS        (GRT_BIT(FLOAT) | POINTWISE_NARROW_FLOATS)

/* The function of pointwise.def that the node is; -1 if it is none that a group can hold. */
int32_t pointwise_node_opcode(const ir_node *node);
/* A Cast that changes no number by itself, but for its rounding. */
bool pointwise_node_is_cast(const ir_node *node);
/* True if the group may compute the node's result without writing it: nothing that the model rounds would
 * stay unrounded before or behind a Cast. */
bool pointwise_node_may_stay_inside(const ir_node *node);
/* A constant that goes into the program. */
bool pointwise_node_is_immediate(const ir_value *value, double *out_value);
/* The group, as nodes' marks number them, that every use of the value is in; -1 if there is none. */
int64_t pointwise_node_group_of_uses(const ir_value *value);

#endif
