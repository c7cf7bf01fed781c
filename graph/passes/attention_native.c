/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_native.h.
 *
 *   Transpose(Attention(Transpose(q), Transpose(k), Transpose(v), mask))
 *     ->  Attention(q, k, v, mask, q_num_heads, kv_num_heads)
 *
 * Batch and heads stay what the node has, so that its mask and its attributes mean the same. */
#include "graph/passes/attention_native.h"

#include "graph/passes/attention_columns.h"
#include "graph/passes/attention_inputs.h"
#include "graph/passes/rewrite.h"

enum { Q = ATTENTION_SIDE_Q, K = ATTENTION_SIDE_K, V = ATTENTION_SIDE_V, SIDES = ATTENTION_SIDES };
enum { MASK = 3, PLAIN_INPUTS, PAST_KEY = 4, PAST_VALUE, NONPAD, INPUTS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, OUTPUTS };
enum { BATCH = 0, HEADS = 1, SEQUENCE = 2, RANK = 4 };

typedef struct native {
    ir_node *node;
    attention_side sides[SIDES];
    lead_list lists[SIDES];
    attention_layout layout;
    int64_t heads[SIDES]; /* as the node has them */
    ir_value *in[INPUTS];
    int64_t kv_heads; /* as the new node has them */
    int32_t n_out;
    bool joined;
    bool cached; /* there is a past, a present or lengths of keys: they have the heads of the node */
} native;

static bool is_read(const ir_value *value)
{
    return value && (value->n_uses || rewrite_is_output(value));
}

/* [batch, heads, sequence, size] with that many heads, and the scores are not read. */
static bool is_native(native *n)
{
    const ir_node *node = n->node;
    const grt_dims *dims = node->graph->module->dims;
    if (node->n_in > INPUTS)
        return false;
    for (int32_t i = PLAIN_INPUTS; i < node->n_in; i++)
        n->cached |= ir_in(node, i) != NULL;
    n->n_out = 1;
    for (int32_t i = PRESENT_KEY; i < node->n_out; i++)
        if (is_read(node->out[i]))
            n->n_out = i + 1;
    n->cached |= n->n_out > 1;
    if (n->n_out > OUTPUTS)
        return false;
    for (int32_t i = 0; i < SIDES; i++) {
        const ir_value *x = ir_in(node, i);
        if (!x || x->type.rank != RANK || !grt_dim_is_const(dims, x->type.dims[HEADS], &n->heads[i]) ||
            n->heads[i] < 1)
            return false;
    }
    return node->out[0] && node->out[0]->type.rank == RANK && n->heads[K] == n->heads[V] &&
           n->heads[Q] % n->heads[K] == 0;
}

/* Heads of keys and values count once for each head of their group of queries' heads. */
static bool repeat_for_group(grt_dims *dims, index_map *map, int64_t group)
{
    int32_t at = 0;
    if (group == 1)
        return true;
    if (map->n == INDEX_MAP_PARTS)
        return false;
    while (at < map->n && map->parts[at].axis <= HEADS)
        at++;
    for (int32_t i = map->n; i > at; i--)
        map->parts[i] = map->parts[i - 1];
    map->parts[at] = (index_part){grt_dim_const(dims, group), grt_dim_const(dims, 0), HEADS};
    map->n++;
    return true;
}

static bool find_sides(native *n)
{
    grt_dims *dims = n->node->graph->module->dims;
    for (int32_t i = 0; i < SIDES; i++) {
        attention_side *side = &n->sides[i];
        *side = (attention_side){.value = ir_in(n->node, i), .scale = 1, .outer_scale = 1};
        if (!index_map_of(side->value, &side->map, NULL) || side->map.rank != RANK ||
            side->map.source->type.dtype != side->value->type.dtype ||
            !repeat_for_group(dims, &side->map, n->heads[Q] / n->heads[i]))
            return false;
    }
    attention_columns_split(n->node, n->sides);
    for (int32_t i = 0; i < SIDES; i++)
        lead_list_of(&n->sides[i].map, &n->lists[i]);
    return lead_lists_align(dims, n->lists, SIDES);
}

static bool in_rows(native *n)
{
    const ir_type *q = &ir_in(n->node, Q)->type;
    const grt_dims *dims = n->node->graph->module->dims;
    return attention_layout_keep(n->sides, n->lists, &n->layout) && n->layout.batch == q->dims[BATCH] &&
           grt_dim_equals(dims, n->layout.heads, n->heads[Q]) && n->layout.rows[Q].heads == n->heads[Q] &&
           n->layout.rows[Q].sequence == q->dims[SEQUENCE] && n->heads[K] % n->layout.rows[K].heads == 0 &&
           !(n->cached && n->heads[K] != n->layout.rows[K].heads);
}

static bool take_rows(native *n)
{
    head_rows *rows = n->layout.rows;
    attention_projection projection;
    n->kv_heads = rows[K].heads;
    if (n->cached) {
        n->joined = false;
    } else if (attention_layout_is_sortable(&n->layout, &projection)) {
        rows[Q].source = attention_sorted_source(n->node, &n->layout);
        n->joined = rows[Q].source != NULL;
    } else {
        n->joined = attention_layout_is_joined(&n->layout);
    }
    if (n->joined) {
        n->in[Q] = attention_rows_of(n->node, &rows[Q], n->sides[Q].value);
        return n->in[Q] != NULL;
    }
    for (int32_t i = 0; i < SIDES; i++) {
        n->in[i] = rows[i].source ? attention_heads_of(n->node, &rows[i], n->sides[i].value) : NULL;
        if (!n->in[i])
            return false;
    }
    return true;
}

/* Keys and values of the node's form before their heads were repeated. */
static bool take_unrepeated(native *n)
{
    const ir_node *node = n->node;
    const grt_dims *dims = node->graph->module->dims;
    attention_layout layout = {.batch = ir_in(node, Q)->type.dims[BATCH]};
    grt_dim heads[SIDES];
    while (layout.n_batch < n->lists[Q].n && n->lists[Q].parts[layout.n_batch].axis == BATCH)
        layout.n_batch++;
    n->in[Q] = ir_in(node, Q);
    for (int32_t i = K; i <= V; i++) {
        n->in[i] = attention_unrepeated(n->node, &n->sides[i], &n->lists[i], &layout, &heads[i]);
        if (!n->in[i])
            return false;
    }
    return grt_dim_is_const(dims, heads[K], &n->kv_heads) && heads[K] == heads[V] &&
           n->kv_heads < n->heads[K] && n->heads[K] % n->kv_heads == 0;
}

/* The node with the inputs that were taken. */
static ir_node *made_of(const pass_context *context, native *n, bool rows)
{
    ir_node *node = n->node;
    int32_t n_in = n->joined ? 1 : SIDES;
    for (int32_t i = MASK; i < node->n_in; i++) {
        n->in[i] = ir_in(node, i);
        n_in = n->in[i] ? i + 1 : n_in;
    }
    ir_node *made = ir_node_create(node->graph, node, n->joined ? "graphrt" : "", "Attention",
                                   node->desc.name, n_in, n->in, n->n_out);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (rows) {
        ir_attr_set_int(made, "q_num_heads", n->heads[Q]);
        ir_attr_set_int(made, "kv_num_heads", n->kv_heads);
    }
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

/* The result of rows as the model has it. */
static ir_value *heads_of_result(const native *n, ir_value *y)
{
    const ir_type *wanted = &n->node->out[0]->type;
    const grt_dim apart[] = {wanted->dims[0], wanted->dims[2], wanted->dims[1], wanted->dims[3]};
    y = rewrite_reshaped(n->node, y, RANK, apart);
    return y ? attention_transposed(n->node, y, (int64_t[]){0, 2, 1, 3}, RANK) : NULL;
}

/* The new node's results in place of the old one's. */
static bool replace_results(const native *n, const ir_node *made, ir_value *y)
{
    ir_node *node = n->node;
    for (int32_t i = Y; i < n->n_out; i++) {
        const ir_value *to = i == Y ? y : made->out[i];
        if (node->out[i] && (!to || to->type.dtype != node->out[i]->type.dtype ||
                             !rewrite_same_shape(&to->type, &node->out[i]->type)))
            return false;
    }
    if (!rewrite_replace(node->out[Y], y))
        return false;
    for (int32_t i = PRESENT_KEY; i < n->n_out; i++)
        if (node->out[i])
            rewrite_replace(node->out[i], made->out[i]); /* a result that is new can take any place */
    return true;
}

void attention_native_visit(pass_context *context, ir_node *node)
{
    native n = {.node = node};
    if (!rewrite_is(node, "Attention") || !is_native(&n) || !find_sides(&n))
        return;
    const bool rows = in_rows(&n);
    if (rows ? !take_rows(&n) : n.cached || !take_unrepeated(&n))
        return; /* unused nodes are dead */
    ir_node *made = made_of(context, &n, rows);
    ir_value *y = made ? made->out[0] : NULL;
    y = y && rows ? heads_of_result(&n, y) : y;
    if (!y || !replace_results(&n, made, y))
        return;
    ir_node_remove(node);
    context->changed++;
}
