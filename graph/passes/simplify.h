/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of pass `simplify`, and what they share. */
#ifndef GRT_GRAPH_PASSES_SIMPLIFY_H
#define GRT_GRAPH_PASSES_SIMPLIFY_H

#include "graph/passes/simplify_worklist.h"

/* True if output 0 provably has the shape of tensor input i. */
bool simplify_keeps_shape(const ir_node *node, int32_t i);
/* True if input i is a constant whose integers all are `value`. */
bool simplify_all_ints_are(const ir_node *node, int32_t i, int64_t value);
/* Makes the node a Reshape of `x`, if it can be (rewrite_become_reshape). */
bool simplify_become_reshape(simplify_work *w, ir_node *node, ir_value *x);
/* The node's perm, or its default. False if the rank is unknown or another one. */
bool simplify_permutation(const ir_node *node, int32_t rank, int64_t *out_perm);
void simplify_become_transpose(ir_node *node, ir_value *x, const int64_t *perm, int32_t rank);
/* Only dims of 1 move: the elements stay where they are. */
bool simplify_keeps_order(const ir_type *in, const int64_t *perm, const grt_dims *dims);

/* Rules: true if the node was changed or removed. */
bool simplify_identity(simplify_work *w, ir_node *node);
bool simplify_only_output(simplify_work *w, ir_node *node);
bool simplify_same_shape(simplify_work *w, ir_node *node);
bool simplify_dropout(simplify_work *w, ir_node *node);
bool simplify_cast(simplify_work *w, ir_node *node);
bool simplify_test(simplify_work *w, ir_node *node);
bool simplify_reduced_truths(simplify_work *w, ir_node *node); /* Cast */
bool simplify_counted_truths(simplify_work *w, ir_node *node); /* Greater */
bool simplify_choice(simplify_work *w, ir_node *node);         /* f(Where) */
bool simplify_pad(simplify_work *w, ir_node *node);
bool simplify_conv(simplify_work *w, ir_node *node); /* Conv(Pad(x)) */
bool simplify_tile(simplify_work *w, ir_node *node);
bool simplify_concat(simplify_work *w, ir_node *node);
bool simplify_joined_transposes(simplify_work *w, ir_node *node); /* Concat of transposes */
bool simplify_clip(simplify_work *w, ir_node *node);
/* x + 0, x * 1 and the like, where input `constant` is `value` everywhere. */
bool simplify_neutral(simplify_work *w, ir_node *node, int32_t constant, double value);
bool simplify_involution(simplify_work *w, ir_node *node); /* f(f(x)) */
bool simplify_sum(simplify_work *w, ir_node *node);
bool simplify_div(simplify_work *w, ir_node *node);
bool simplify_pow(simplify_work *w, ir_node *node);
bool simplify_expand(simplify_work *w, ir_node *node);
bool simplify_reshape(simplify_work *w, ir_node *node);
bool simplify_transpose(simplify_work *w, ir_node *node);
bool simplify_slice(simplify_work *w, ir_node *node);
bool simplify_gather(simplify_work *w, ir_node *node);
bool simplify_gather_nd(simplify_work *w, ir_node *node);

#endif
