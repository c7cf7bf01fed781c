/* SPDX-License-Identifier: Apache-2.0 */
/* The rotary embeddings of an attention's queries and keys, by the same angles, become one step: for a token,
 * starting a step takes longer than either. */
#include "graph/passes/rewrite.h"

enum { X, COS, SIN, IDS, SECOND_X };
enum { WINDOW = 16 /* nodes between the two: a result lives until its reader has come */ };

static bool is_rotation(const ir_node *node)
{
    return rewrite_is(node, "RotaryEmbedding") && node->out[0];
}

/* True if the value is there when `first` begins. mark: the place of a node in its graph. */
static bool precedes(const ir_value *value, const ir_node *first)
{
    return !value->producer || value->graph != first->graph || value->producer->mark < first->mark;
}

static bool is_second(const ir_node *first, const ir_node *node)
{
    static const char *const attrs[] = {"interleaved", "rotary_embedding_dim"};
    bool same = is_rotation(node) && ir_in(node, X)->type.dtype == ir_in(first, X)->type.dtype &&
                precedes(ir_in(node, X), first);
    for (int32_t i = COS; same && i <= IDS; i++)
        same = ir_in(node, i) == ir_in(first, i);
    for (size_t i = 0; same && i < sizeof attrs / sizeof *attrs; i++)
        same = grt_attr_int(&node->desc, attrs[i], 0) == grt_attr_int(&first->desc, attrs[i], 0);
    return same;
}

static ir_node *find_second(const ir_node *first)
{
    ir_node *node = first->next;
    for (int32_t seen = 0; node && seen < WINDOW; node = node->next, seen++)
        if (is_second(first, node))
            return node;
    return NULL;
}

/* In front of the first; NULL if the target has no such step. */
static ir_node *make_pair(const pass_context *context, ir_node *first, const ir_node *second)
{
    ir_value *in[SECOND_X + 1];
    for (int32_t i = X; i <= IDS; i++)
        in[i] = ir_in(first, i);
    in[SECOND_X] = ir_in(second, X);
    ir_node *made = ir_node_create(first->graph, first, "graphrt", "RotaryEmbeddings", first->desc.name,
                                   SECOND_X + 1, in, 2);
    if (!made)
        return NULL;
    made->mark = first->mark;
    ir_node_absorb_name(made, second);
    ir_attr_set_int(made, "interleaved", grt_attr_int(&first->desc, "interleaved", 0));
    ir_attr_set_int(made, "rotary_embedding_dim", grt_attr_int(&first->desc, "rotary_embedding_dim", 0));
    ir_attr_set_int(made, "q_num_heads", grt_attr_int(&first->desc, "num_heads", 0));
    ir_attr_set_int(made, "kv_num_heads", grt_attr_int(&second->desc, "num_heads", 0));
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

static grt_status rotary_pairs_visit_graph(pass_context *context, ir_graph *graph)
{
    int64_t place = 0;
    IR_FOR_EACH_NODE (node, graph)
        node->mark = place++;
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        ir_node *second = is_rotation(node) ? find_second(node) : NULL;
        ir_node *made = second ? make_pair(context, node, second) : NULL;
        if (!made)
            continue;
        next = next == second ? second->next : next;
        if (rewrite_replace_node(node, made->out[0]))
            context->changed++;
        if (rewrite_replace_node(second, made->out[1]))
            context->changed++;
    }
    return GRT_OK;
}

grt_status pass_rotary_pairs(pass_context *context)
{
    return context->target->traits->merges_small_steps ? rewrite_each_graph(context, rotary_pairs_visit_graph)
                                                       : GRT_OK;
}
