/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of an attention: what lies between its softmax and the product by values. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_WEIGHTS_H
#define GRT_GRAPH_PASSES_ATTENTION_WEIGHTS_H

#include "graph/passes/score_moves.h"

typedef struct attention_weights {
    ir_value *value; /* [..., queries, keys] behind all moves, and before the last product's are transposed */
    ir_node *softmax;
    score_moves back;      /* between the softmax and the last product */
    ir_value *head_factor; /* a factor of all weights of a head, [..., heads, 1, 1]; NULL: none */
    bool flipped;          /* the last product is V^T * weights^T */
    bool crossed;          /* the scores are K Q^T, and the softmax is over their second last dim */
} attention_weights;

/* The weights that the product `last` takes, whose softmax is found. False if there are none. */
bool attention_weights_find(const ir_node *last, attention_weights *out);
/* True if nothing but the attention reads the values between it and its softmax. */
bool attention_weights_are_private(const attention_weights *weights);
/* x, where the value is x with its rows moved, or in another precision. moves: may be NULL. */
ir_value *attention_weights_passed(const ir_value *value, score_moves *moves);

#endif
