/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a group of nodes that compute rows (pass `rows`; graph/ops/rows.h has its form). */
#ifndef GRT_GRAPH_PASSES_ROWS_CODE_H
#define GRT_GRAPH_PASSES_ROWS_CODE_H

#include "graph/ops/rows.h"
#include "graph/passes/pointwise_node.h"

/* A node that folds the last dims of its input: a Reduce, graphrt's with a wide result included. */
typedef struct rows_reduction {
    const ir_type *in, *out;
    int32_t row_dims; /* how many dims are folded */
    int64_t length;   /* elements that become one */
    bool keeps_dims;
} rows_reduction;

/* False: the node is none, or its row is not known. */
bool rows_reduction_of(const ir_node *node, rows_reduction *out);

typedef struct rows_code {
    int32_t n_inputs;
    const ir_value *inputs[ROWS_MAX_INPUTS];
    int64_t code[ROWS_MAX_INSTRUCTIONS * 4];
    int32_t n;
    float constants[ROWS_MAX_CONSTANTS];
    int32_t n_constants;
    bool full; /* something did not fit */
} rows_code;

/* Add a node of the group behind those that it reads; its mark becomes its result's number. Views and Casts
 * have no instruction. */
void rows_code_add(rows_code *c, ir_node *node);
/* Once all are added: number operands as the attribute has them. */
void rows_code_end(rows_code *c);

#endif
