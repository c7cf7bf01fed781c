/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of which all slices along an axis are equal, as a mask that was made for a whole batch. */
#ifndef GRT_GRAPH_PASSES_FOLD_REPEATS_H
#define GRT_GRAPH_PASSES_FOLD_REPEATS_H

#include "graph/passes/rewrite.h"

/* An element-wise node of constants, of Expands of constants too, whose results along some axes are all
 * equal, is computed once: a new node in front of it makes one slice, and an Expand of that takes the place
 * of its result. Returns the new node, which can be folded; NULL, with nothing changed, if there is no such
 * axis. */
ir_node *fold_repeats(ir_node *node);

#endif
