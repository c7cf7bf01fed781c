/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of an attention: what lies between its softmax and the product by values. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_WEIGHTS_H
#define GRT_GRAPH_PASSES_ATTENTION_WEIGHTS_H

#include "graph/passes/attention_match.h"

/* The weights that match->last takes, whose softmax is found: as they are, [..., queries, keys], or turned
 * before the product takes them. Sets softmax, flipped, crossed, back and head_weight. NULL if there are
 * none.
 */
ir_value *attention_weights_find(attention_match *match);
/* True if nothing but the attention reads the values between it and its softmax. */
bool attention_weights_are_private(const ir_value *weights, const ir_node *softmax);
/* x, where the value is x with its rows moved, or in another precision. moves: may be NULL. */
ir_value *attention_weights_passed(const ir_value *value, score_moves *moves);

#endif
