/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, keys and values in the forms that an Attention node takes, made in front of a node. All return
 * NULL if that cannot be. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_INPUTS_H
#define GRT_GRAPH_PASSES_ATTENTION_INPUTS_H

#include "graph/passes/attention_layout.h"

ir_node *attention_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in);
ir_value *attention_transposed(ir_node *before, ir_value *value, const int64_t *perm, int32_t rank);
/* The source as [batch, sequence, width]. value: what was made of it. */
ir_value *attention_rows_of(ir_node *before, const head_rows *rows, ir_value *value);
/* The heads alone, [batch, sequence, heads * size]. */
ir_value *attention_heads_of(ir_node *before, const head_rows *rows, ir_value *value);
/* The source of a sortable layout with sorted columns, which is a joined one. */
ir_value *attention_sorted_source(ir_node *before, const attention_layout *layout);
/* The value as [batch, heads, sequence, size], from what its product takes. */
ir_value *attention_four_dims(ir_node *before, const attention_side *side, const attention_layout *layout,
                              grt_dim heads);
/* What was repeated for groups of queries' heads, [B, h, S, D] -> [B, h, g, S, D]: before that, as [B, h, S,
 * D]. list: of the side, aligned. */
ir_value *attention_unrepeated(ir_node *before, const attention_side *side, const lead_list *list,
                               const attention_layout *layout, grt_dim *out_heads);

#endif
