/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `attention_parts`: an attention whose queries, keys and values are cut out of one value reads that
 * value, so that nothing is copied:
 *
 *   q, k, v = Split(x);  Attention(q, k, v, mask, past)
 *     ->  graphrt::Attention(x, mask, past)
 *   q, k, v = Split(x);  Attention(RotaryEmbedding(q), RotaryEmbedding(k), v, mask, past)
 *     ->  graphrt::Attention(graphrt::RotaryEmbedding(x), mask, past)
 *
 * After merge_projections, which makes the one product. */
#include "graph/passes/rewrite.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD, PARTS = 3 };
enum { X, COS, SIN, IDS };

typedef struct attention_parts {
    ir_node *node, *split, *rotations[2]; /* of queries and keys; NULL: none */
    int64_t heads[PARTS];
} attention_parts;

/* Read once, and by no one outside. */
static bool attention_parts_is_passed_on(const ir_value *value)
{
    return value && value->n_uses == 1 && !rewrite_is_output(value);
}

/* The node is Attention of packed heads, and gives nothing but results and presents. */
static bool attention_parts_is_packed(const ir_node *node)
{
    if (!rewrite_is(node, "Attention") || !node->out[0] || ir_in(node, NONPAD))
        return false;
    for (int32_t i = Q; i <= V; i++)
        if (!ir_in(node, i) || ir_in(node, i)->type.rank != 3)
            return false;
    return node->n_out <= 3 || !node->out[3];
}

static bool attention_parts_same_rotation(const ir_node *a, const ir_node *b)
{
    static const char *const attrs[] = {"interleaved", "rotary_embedding_dim"};
    bool same = true;
    for (int32_t i = COS; same && i <= IDS; i++)
        same = ir_in(a, i) == ir_in(b, i);
    for (size_t i = 0; same && i < sizeof attrs / sizeof *attrs; i++)
        same = grt_attr_int(&a->desc, attrs[i], 0) == grt_attr_int(&b->desc, attrs[i], 0);
    return same;
}

/* Part i in front of its rotation, if it has one; NULL: something else. */
static const ir_value *attention_parts_part(attention_parts *p, int32_t i)
{
    const ir_value *part = ir_in(p->node, i);
    if (!attention_parts_is_passed_on(part))
        return NULL;
    ir_node *rotation = i < V ? rewrite_producer(part, "RotaryEmbedding") : NULL;
    if (!rotation || rotation->graph != p->node->graph)
        return part;
    p->rotations[i] = rotation;
    part = ir_in(rotation, X);
    return grt_attr_int(&rotation->desc, "num_heads", 0) == p->heads[i] && attention_parts_is_passed_on(part)
               ? part
               : NULL;
}

/* True if output i of the split is `heads` heads of that size. */
static bool attention_parts_has_heads(const attention_parts *p, int32_t i, int64_t size)
{
    const ir_type *type = &p->split->out[i]->type;
    int64_t width;
    return grt_dim_is_const(p->node->graph->module->dims, type->dims[2], &width) &&
           width / p->heads[i] == size && width % p->heads[i] == 0;
}

static bool attention_parts_find(ir_node *node, attention_parts *p)
{
    const int64_t q_heads = grt_attr_int(&node->desc, "q_num_heads", 0),
                  kv_heads = grt_attr_int(&node->desc, "kv_num_heads", 0);
    *p = (attention_parts){.node = node, .heads = {q_heads, kv_heads, kv_heads}};
    if (!attention_parts_is_packed(node) || q_heads <= 0 || kv_heads <= 0)
        return false;
    for (int32_t i = Q; i <= V; i++) {
        const ir_value *part = attention_parts_part(p, i);
        ir_node *split = part ? rewrite_producer(part, "Split") : NULL;
        if (!split || split->n_out != PARTS || split->graph != node->graph || (i && split != p->split) ||
            split->out[i] != part)
            return false;
        p->split = split;
    }
    const ir_type *x = &ir_in(p->split, 0)->type;
    const int64_t axis = grt_attr_int(&p->split->desc, "axis", 0);
    int64_t width;
    if (x->rank != 3 || (axis != -1 && axis != 2) ||
        !grt_dim_is_const(node->graph->module->dims, p->split->out[Q]->type.dims[2], &width))
        return false;
    for (int32_t i = Q; i <= V; i++)
        if (!attention_parts_has_heads(p, i, width / q_heads))
            return false;
    return !p->rotations[Q] == !p->rotations[K] &&
           (!p->rotations[Q] || attention_parts_same_rotation(p->rotations[Q], p->rotations[K]));
}

/* What the attention reads: the split's input, rotated where queries and keys are. */
static ir_node *attention_parts_rotate(const attention_parts *p)
{
    const ir_node *first = p->rotations[Q];
    ir_value *in[IDS + 1] = {ir_in(p->split, 0)};
    for (int32_t i = COS; i <= IDS; i++)
        in[i] = ir_in(first, i);
    ir_node *made = ir_node_create(p->node->graph, p->node, "graphrt", "RotaryEmbedding", first->desc.name,
                                   in[IDS] ? IDS + 1 : IDS, in, 1);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "interleaved", grt_attr_int(&first->desc, "interleaved", 0));
    ir_attr_set_int(made, "rotary_embedding_dim", grt_attr_int(&first->desc, "rotary_embedding_dim", 0));
    ir_attr_set_int(made, "num_heads", p->heads[Q] + p->heads[K] + p->heads[V]);
    ir_attr_set_int(made, "rotated_heads", p->heads[Q] + p->heads[K]);
    ir_node_absorb_name(made, p->rotations[K]);
    return made;
}

static ir_node *attention_parts_attend(const attention_parts *p, ir_value *x)
{
    const ir_node *node = p->node;
    ir_value *in[PAST_VALUE + 1] = {x};
    for (int32_t i = MASK; i <= PAST_VALUE; i++)
        in[i] = ir_in(node, i);
    int32_t n = PAST_VALUE + 1;
    while (!in[n - 1])
        n--;
    int32_t n_out = node->n_out < PARTS ? node->n_out : PARTS;
    while (n_out > 1 && !node->out[n_out - 1])
        n_out--;
    ir_node *made =
        ir_node_create(node->graph, p->node, "graphrt", "Attention", node->desc.name, n, in, n_out);
    if (made)
        ir_attrs_copy(made, node);
    return made;
}

static bool attention_parts_offer(const pass_context *context, ir_node *made)
{
    return op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL);
}

static void attention_parts_rewrite(pass_context *context, const attention_parts *p)
{
    ir_node *rotation = p->rotations[Q] ? attention_parts_rotate(p) : NULL;
    if (p->rotations[Q] && !rotation)
        return;
    bool fits = !rotation || attention_parts_offer(context, rotation);
    ir_node *made = fits ? attention_parts_attend(p, rotation ? rotation->out[0] : ir_in(p->split, 0)) : NULL;
    fits = made && attention_parts_offer(context, made);
    for (int32_t i = 0; fits && i < made->n_out; i++)
        fits = !p->node->out[i] || rewrite_same_shape(&made->out[i]->type, &p->node->out[i]->type);
    for (int32_t i = 0; fits && i < made->n_out; i++)
        fits = !p->node->out[i] || rewrite_take_over(p->node->out[i], made->out[i]);
    if (fits) {
        context->changed++;
        return;
    }
    if (made)
        ir_node_remove(made);
    if (rotation)
        ir_node_remove(rotation);
}

static grt_status attention_parts_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        attention_parts parts;
        next = node->next;
        if (attention_parts_find(node, &parts))
            attention_parts_rewrite(context, &parts);
    }
    return GRT_OK;
}

grt_status pass_attention_parts(pass_context *context)
{
    return context->target->traits->merges_small_steps ? rewrite_each_graph(context, attention_parts_visit)
                                                       : GRT_OK;
}
