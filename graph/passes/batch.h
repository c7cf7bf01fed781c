/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: N values of one type as one value with a dim of N in front, and N nodes of one form as one node on
 * such values. */
#ifndef GRT_GRAPH_PASSES_BATCH_H
#define GRT_GRAPH_PASSES_BATCH_H

#include "graph/passes/batch_make.h"

/* What inputs of N nodes of one form may be. */
typedef enum batch_input {
    BATCH_ANY,     /* one value for all of them, or a batch */
    BATCH_SAME,    /* one value for all of them */
    BATCH_IGNORED, /* the result's type says the same */
} batch_input;

/* True if the node can be one of a batch. Then it has one result, whose rank is known. */
bool batch_knows(const ir_node *node);
batch_input batch_input_of(const ir_node *node, int32_t index);

/* An operand: a batch, or one value for all. */
typedef struct batch_operand {
    ir_value *value; /* NULL: omitted */
    bool is_batch;
    int32_t rank; /* of each member */
} batch_operand;

/* All of these return NULL if it cannot be done. */

/* What `first`, of n nodes of its form, and the others give; in: for each input. */
ir_value *batch_node(batch *b, const ir_node *first, const batch_operand *in);
/* Constants of one type, one behind the other. */
ir_value *batch_constants(batch *b, ir_graph *graph, ir_value *const *members);
/* Ranges of `whole` along `axis`, which begin at `starts`, each with `width` elements; or elements without
 * that dim, for width 0. */
ir_value *batch_ranges(batch *b, ir_value *whole, int32_t axis, int64_t width, const int64_t *starts);
/* Of each member the elements from `start` on along its `axis`; width as above. */
ir_value *batch_part(batch *b, ir_value *value, int32_t axis, int64_t start, int64_t width);
/* The members of `value`, joined along their `axis`. */
ir_value *batch_join(batch *b, ir_value *value, int32_t axis);
/* What `op`, a reduction, makes of the members, element by element; and `start`, which may be NULL, is added.
 */
ir_value *batch_reduce(batch *b, ir_value *value, const char *op, ir_value *start);
/* Member i of `value` by itself. */
ir_value *batch_member(batch *b, ir_value *value, int64_t i);

#endif
