/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the rows of values into another order, by new nodes. */
#ifndef GRT_GRAPH_PASSES_ROW_MOVER_H
#define GRT_GRAPH_PASSES_ROW_MOVER_H

#include "graph/passes/pass.h"
#include "graph/passes/row_tables.h"

typedef struct row_mover {
    const pass_context *context;
    const row_tables *tables;
    ir_value *indices[ROW_TABLES_MOST]; /* constants of tables' rows; NULL: not made */
} row_mover;

/* x with its rows in the order that the table says, made in front of `before`; x itself where they stay. By a
 * Transpose where the table is loops, else by a Gather. NULL: there is no way, or out of memory. */
ir_value *row_mover_move(row_mover *m, ir_node *before, ir_value *x, int32_t table);

#endif
