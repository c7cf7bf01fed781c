/* SPDX-License-Identifier: Apache-2.0 */
/* Zeros behind the numbers of a tensor, up to whole vectors, and the cut that takes them off again. */
#ifndef GRT_GRAPH_PASSES_ZEROS_H
#define GRT_GRAPH_PASSES_ZEROS_H

#include "graph/passes/rewrite.h"

/* Numbers of a vector of 16 bytes, where tensor cores multiply by these weights; 0: they do not. */
int64_t zeros_vector(const ir_node *node, const grt_tensor *w);
/* A copy of the constant with `more` zeros behind those along an axis; NULL if the budget does not allow it.
 */
ir_value *zeros_behind(const ir_value *value, int32_t axis, int64_t more);
/* A Slice, behind `made`, of the first n of its last axis; NULL when out of memory. */
ir_node *zeros_cut_off(ir_node *made, int64_t n);

#endif
