/* SPDX-License-Identifier: Apache-2.0 */
/* In what order nodes work on their rows. */
#ifndef GRT_GRAPH_PASSES_ROW_CHOICE_H
#define GRT_GRAPH_PASSES_ROW_CHOICE_H

#include "graph/passes/row_place.h"

/* From the last node to the first: notes in which order bases are wanted. */
void row_choice_want(row_places *p, ir_graph *graph);
/* From the first to the last: each node gets the order for which fewest elements are moved, its inputs the
 * copies that they are to be. False: out of memory. */
bool row_choice_make(row_places *p, ir_graph *graph);

#endif
