/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that is written out becomes one Attention node, in whatever order and layout its queries, keys
 * and values were made: attention_match finds what is computed, attention_layout where its inputs lie. Inputs
 * whose heads lie side by side are given to the node as they are, so that no transposes are left; its result
 * has the model's layout by moves that the pass `moves` joins with those behind them. Attention nodes of the
 * model get the same. */
#include "graph/passes/attention_mask.h"
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

static ir_node *attention_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
    return node && op_infer_node(node) == GRT_OK ? node : NULL;
}

static ir_value *attention_transposed(ir_node *before, ir_value *value, const int64_t *perm, int32_t rank)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &value, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* ---- inputs whose heads lie in rows ---- */

/* A value between `value` and the source of its map that is all of the source under these dims. Where dims
 * are symbols, a Reshape to them can not always be written. */
static ir_value *passed_on_the_way(ir_value *value, const ir_value *source, const ir_type *wanted)
{
    enum { MOST_MOVES = 24 };
    for (int32_t i = 0; i < MOST_MOVES && value != source && value->producer; i++) {
        index_map map;
        if (rewrite_same_shape(&value->type, wanted) && index_map_of(value, &map, NULL) &&
            map.source == source && index_map_is_whole(value->graph->module->dims, &map))
            return value;
        value = ir_in(value->producer, 0);
    }
    return NULL;
}

/* The source as [batch, sequence, width]. value: what was made of it. */
static ir_value *rows_of(ir_node *before, const head_rows *rows, ir_value *value)
{
    grt_dims *dims = before->graph->module->dims;
    const grt_dim width = grt_dim_const(dims, rows->width);
    const grt_dim straight[] = {rows->batch, rows->sequence, width},
                  crossed[] = {rows->sequence, rows->batch, width};
    const grt_dim *wanted = rows->sequence_first ? crossed : straight;
    ir_value *x = rewrite_reshaped(before, rows->source, 3, wanted);
    if (!x)
        x = passed_on_the_way(value, rows->source, &(ir_type){.rank = 3, .dims = wanted});
    return x && rows->sequence_first ? attention_transposed(before, x, (int64_t[]){1, 0, 2}, 3) : x;
}

static ir_value *ints(ir_node *before, int64_t value)
{
    return ir_constant_ints(before->graph, before->desc.name, &value, 1);
}

static ir_value *sliced(ir_node *before, ir_value *x, int64_t from, int64_t n)
{
    ir_node *node = attention_add_node(
        before, "Slice", 4,
        (ir_value *[]){x, ints(before, from), ints(before, from + n), ints(before, x->type.rank - 1)});
    return node ? node->out[0] : NULL;
}

/* The heads alone, [batch, sequence, heads * size]. */
static ir_value *attention_heads_of(ir_node *before, const head_rows *rows, ir_value *value)
{
    grt_dims *dims = before->graph->module->dims;
    ir_value *x = rows_of(before, rows, value);
    if (!x || (rows->offset == 0 && rows->step == rows->size && rows->width == rows->heads * rows->size))
        return x;
    if (rows->step == rows->size)
        return sliced(before, x, rows->offset, rows->heads * rows->size);
    const int64_t first = rows->offset / rows->step;
    if (rows->width % rows->step || rows->offset % rows->step + rows->size > rows->step)
        return NULL;
    const grt_dim apart[] = {rows->batch, rows->sequence, grt_dim_const(dims, rows->width / rows->step),
                             grt_dim_const(dims, rows->step)};
    const grt_dim flat[] = {rows->batch, rows->sequence, grt_dim_const(dims, rows->heads * rows->size)};
    if (first || rows->width / rows->step != rows->heads)
        return NULL;
    x = rewrite_reshaped(before, x, 4, apart);
    x = x ? sliced(before, x, rows->offset, rows->size) : NULL;
    return x ? rewrite_reshaped(before, x, 3, flat) : NULL;
}

/* ---- heads that lie apart, as the parts of their width ---- */

/* A constant whose last dim is sorted from [heads, n, size] to [n, heads, size]. */
static ir_value *sorted(ir_node *before, ir_value *constant, int64_t heads, int64_t n, int64_t size)
{
    grt_dims *dims = before->graph->module->dims;
    const int32_t rank = constant->type.rank;
    grt_dim apart[4];
    int64_t perm[4];
    for (int32_t i = 0; i < rank - 1; i++) {
        apart[i] = constant->type.dims[i];
        perm[i] = i;
    }
    const int64_t sizes[] = {heads, n, size}, order[] = {1, 0, 2};
    for (int32_t i = 0; i < 3; i++) {
        apart[rank - 1 + i] = grt_dim_const(dims, sizes[i]);
        perm[rank - 1 + i] = rank - 1 + order[i];
    }
    ir_value *x = rewrite_reshaped(before, constant, rank + 2, apart);
    x = x ? attention_transposed(before, x, perm, rank + 2) : NULL;
    return x ? rewrite_reshaped(before, x, rank, constant->type.dims) : NULL;
}

/* The source with sorted columns; NULL if that cannot be. */
static ir_value *sorted_source(ir_node *before, const attention_layout *layout)
{
    attention_projection p;
    const head_rows *q = &layout->rows[Q];
    if (!attention_layout_is_sortable(layout, &p))
        return NULL;
    ir_value *w = sorted(before, ir_in(p.product, 1), q->heads, SIDES, q->size);
    ir_value *b = p.bias ? sorted(before, p.bias, q->heads, SIDES, q->size) : NULL;
    ir_node *made =
        w ? attention_add_node(before, "MatMul", 2, (ir_value *[]){ir_in(p.product, 0), w}) : NULL;
    if (made && p.bias)
        made = b ? attention_add_node(before, "Add", 2, (ir_value *[]){made->out[0], b}) : NULL;
    return made ? made->out[0] : NULL;
}

/* ---- inputs as [batch, heads, sequence, size] ---- */

/* The value as [batch, heads, sequence, size], from what its product takes. */
static ir_value *four_dims(ir_node *before, const attention_side *side, const attention_layout *layout,
                           grt_dim heads)
{
    grt_dims *dims = before->graph->module->dims;
    ir_value *x = side->value;
    const ir_type *type = &x->type;
    const int32_t rank = type->rank;
    const grt_dim wanted[] = {layout->batch, heads, type->dims[rank - 2], type->dims[rank - 1]};
    grt_dim lead = grt_dim_const(dims, 1);
    for (int32_t i = 0; i < rank - 2; i++)
        lead = grt_dim_mul(dims, lead, type->dims[i]);
    if (lead != grt_dim_mul(dims, layout->batch, heads))
        return NULL;
    x = rewrite_reshaped(before, x, 4, wanted);
    return x && side->exchanged ? attention_transposed(before, x, (int64_t[]){0, 1, 3, 2}, 4) : x;
}

/* Heads out of rows, [B, S, h * D] -> [B, h, S, D]. */
static ir_value *heads_apart(ir_node *before, const attention_side *side, const lead_list *list,
                             const attention_layout *layout)
{
    grt_dims *dims = before->graph->module->dims;
    head_rows rows;
    if (!attention_layout_find_heads(side, list, layout->n_batch, &rows) ||
        !attention_layout_is_bare(&rows) || rows.sequence_first)
        return NULL;
    ir_value *x = rewrite_reshaped(before, rows.source, 4,
                                   (grt_dim[]){layout->batch, rows.sequence, grt_dim_const(dims, rows.heads),
                                               grt_dim_const(dims, rows.size)});
    return x ? attention_transposed(before, x, (int64_t[]){0, 2, 1, 3}, 4) : NULL;
}

/* What was repeated for groups of queries' heads, [B, h, S, D] -> [B, h, g, S, D]: before that, as [B, h, S,
 * D]. */
static ir_value *unrepeated(ir_node *before, const attention_side *side, const lead_list *list,
                            const attention_layout *layout, grt_dim *out_heads)
{
    grt_dims *dims = before->graph->module->dims;
    index_map kept = side->map;
    index_part row, column;
    int32_t n = list->n;
    grt_dim heads = grt_dim_const(dims, 1);
    while (n > layout->n_batch && grt_dim_equals(dims, list->parts[n - 1].stride, 0))
        n--;
    for (int32_t i = layout->n_batch; i < n; i++)
        heads = grt_dim_mul(dims, heads, list->parts[i].size);
    *out_heads = heads;
    kept.n = 0;
    for (int32_t i = 0; i < side->map.n; i++)
        if (!grt_dim_equals(dims, side->map.parts[i].stride, 0))
            kept.parts[kept.n++] = side->map.parts[i];
    if (n == list->n)
        return NULL;
    if (!index_map_is_whole(dims, &kept) || !index_map_single(dims, &side->map, side->map.rank - 2, &row) ||
        !index_map_single(dims, &side->map, side->map.rank - 1, &column))
        return heads_apart(before, side, list, layout);
    return rewrite_reshaped(before, side->map.source, 4,
                            (grt_dim[]){layout->batch, heads, row.size, column.size});
}

/* ---- making the node ---- */

typedef struct making {
    ir_node *before;
    const attention_match *match;
    const attention_side *sides;
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
        rows.source = sorted_source(m->before, &m->layout);
        if (!rows.source)
            return false;
    }
    m->in[Q] = rows_of(m->before, &rows, m->sides[Q].value);
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
    m->in[Q] = four_dims(m->before, &s[Q], l, l->heads);
    m->in[K] = unrepeated(m->before, &s[K], &m->lists[K], l, &k_heads);
    m->in[V] = s[V].scale == 1 ? unrepeated(m->before, &s[V], &m->lists[V], l, &v_heads) : NULL;
    const bool repeats = !m->in[K] || !m->in[V] || k_heads != v_heads;
    if (repeats) {
        m->in[K] = four_dims(m->before, &s[K], l, l->heads);
        m->in[V] = four_dims(m->before, &s[V], l, l->heads);
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

/* ---- the node ---- */

static ir_node *make_node(pass_context *context, making *m)
{
    const attention_match *match = m->match;
    const grt_dtype dtype = match->last->out[0]->type.dtype;
    if (!align(m))
        return NULL;
    attention_layout_choose(m->sides, m->lists, &m->layout);
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
static ir_value *result_of(making *m, ir_node *made, const ir_type *wanted)
{
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
    return y && y->type.dtype == wanted->dtype && rewrite_same_shape(&y->type, wanted) ? y : NULL;
}

static bool attention_replace(pass_context *context, making *m, ir_node *last)
{
    ir_node *made = make_node(context, m);
    if (made)
        m->why = "its result cannot be given the model's shape";
    ir_value *y = made ? result_of(m, made, &last->out[0]->type) : NULL;
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

/* Attention over channels: as many rows as a head has channels, each of as many numbers as there are tokens.
 * Attention on tensor cores, which targets with fast float16 have, takes rows of up to 256 numbers that are
 * multiples of 16 bytes. For others products and a softmax are faster, whose scores are no larger than the
 * queries. */
static bool is_slow_over_channels(const pass_context *context, const attention_match *match)
{
    enum { LONGEST = 256, VECTOR = 16 };
    const ir_type *queries = &match->side[Q].value->type;
    const grt_dims *dims = match->last->graph->module->dims;
    const int64_t bytes =
        context->precision == GRT_PRECISION_FLOAT16 ? 2 : (int64_t)grt_dtype_size(queries->dtype);
    int64_t keys, size;
    return context->target->traits->half_floats && !match->n_terms && !match->sinks && match->softcap == 0 &&
           grt_dim_is_const(dims, match->scores->dims[match->scores->rank - 1], &keys) &&
           grt_dim_is_const(dims, queries->dims[queries->rank - 1], &size) && keys <= size &&
           (size > LONGEST || size * bytes % VECTOR != 0);
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
    if (is_slow_over_channels(context, &match))
        tell_near_miss(context, node, "the target is faster with products over rows of this length");
    else if (!attention_replace(context, &m, node))
        tell_near_miss(context, node, m.why ? m.why : "it cannot be written as one node");
}

static void attention_visit(pass_context *context, ir_node *node)
{
    if (rewrite_is(node, "MatMul") || rewrite_is(node, "Einsum"))
        look_at_product(context, node);
}

grt_status pass_attention(pass_context *context)
{
    return rewrite_each_node(context, attention_visit);
}
