/* SPDX-License-Identifier: Apache-2.0 */
/* Permutations of rows as tables of indices: of a value of rows, which all dims but the last one count, row
 * `rows[i]` of every `size` rows of the source is row i of the same rows of the result.
 *
 * A Transpose and a Roll that leave the last dim alone are one each, and so is what a chain of them does. As
 * a permutation is kept once, by its shortest period, numbers of equal ones are equal. */
#ifndef GRT_GRAPH_PASSES_ROW_TABLES_H
#define GRT_GRAPH_PASSES_ROW_TABLES_H

#include "graph/passes/index_map.h"

enum { ROW_TABLES_MOST = 256, ROWS_AS_THEY_ARE = 0, ROWS_UNKNOWN = -1 };

/* Loops over rows, the outermost one first: index i of one is row (i + shift) mod size times `stride`. */
typedef struct row_loops {
    int64_t n, sizes[GRT_MAX_RANK], strides[GRT_MAX_RANK], shifts[GRT_MAX_RANK];
} row_loops;

typedef struct row_table {
    int64_t size;
    const int32_t *rows;
    uint64_t hash;
    const row_loops *loops; /* without shifts, as a Transpose does them; NULL: the table is none such */
} row_table;

/* What has been worked out once, so that a model's nodes, however many, cost as much as they differ. */
typedef struct row_move {
    row_loops loops;
    uint64_t hash;
    int32_t table;
} row_move;

typedef struct row_tables {
    grt_arena *arena; /* tables live as long */
    compile_budget *budget;
    int64_t room;     /* for rows of more tables */
    int64_t work;     /* steps that are left to work them out */
    int32_t *scratch; /* room for rows of one */
    int64_t scratch_size;
    int32_t n, n_moves;
    row_table all[ROW_TABLES_MOST];
    row_move *moves;                  /* room for ROW_TABLES_MOST; NULL: there has been none */
    int16_t *joined;                  /* of each pair: its number + 2; 0: not worked out yet */
    int16_t inverse[ROW_TABLES_MOST]; /* the same of single ones */
} row_tables;

/* The functions below return a permutation's number, or ROWS_UNKNOWN: of what is none, or where the budget,
 * the room or the memory is spent. */
void row_tables_start(row_tables *t, grt_arena *arena, compile_budget *budget);
/* What a node does to the rows of its input 0: a view, a Transpose, a Roll. */
int32_t row_tables_of_node(row_tables *t, const ir_node *node);
/* `second` of what `first` makes. */
int32_t row_tables_joined(row_tables *t, int32_t first, int32_t second);
int32_t row_tables_inverse(row_tables *t, int32_t table);

#endif
