/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share: replacing values, asking the target, looking around a node. */
#ifndef GRT_GRAPH_PASSES_REWRITE_H
#define GRT_GRAPH_PASSES_REWRITE_H

#include "graph/ir/ir.h"
#include "graph/passes/pass.h"

/* Let `to` take `from`'s place everywhere. Outputs of the model keep their names: false, with nothing
 * changed, if that cannot be because `to` is an input, a constant of the model or another output. */
bool rewrite_replace(ir_value *from, ir_value *to);
/* The same, and remove from's producer if that leaves it without users. */
bool rewrite_replace_node(ir_node *node, ir_value *to);
/* The same for a result that a pass made, or changed, to be `from`: it takes from's name too, so that in the
 * main graph a name of the file's always means that tensor of the model. */
bool rewrite_take_over(ir_value *from, ir_value *to);
bool rewrite_take_over_node(ir_node *node, ir_value *to);
/* `to` is from's tensor of the model from here on, perhaps in another layout: they exchange their names.
 * False if it may not: it has no producer, is an output, or both are not in the main graph. */
bool rewrite_take_name(ir_value *from, ir_value *to);
/* From `value` on, each read by one node, values are no longer the model's tensors, up to but without `last`.
 */
void rewrite_forget_names(ir_value *value, const ir_value *last);
/* True if `name` is an entry of the comma-separated `list`. NULL: there is none. */
bool rewrite_is_listed(const char *list, const char *name);
/* True if the value is an output of the main graph. */
bool rewrite_is_output(const ir_value *value);
/* The value as the target sees it: dims -1 where symbolic. */
grt_tensor rewrite_tensor(const grt_dims *dims, const ir_type *type);
/* Executed by the runtime itself on every target: views and control flow. */
bool rewrite_needs_no_kernel(const ir_node *node);
/* True if the target has a kernel for this node, as it stands. `why` may be NULL. */
bool rewrite_supported(const pass_context *context, const ir_node *node, grt_text *why);
/* The same, or a kernel of the host's. */
bool rewrite_runs(const pass_context *context, const ir_node *node, grt_text *why);
/* The output of a node that was just made. NULL, and the node is gone, if that is NULL, its output has no
 * type or the target has no kernel for it. */
ir_value *rewrite_offered(const pass_context *context, ir_node *made);
/* Known and provably equal. */
bool rewrite_same_shape(const ir_type *a, const ir_type *b);
/* A node of ai.onnx (domain "") or of ours ("graphrt"). */
static inline bool rewrite_is(const ir_node *node, const char *op)
{
    return node && grt_op_is(&node->desc, "", op);
}
/* A node of ai.onnx whose row has the flag. */
static inline bool rewrite_has(const ir_node *node, uint32_t flag)
{
    return node && node->row && !*node->desc.domain && node->row->flags & flag;
}
/* True if the node's indices are start, start + 1, ...; those below zero count from the end of a dim. Reading
 * takes of the compile's budget, as many nodes may share a long list: false where that is spent. */
bool rewrite_are_neighbours(const ir_node *node, const int64_t *indices, int64_t n, int64_t start,
                            int64_t dim);
/* A view that gives its elements other dims. */
bool rewrite_is_reshape(const ir_node *node);
/* The value's producer if it is `op` of ai.onnx and lies in `graph`. */
ir_node *rewrite_producer(const ir_value *value, const char *op);
/* True if one use reads the elements of the value; others may read its dims, as for what is repeated for a
 * batch of unknown size. */
bool rewrite_is_read_once(const ir_value *value);
/* The only use of the value is an input of a node in the same graph: that node. Else NULL, as for no value: a
 * node's first output may be left out. */
ir_node *rewrite_only_user(const ir_value *value);
/* Make the node a Reshape of `x` to the dims that its output has. False, with nothing changed, if they cannot
 * be written as Reshape's input. */
bool rewrite_become_reshape(ir_node *node, ir_value *x);
/* `x` under other dims: itself if it has them, else a new Reshape in front of `before`. NULL if they cannot
 * be written as Reshape's input, or are not provably those that the Reshape makes. */
ir_value *rewrite_reshaped(ir_node *before, ir_value *x, int32_t rank, const grt_dim *dims);
/* Constants of one rank and dtype, equal in all dims but `axis`, one behind the other along it. NULL if the
 * budget does not allow it, or out of memory. */
ir_value *rewrite_join(ir_graph *graph, const grt_tensor *const *parts, int32_t n, int32_t axis);
/* The tensor in `value`, kept by the module from now on. NULL when out of memory. */
grt_tensor *rewrite_adopt(ir_module *module, grt_value *value);
/* Empties what a pass looks at in between; the pass fails at its end if that could not be kept. */
void rewrite_clear_scratch(pass_context *context, grt_arena *scratch);
/* node->mark is the place of a node in its graph from here on, until nodes are made or moved. */
void rewrite_number_nodes(ir_graph *graph);
/* Visit every graph of the module, bodies after the graph that holds them. */
grt_status rewrite_each_graph(pass_context *context,
                              grt_status (*visit)(pass_context *context, ir_graph *graph));
/* Look at every node of these graphs, in their order; `look` may remove the node and those before it. */
grt_status rewrite_each_node(pass_context *context, void (*look)(pass_context *context, ir_node *node));

#endif
