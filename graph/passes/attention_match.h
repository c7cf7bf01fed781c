/* SPDX-License-Identifier: Apache-2.0 */
/* What attention that is written out computes: its parts, found from its last product. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_MATCH_H
#define GRT_GRAPH_PASSES_ATTENTION_MATCH_H

#include "graph/passes/attention_weights.h"

enum { ATTENTION_SIDE_Q, ATTENTION_SIDE_K, ATTENTION_SIDE_V, ATTENTION_SIDES };

/* Queries, keys or values: [leading..., sequence, size], broadcast to the leading dims of the scores. */
typedef struct attention_side {
    ir_value *value; /* as the product takes it, times outer_scale; perhaps of a narrower type */
    double outer_scale;
    index_map map; /* of all that, times scale */
    double scale;
    bool exchanged; /* `value` is [..., size, sequence]; the map is not */
    bool apart;     /* the leading dims of `value` are others than those of the map */
} attention_side;

/* One term of the scores, in the dims that the scores have there. Where `keep` is set the term is 0 where a
 * bool value is true (false, if `inverted`) and `hidden` elsewhere. */
typedef struct attention_term {
    ir_value *value;
    double factor;
    bool keep, inverted;
    double hidden;
    const ir_type *scores; /* whose shape the term is broadcast to */
} attention_term;

enum { ATTENTION_TERMS = 4 };

typedef struct attention_match {
    ir_node *last; /* the product by values */
    attention_weights weights;
    const ir_type *scores; /* of the softmax, [..., queries, keys] */
    score_moves front;     /* between the product of queries and keys and the softmax */
    ir_type result;        /* of the Attention: attention_match_finish makes that of `last` from it */
    grt_dim result_dims[GRT_MAX_RANK];
    ir_type turned; /* the type of scores that are crossed, as if they were not */
    grt_dim turned_dims[GRT_MAX_RANK];
    attention_side side[ATTENTION_SIDES];
    attention_term term[ATTENTION_TERMS];
    int32_t n_terms;
    double least;          /* the sum of the terms is at least that; -infinity: no bound */
    double scale, softcap; /* scale: without those of the sides; softcap 0: none */
    ir_value *head_scale;  /* a constant factor of each head, [..., heads, 1, 1]; NULL: none. The queries of
                              side[ATTENTION_SIDE_Q] are multiplied by it */
    ir_value *sinks;       /* scores of one more key, whose value is zero, behind the others; NULL: none */
    const char *why;       /* why not; NULL if this does not look like attention at all */
} attention_match;

/* False if `last` does not end an attention; why then says whether that was near. Makes a node that
 * multiplies the queries where there is a factor of each head. */
bool attention_find(ir_node *last, attention_match *match);
/* What `last` computes, from a value of the type `result`. NULL if its shape cannot be written. */
ir_value *attention_match_finish(const attention_match *match, ir_value *y);

#endif
