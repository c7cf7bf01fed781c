/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that batches are made of: they stand aside until somebody uses them, and can be taken back. All
 * return NULL if it cannot be done; those that make a value of others take NULL for one that could not be
 * made. */
#ifndef GRT_GRAPH_PASSES_BATCH_MAKE_H
#define GRT_GRAPH_PASSES_BATCH_MAKE_H

#include "graph/passes/rewrite.h"

/* A place where nodes are made. */
typedef struct batch {
    const pass_context *context;
    grt_arena *scratch;
    int64_t n;       /* values in a batch */
    ir_node *before; /* new nodes are made in front of this one */
    const char *name;
    struct batch_made *made; /* latest first */
    int64_t n_made;
} batch;

ir_node *batch_make(batch *b, const char *op, int32_t n_in, ir_value *const *in);
/* The node's result, once it has its attributes. */
ir_value *batch_finish(const batch *b, ir_node *node);
ir_value *batch_binary(batch *b, const char *op, ir_value *x, ir_value *y);
ir_value *batch_transposed(batch *b, ir_value *x, const int64_t *perm);
ir_value *batch_reshaped(batch *b, ir_value *x, int32_t rank, const grt_dim *dims);
/* Axis `from` becomes axis `to`; those between move up or down. */
ir_value *batch_moved_axis(batch *b, ir_value *x, int32_t from, int32_t to);
grt_dim *batch_new_dims(const batch *b, int32_t n);
/* Remove all nodes that were made. */
void batch_take_back(batch *b);

#endif
