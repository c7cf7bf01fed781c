/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of pass `layout` share: the values with channels last (twins) that stand for others, and one
 * function for each way in which an op goes with channels last. */
#ifndef GRT_GRAPH_PASSES_LAYOUT_H
#define GRT_GRAPH_PASSES_LAYOUT_H

#include "graph/passes/rewrite.h"

typedef struct twin {
    ir_value *last;
    ir_node
        *old; /* node of ours that was replaced and still defines the value; NULL if the value is as it was */
} twin;

typedef struct layout {
    pass_context *context;
    ir_graph *graph;
    twin *twins; /* value->mark is an index into this; [0] is for those that have none */
    int64_t n, capacity;
    grt_status status; /* the first failure: nothing more is changed after it */
} layout;

/* Which dim of the usual layout is dim i with channels last? */
int32_t layout_from_last(int32_t i, int32_t rank);
/* Where is dim i of the usual layout with channels last? */
int32_t layout_to_last(int32_t i, int32_t rank);
/* A tensor of batch, channels and as many spatial dims as the target has with channels last? */
bool layout_is_spatial(const layout *l, const ir_value *value);

bool layout_has_twin(const ir_value *value);
/* From now on `last` is the twin of `value`, which node `old` still defines (NULL: no node was replaced). */
void layout_remember(layout *l, ir_value *value, ir_value *last, ir_node *old);
/* The value with channels last, by a Transpose in front of `before` if need be. NULL: see l->status. */
ir_value *layout_twin_of(layout *l, ir_value *value, ir_node *before);
/* A Transpose of `x` to channels last, or back. NULL: see l->status. */
ir_node *layout_transpose_before(layout *l, ir_node *before, ir_value *x, const char *name, bool make_last);

/* The node's inputs, with the first one's twin in its place. False: that has no twin, or there are more than
 * `most`. */
bool layout_take_inputs(layout *l, ir_node *node, ir_value **in, int32_t most);
/* A node with the same attributes on other inputs, in front of the old one. NULL: out of memory. */
ir_node *layout_clone(const ir_node *node, const char *domain, int32_t n_in, ir_value *const *in);
/* Replaces `node` by `made` (which may be NULL), or removes `made` if its type differs. True: replaced. */
bool layout_adopt(layout *l, ir_node *node, ir_node *made);

/* Each makes what stands for the node with channels last; false: the node stays as it is. */
bool layout_switch_conv(layout *l, ir_node *node);
bool layout_switch_qconv(layout *l, ir_node *node);
bool layout_switch_pair(layout *l, ir_node *node);
bool layout_switch_form(layout *l, ir_node *node);
bool layout_switch_pointwise(layout *l, ir_node *node);
bool layout_switch_scaled(layout *l, ir_node *node);
bool layout_switch_first(layout *l, ir_node *node);
bool layout_switch_concat(layout *l, ir_node *node);
bool layout_switch_split(layout *l, ir_node *node);
bool layout_switch_slice(layout *l, ir_node *node);
bool layout_switch_pad(layout *l, ir_node *node);
bool layout_switch_roll(layout *l, ir_node *node);
bool layout_switch_resize(layout *l, ir_node *node);
bool layout_switch_reduction(layout *l, ir_node *node);
bool layout_switch_transpose(layout *l, ir_node *node);
bool layout_switch_reshape(layout *l, ir_node *node);
bool layout_switch_depth(layout *l, ir_node *node);

#endif
