/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes that make groups of element-wise nodes (pointwise, rows) share: which nodes they can take,
 * and the node that takes the place of a group. */
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
/* Adds an input of a group unless it is there; false if there are `most` others. */
bool pointwise_node_add_input(const ir_value **inputs, int32_t *n, int32_t most, const ir_value *value);

/* A group and its program, four numbers an instruction. */
typedef struct pointwise_group {
    ir_node *const *members; /* the last one first */
    int32_t n_members;
    const ir_value *const *inputs;
    int32_t n_inputs;
    const int64_t *code;
    int32_t n_code;
    const float *constants;
    int32_t n_constants;
} pointwise_group;

/* A node graphrt::`op` with the attributes program and constants, in front of the last member; NULL without
 * memory. */
ir_node *pointwise_node_create(const char *op, const pointwise_group *g);
/* Names the type of the node's result where it is another than that of the inputs' floats, or where these
 * differ. truth: the program's last function gives truth. */
void pointwise_node_name_type(ir_node *node, bool truth, grt_dtype wanted);

#endif
