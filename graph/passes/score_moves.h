/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of the rows of scores: a row, the scores of one query for all keys, stays whole, and the dims in
 * front of it are joined, split and sorted on the way from the product of queries and keys to the product by
 * values.
 *
 * Queries that share keys are rows of one product, [batch, groups, heads * queries, keys], and have dims of
 * their own at the softmax, [batch, groups, heads, queries, keys]. */
#ifndef GRT_GRAPH_PASSES_SCORE_MOVES_H
#define GRT_GRAPH_PASSES_SCORE_MOVES_H

#include "graph/passes/index_map.h"

enum { SCORE_MOVES = 16 };

typedef struct score_moves {
    ir_node *nodes[SCORE_MOVES]; /* from the last to the first */
    int32_t n;
    bool mixed; /* one of them moves elements between the last two dims and those in front */
} score_moves;

/* x, where the value is x with its rows moved; NULL if it is not. The node is added to the moves (NULL: not
 * kept). */
ir_value *score_moves_before(const ir_value *value, score_moves *moves);
/* Rows of another length in place of those in front of all moves, or behind them: nodes in front of `before`
 * that move them alike. NULL if they cannot be written. */
ir_value *score_moves_apply(ir_node *before, const score_moves *moves, ir_value *x);
/* Matrices [leading..., sequence, size] that a product takes one of for `rows` rows each: their map behind
 * the moves of these rows, where it has to be the same for all of the second last dim there. */
bool score_moves_follow(grt_dims *dims, const score_moves *moves, grt_dim rows, index_map *map);
/* The same in front of the moves. */
bool score_moves_return(grt_dims *dims, const score_moves *moves, grt_dim rows, index_map *map);

#endif
