/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that work row by row: each row of the result, which all dims but the last one count, is made of the
 * same row of some inputs, in one way for all rows. So their rows may be in any order. */
#ifndef GRT_GRAPH_PASSES_ROW_WISE_H
#define GRT_GRAPH_PASSES_ROW_WISE_H

#include "graph/ir/ir.h"

/* True if the value is a constant matrix, also one that is not transposed yet. */
bool row_wise_is_matrix(const ir_value *value);
/* True if the value has rows: two dims or more, the last one of known size. */
bool row_wise_has_rows(const ir_value *value);
/* Bytes of such a value's row, INT64_MAX at most. */
int64_t row_wise_bytes(const ir_value *value);
/* True if the node has one result, which it makes row by row. */
bool row_wise_makes(const ir_node *node);
/* True if such a node reads the rows of that input; else the input is the same for all rows. */
bool row_wise_reads(const ir_node *node, int32_t input);

#endif
