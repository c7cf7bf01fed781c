/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, keys and values that one projection makes side by side. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_COLUMNS_H
#define GRT_GRAPH_PASSES_ATTENTION_COLUMNS_H

#include "graph/passes/attention_match.h"

/* Keys and values of what no query is made of are read from projections of their own, by parts of the
 * constants, if nothing else reads the one: their rows hold nothing else then, and need no moves to be taken
 * apart. */
void attention_columns_split(ir_node *before, attention_side *sides);
/* The same for queries, keys and values of one projection; false if they stay as they are. */
bool attention_columns_split_all(ir_node *before, attention_side *sides);

#endif
