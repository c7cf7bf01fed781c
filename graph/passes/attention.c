/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that is written out becomes one Attention node, in whatever order and layout its queries, keys
 * and values were made: attention_match finds what is computed, attention_layout where its inputs lie. Inputs
 * whose heads lie side by side are given to the node as they are, so that no transposes are left; its result
 * has the model's layout by moves that the pass `moves` joins with those behind them. Attention nodes of the
 * model get the same. */
#include "graph/passes/attention_columns.h"
#include "graph/passes/attention_inputs.h"
#include "graph/passes/attention_mask.h"
#include "graph/passes/attention_native.h"
#include "graph/passes/attention_near.h"
#include "graph/passes/rewrite.h"

#include <stdio.h>

enum {
    Q = ATTENTION_SIDE_Q,
    K = ATTENTION_SIDE_K,
    V = ATTENTION_SIDE_V,
    SIDES = ATTENTION_SIDES,
    MASK = 3,
    INPUTS
};

/* ---- making the node ---- */

typedef struct making {
    ir_node *before;
    const attention_match *match;
    attention_side *sides;
    lead_list lists[LEAD_LISTS];
    attention_layout layout;
    ir_value *in[INPUTS];
    bool joined, packed;
    int64_t q_heads, kv_heads;
    double scale;
    const char *why;
} making;

static bool take_joined(making *m)
{
    head_rows rows = m->layout.rows[Q];
    if (!m->layout.in_rows)
        return false;
    if (!attention_layout_is_joined(&m->layout)) {
        rows.source = attention_sorted_source(m->before, &m->layout);
        if (!rows.source)
            return false;
    }
    m->in[Q] = attention_rows_of(m->before, &rows, m->sides[Q].value);
    m->in[K] = m->in[V] = NULL;
    m->joined = m->packed = m->in[Q] != NULL;
    return m->joined;
}

static bool take_packed(making *m)
{
    bool ok = m->layout.in_rows;
    for (int32_t i = 0; i < SIDES && ok; i++) {
        m->in[i] = attention_heads_of(m->before, &m->layout.rows[i], m->sides[i].value);
        ok = m->in[i] != NULL;
    }
    m->packed = ok;
    return ok;
}

static bool attention_take_apart(making *m)
{
    const attention_layout *l = &m->layout;
    const attention_side *s = m->sides;
    grt_dim k_heads, v_heads;
    m->in[Q] = attention_four_dims(m->before, &s[Q], l, l->heads);
    m->in[K] = attention_unrepeated(m->before, &s[K], &m->lists[K], l, &k_heads);
    m->in[V] = s[V].scale == 1 ? attention_unrepeated(m->before, &s[V], &m->lists[V], l, &v_heads) : NULL;
    const bool repeats = !m->in[K] || !m->in[V] || k_heads != v_heads;
    if (repeats) {
        m->in[K] = attention_four_dims(m->before, &s[K], l, l->heads);
        m->in[V] = attention_four_dims(m->before, &s[V], l, l->heads);
    }
    m->packed = false;
    m->scale *= s[Q].outer_scale * (repeats ? s[K].outer_scale : s[K].scale);
    return m->in[Q] && m->in[K] && m->in[V];
}

/* True if queries, keys and values have one type, or can be given that of the result. */
static bool types_go_together(const attention_side *sides, grt_dtype result)
{
    const grt_dtype dtype = sides[Q].map.source->type.dtype;
    bool same = true;
    for (int32_t i = 0; i < SIDES; i++)
        same &= sides[i].map.source->type.dtype == dtype;
    return same || result == GRT_DTYPE_FLOAT;
}

/* Queries, keys and values that were cast to float32 are read before that: they are cast here, in the form
 * that the node takes, or the result is, where float16 is asked for. */
static bool attention_widen_inputs(const pass_context *context, making *m)
{
    const grt_dtype result = m->match->last->out[0]->type.dtype;
    bool narrow = context->precision == GRT_PRECISION_FLOAT16;
    for (int32_t i = 0; i < SIDES; i++)
        narrow &= !m->in[i] || m->in[i]->type.dtype == GRT_DTYPE_FLOAT16;
    for (int32_t i = 0; i < SIDES && !narrow && result == GRT_DTYPE_FLOAT; i++)
        if (m->in[i] && !(m->in[i] = attention_cast(m->before, m->in[i], result)))
            return false;
    return true;
}

/* Sets inputs 0 to 2 and what goes with them. */
static bool take_inputs(making *m)
{
    if (!types_go_together(m->sides, m->match->last->out[0]->type.dtype)) {
        m->why = "queries, keys and values have different types";
        return false;
    }
    m->scale = m->match->scale;
    m->q_heads = m->layout.rows[Q].heads;
    m->kv_heads = m->layout.rows[K].heads;
    if ((!m->match->sinks && take_joined(m)) || take_packed(m)) {
        m->scale *= m->sides[Q].scale * m->sides[K].scale;
        return m->sides[V].scale == 1 || (m->why = "values are scaled") == NULL;
    }
    m->why = "batch and heads of queries, keys and values do not go together";
    return attention_take_apart(m);
}

static bool align(making *m)
{
    grt_dims *dims = m->before->graph->module->dims;
    index_map map;
    for (int32_t i = 0; i < SIDES; i++)
        lead_list_of(&m->sides[i].map, &m->lists[i]);
    lead_list_split_rows(&m->sides[Q].map, &m->lists[Q]);
    for (int32_t i = 0; i < m->match->n_terms; i++) {
        if (!attention_term_map(&m->match->term[i], &map)) {
            m->why = "a mask does not broadcast to the scores";
            return false;
        }
        lead_list_of(&map, &m->lists[SIDES + i]);
    }
    if (lead_lists_align(dims, m->lists, SIDES + m->match->n_terms))
        return true;
    m->why = "batch and heads of queries, keys, values and masks do not go together";
    return false;
}

/* ---- sinks ---- */

/* Zeros behind the last key, of keys or values. */
static ir_value *with_one_more(ir_node *before, ir_value *x)
{
    int64_t pads[2 * GRT_MAX_RANK] = {0};
    const int32_t rank = x->type.rank;
    pads[rank + (rank == 3 ? 1 : 2)] = 1;
    ir_value *constant = ir_constant_ints(before->graph, before->desc.name, pads, 2 * rank);
    ir_node *pad = constant ? attention_add_node(before, "Pad", 2, (ir_value *[]){x, constant}) : NULL;
    return pad ? pad->out[0] : NULL;
}

/* A sink is a key and a value of zeros behind the others, whose score the mask gives it. The mask is repeated
 * for what the sinks differ in: Where of itself and itself broadcasts whatever dims are. */
static bool take_sinks(making *m)
{
    ir_value *mask = m->in[MASK];
    const ir_type *scores = m->match->scores;
    m->why = "the sinks of a softmax do not go with its mask";
    if (!mask || m->layout.batch != scores->dims[0] || m->layout.heads != scores->dims[1])
        return false;
    ir_value *sinks = attention_cast(m->before, m->match->sinks, mask->type.dtype);
    ir_node *any = sinks ? attention_add_node(m->before, "IsNaN", 1, &sinks) : NULL;
    ir_node *wide =
        any ? attention_add_node(m->before, "Where", 3, (ir_value *[]){any->out[0], mask, mask}) : NULL;
    ir_node *all = wide ? ir_node_create(m->before->graph, m->before, "", "Concat", m->before->desc.name, 2,
                                         (ir_value *[]){wide->out[0], sinks}, 1)
                        : NULL;
    if (!all)
        return false;
    ir_attr_set_int(all, "axis", 3);
    m->in[K] = with_one_more(m->before, m->in[K]);
    m->in[V] = with_one_more(m->before, m->in[V]);
    m->in[MASK] = all->out[0];
    return op_infer_node(all) == GRT_OK && m->in[K] && m->in[V];
}

/* ---- where it does not pay ---- */

/* Attention on tensor cores, which targets with fast float16 have, takes rows of up to 256 numbers that are
 * multiples of 16 bytes. */
static bool has_tiles(const pass_context *context, const attention_side *side, int64_t size)
{
    enum { LONGEST = 256, VECTOR = 16 };
    const bool narrowed =
        context->precision == GRT_PRECISION_FLOAT16 || context->precision == GRT_PRECISION_BFLOAT16;
    const int64_t bytes = narrowed ? 2 : (int64_t)grt_dtype_size(side->value->type.dtype);
    return size <= LONGEST && size * bytes % VECTOR == 0;
}

/* Attention over channels: as many rows as a head has channels, each of as many numbers as there are tokens,
 * which do not lie side by side. Where it is not computed in tiles products and a softmax are faster, whose
 * scores are no larger than the queries. */
static bool is_slow_over_channels(const pass_context *context, const attention_match *match,
                                  const attention_layout *layout)
{
    if (layout->in_rows)
        return false;
    const ir_type *queries = &match->side[Q].value->type;
    const grt_dims *dims = match->last->graph->module->dims;
    const grt_dim length = queries->dims[queries->rank - (match->side[Q].exchanged ? 2 : 1)];
    int64_t keys, size;
    return context->target->traits->half_floats && !match->n_terms && !match->sinks && match->softcap == 0 &&
           grt_dim_is_const(dims, match->scores->dims[match->scores->rank - 1], &keys) &&
           grt_dim_is_const(dims, length, &size) && keys <= size &&
           !has_tiles(context, &match->side[Q], size);
}

/* Weights that are transposed are those of images as a rule, with one head of all channels: products whose
 * sums are long are faster than attention without tiles. */
static bool is_slow_without_tiles(const pass_context *context, const attention_match *match)
{
    const grt_dims *dims = match->last->graph->module->dims;
    if (!context->target->traits->half_floats || !(match->weights.flipped || match->weights.crossed))
        return false;
    for (int32_t i = 0; i < SIDES; i++) {
        const attention_side *side = &match->side[i];
        const ir_type *type = &side->value->type;
        int64_t size;
        if (!grt_dim_is_const(dims, type->dims[type->rank - (side->exchanged ? 2 : 1)], &size) ||
            !has_tiles(context, side, size))
            return true;
    }
    return false;
}

/* ---- the node ---- */

/* True if a mask is the same for some of batch and heads and not for others: as heads of one batch it would
 * be repeated. */
static bool has_mask_of_some(const making *m)
{
    const grt_dims *dims = m->before->graph->module->dims;
    for (int32_t i = SIDES; i < SIDES + m->match->n_terms; i++) {
        int32_t repeated = 0;
        for (int32_t k = 0; k < m->lists[i].n; k++)
            repeated += grt_dim_equals(dims, m->lists[i].parts[k].stride, 0);
        if (repeated && repeated != m->lists[i].n)
            return true;
    }
    return false;
}

/* Sets lists and layout. Queries, keys and values side by side that would have to be turned are made apart.
 */
static bool attention_find_layout(making *m)
{
    if (!align(m))
        return false;
    attention_layout_choose(m->sides, m->lists, &m->layout);
    if (m->match->sinks || !attention_layout_is_turned(m->before->graph->module->dims, &m->layout) ||
        has_mask_of_some(m) || !attention_columns_split_all(m->before, m->sides))
        return true;
    if (!align(m))
        return false;
    attention_layout_choose(m->sides, m->lists, &m->layout);
    return true;
}

static ir_node *make_node(pass_context *context, making *m)
{
    const attention_match *match = m->match;
    const grt_dtype dtype = match->last->out[0]->type.dtype;
    if (!attention_find_layout(m))
        return NULL;
    m->why = "the target is faster with products over rows of this length";
    if (is_slow_over_channels(context, match, &m->layout))
        return NULL;
    m->why = NULL;
    if (!match->head_scale && !match->sinks)
        attention_layout_spread(m->sides, m->lists, m->lists + SIDES, match->n_terms, &m->layout);
    if (!take_inputs(m) || !attention_widen_inputs(context, m))
        return NULL;
    if (match->n_terms) {
        m->in[MASK] = attention_mask_make(m->before, match, &m->layout, m->lists + SIDES, dtype, &m->why);
        if (!m->in[MASK])
            return NULL;
    }
    if (match->sinks && !take_sinks(m))
        return NULL;
    const int32_t n_in = m->in[MASK] ? INPUTS : m->joined ? 1 : SIDES;
    ir_node *made = ir_node_create(m->before->graph, m->before, m->joined ? "graphrt" : "", "Attention",
                                   m->before->desc.name, n_in, m->in, 1);
    if (!made)
        return NULL;
    ir_attr_set_float(made, "scale", (float)m->scale);
    if (match->softcap != 0)
        ir_attr_set_float(made, "softcap", (float)match->softcap);
    if (m->packed) {
        ir_attr_set_int(made, "q_num_heads", m->q_heads);
        ir_attr_set_int(made, "kv_num_heads", m->kv_heads);
    }
    m->why = "the target has no kernel for it";
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

/* The node's result in the shape that the model gives it. */
static ir_value *result_of(making *m, ir_node *made)
{
    const ir_type *wanted = &m->match->result, *last = &m->match->last->out[0]->type;
    grt_dims *dims = m->before->graph->module->dims;
    ir_value *y = made->out[0];
    if (m->packed) {
        const head_rows *q = &m->layout.rows[Q], *v = &m->layout.rows[V];
        y = rewrite_reshaped(
            m->before, y, 4,
            (grt_dim[]){q->batch, q->sequence, m->layout.heads, grt_dim_const(dims, v->size)});
        y = y ? attention_transposed(m->before, y, (int64_t[]){0, 2, 1, 3}, 4) : NULL;
    }
    y = y ? rewrite_reshaped(m->before, y, wanted->rank, wanted->dims) : NULL;
    y = y && wanted->dtype == GRT_DTYPE_FLOAT ? attention_cast(m->before, y, wanted->dtype) : y;
    y = y && rewrite_same_shape(&y->type, wanted) ? attention_match_finish(m->match, y) : NULL;
    return y && y->type.dtype == last->dtype && rewrite_same_shape(&y->type, last) ? y : NULL;
}

static bool attention_replace(pass_context *context, making *m, ir_node *last)
{
    ir_node *made = make_node(context, m);
    if (made)
        m->why = "its result cannot be given the model's shape";
    ir_value *y = made ? result_of(m, made) : NULL;
    if (!y || !rewrite_replace(last->out[0], y)) {
        m->why = y ? "its result is an output that cannot be moved" : m->why;
        return false; /* unused nodes are dead */
    }
    ir_node_remove(last);
    context->changed++;
    return true;
}

static void tell_near_miss(pass_context *context, const ir_node *node, const char *why)
{
    char text[256];
    snprintf(text, sizeof text, "this looks like attention, but %s", why);
    ir_warnings_tell(&context->near_misses, node->desc.name, node->desc.op, node->opset, text);
}

static void look_at_product(pass_context *context, ir_node *node)
{
    attention_match match = {0};
    if (node->out[0]->type.rank < 3 || !rewrite_is(node, "MatMul") || !attention_find(node, &match)) {
        const char *why = match.why ? match.why : attention_near_miss(node);
        if (why)
            tell_near_miss(context, node, why);
        return;
    }
    making m = {.before = node, .match = &match, .sides = match.side};
    attention_mask_settle(node, &match);
    attention_columns_split(node, match.side);
    if (is_slow_without_tiles(context, &match))
        tell_near_miss(context, node, "the target is faster with products over rows of this length");
    else if (!attention_replace(context, &m, node))
        tell_near_miss(context, node, m.why ? m.why : "it cannot be written as one node");
}

static void attention_visit(pass_context *context, ir_node *node)
{
    if (rewrite_is(node, "MatMul") || rewrite_is(node, "Einsum"))
        look_at_product(context, node);
    else
        attention_native_visit(context, node);
}

grt_status pass_attention(pass_context *context)
{
    return rewrite_each_node(context, attention_visit);
}
