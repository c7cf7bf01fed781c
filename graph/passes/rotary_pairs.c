/* SPDX-License-Identifier: Apache-2.0 */
/* The rotary embeddings of an attention's queries and keys, by the same angles, become one step: for a token,
 * starting a step takes longer than either. */
#include "graph/passes/small_steps.h"

enum { X, COS, SIN, IDS, SECOND_X };

static bool is_rotation(const ir_node *node)
{
    return rewrite_is(node, "RotaryEmbedding") && node->out[0];
}

static bool is_second(const ir_node *first, const ir_node *node)
{
    static const char *const attrs[] = {"interleaved", "rotary_embedding_dim"};
    bool same = is_rotation(node) && ir_in(node, X)->type.dtype == ir_in(first, X)->type.dtype &&
                small_steps_is_there(ir_in(node, X), first);
    for (int32_t i = COS; same && i <= IDS; i++)
        same = ir_in(node, i) == ir_in(first, i);
    for (size_t i = 0; same && i < sizeof attrs / sizeof *attrs; i++)
        same = grt_attr_int(&node->desc, attrs[i], 0) == grt_attr_int(&first->desc, attrs[i], 0);
    return same;
}

static ir_node *rotary_pairs_create(ir_node *const *members, int32_t n)
{
    ir_node *first = members[0];
    const ir_node *second = members[1];
    ir_value *in[SECOND_X + 1];
    for (int32_t i = X; i <= IDS; i++)
        in[i] = ir_in(first, i);
    in[SECOND_X] = ir_in(second, X);
    ir_node *made = ir_node_create(first->graph, first, "graphrt", "RotaryEmbeddings", first->desc.name,
                                   SECOND_X + 1, in, n);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "interleaved", grt_attr_int(&first->desc, "interleaved", 0));
    ir_attr_set_int(made, "rotary_embedding_dim", grt_attr_int(&first->desc, "rotary_embedding_dim", 0));
    ir_attr_set_int(made, "q_num_heads", grt_attr_int(&first->desc, "num_heads", 0));
    ir_attr_set_int(made, "kv_num_heads", grt_attr_int(&second->desc, "num_heads", 0));
    return made;
}

static const small_steps rotations = {
    .most = 2, .window = 16, .may_begin = is_rotation, .may_join = is_second, .create = rotary_pairs_create};

static grt_status rotary_pairs_visit_graph(pass_context *context, ir_graph *graph)
{
    small_steps_merge(context, graph, &rotations);
    return GRT_OK;
}

grt_status pass_rotary_pairs(pass_context *context)
{
    return context->target->traits->merges_small_steps ? rewrite_each_graph(context, rotary_pairs_visit_graph)
                                                       : GRT_OK;
}
