/* SPDX-License-Identifier: Apache-2.0 */
/* One mask of all that is added to the scores of an attention. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_MASK_H
#define GRT_GRAPH_PASSES_ATTENTION_MASK_H

#include "graph/passes/attention_layout.h"

/* Gives terms the sizes of the scores where they have sizes of their own, which are equal to these, or 1, in
 * every run that is valid: the model's own ops broadcast them. */
void attention_mask_settle(ir_node *before, attention_match *m);
/* The terms' sum as [batch or 1, heads or 1, queries or 1, keys], in front of `before`. lists: of the terms,
 * aligned. NULL if it cannot be made: *why says why. */
ir_value *attention_mask_make(ir_node *before, const attention_match *match, const attention_layout *layout,
                              const lead_list *lists, grt_dtype dtype, const char **why);
/* `x` in that type: itself, or cast in front of `before`. */
ir_value *attention_cast(ir_node *before, ir_value *x, grt_dtype dtype);
/* Map of a term, broadcast to the scores that it is added to. */
bool attention_term_map(const attention_term *term, index_map *map);

#endif
