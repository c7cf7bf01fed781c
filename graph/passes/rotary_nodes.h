/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes that find rotary position embedding share: making its nodes. */
#ifndef GRT_GRAPH_PASSES_ROTARY_NODES_H
#define GRT_GRAPH_PASSES_ROTARY_NODES_H

#include "graph/ir/ir.h"

/* A node with one result, named like the one it is in front of. */
ir_node *rotary_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in);
/* x under that shape, which may have zeros for dims of x. NULL if it cannot be. */
ir_node *rotary_reshape(ir_node *before, ir_value *x, const int64_t *shape, int64_t n);
/* Heads in front of positions, or behind them again. */
ir_value *rotary_exchanged(ir_node *before, ir_value *x);
/* Give a RotaryEmbedding a row of angles for each of the batch, as kernels want it. */
bool rotary_widen(ir_node *rotary);

#endif
