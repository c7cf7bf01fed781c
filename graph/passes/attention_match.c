/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_match.h.
 *
 *   MatMul(Softmax(scale * MatMul(Q, K^T) + terms), V)
 *   MatMul(V^T, Transpose(Softmax(scale * MatMul(Q, K^T) + terms)))
 *
 * From the last product to the first, through what exporters put between: the guard that PyTorch puts behind
 * Softmax for rows that are hidden altogether (NaN becomes 0), casts around a softmax in float32, scales at
 * any place, a scale for each head (cosine attention), masks that are added or selected, a soft cap, a score
 * that is joined to each row and dropped behind the softmax (a sink), and rows of scores whose dims are
 * joined, split or sorted on the way (score_moves). */
#include "graph/passes/attention_match.h"
#include "graph/passes/rewrite.h"

#include <math.h>
#include <string.h>

/* Less than this, added to a score, leaves nothing of a weight. */
#define HIDDEN_BELOW (-9e3)

/* Added to a score, this or less is the sum. */
#define NOTHING_ABOVE (-1e30)

enum { MOST_STEPS = 16 };

/* x of x * c or x / c with a scalar constant c; *out_factor is multiplied by it. */
static ir_value *attention_match_unscaled(const ir_node *node, double *out_factor)
{
    double c;
    const bool div = rewrite_is(node, "Div");
    if (!div && !rewrite_is(node, "Mul"))
        return NULL;
    for (int32_t i = 0; i < (div ? 1 : 2); i++)
        if (ir_const_float(ir_in(node, 1 - i), &c) && c != 0) {
            *out_factor *= div ? 1 / c : c;
            return ir_in(node, i);
        }
    return NULL;
}

/* x of x * c with a constant c that has one number for each head: all its dims but the third last are 1.
 * like: scores whose heads those have to be. */
static ir_value *unscaled_by_head(const ir_node *node, const ir_type *like, ir_value **out_scale)
{
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Mul"); i++) {
        ir_value *x = ir_in(node, i), *c = ir_in(node, 1 - i);
        const int32_t rank = c->type.rank, of_x = x->type.rank;
        bool ok = c->type.data && rank >= 3 && of_x >= rank &&
                  rewrite_same_shape(&x->type, &node->out[0]->type) &&
                  x->type.dims[of_x - 3] == like->dims[like->rank - 3];
        for (int32_t d = 0; d < rank && ok; d++)
            ok = d == rank - 3 || c->type.data->dims[d] == 1;
        if (ok) {
            *out_scale = c;
            return x;
        }
    }
    return NULL;
}

/* The scores in Where(keep, scores, hidden) or the other way round. */
static ir_value *unselected(const ir_node *node, attention_term *out_term)
{
    double hidden;
    if (!rewrite_is(node, "Where"))
        return NULL;
    for (int32_t i = 1; i <= 2; i++)
        if (ir_const_float(ir_in(node, 3 - i), &hidden) && hidden < HIDDEN_BELOW) {
            *out_term = (attention_term){
                .value = ir_in(node, 0), .factor = 1, .keep = true, .inverted = i == 2, .hidden = hidden};
            return ir_in(node, i);
        }
    return NULL;
}

/* The scores of Max(scores, c) with a number so low that beside a term of its size nothing is left of scores:
 * the term may as well be at least c itself. OPT and BART keep sums of masks finite so. */
static ir_value *unbounded(const ir_node *node, double *least)
{
    double c;
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Max") && node->n_in == 2; i++)
        if (ir_const_float(ir_in(node, 1 - i), &c) && c <= NOTHING_ABOVE &&
            rewrite_same_shape(&ir_in(node, i)->type, &node->out[0]->type)) {
            *least = fmax(*least, c);
            return ir_in(node, i);
        }
    return NULL;
}

/* One step back from the scores to the product: the value in front of it. Sets a factor, a term or neither.
 */
static ir_value *step_back(const ir_value *scores, double *factor, attention_term *term, score_moves *moves)
{
    const ir_node *node = scores->producer;
    ir_value *x = attention_weights_passed(scores, moves);
    if (!x)
        x = attention_match_unscaled(node, factor);
    if (!x)
        x = unselected(node, term);
    return x;
}

/* True if the value is made of a product by nothing but what scores go through. */
static bool reaches_product(const ir_value *value, int32_t depth)
{
    for (; depth > 0 && value && value->producer && value->n_uses == 1; depth--) {
        double factor = 1;
        attention_term term;
        ir_value *scale;
        const ir_node *node = value->producer;
        if (rewrite_is(node, "MatMul"))
            return true;
        if (rewrite_is(node, "Add"))
            return reaches_product(ir_in(node, 0), depth - 1) || reaches_product(ir_in(node, 1), depth - 1);
        ir_value *x = rewrite_is(node, "Tanh") || rewrite_is(node, "Sub")
                          ? ir_in(node, 0)
                          : step_back(value, &factor, &term, NULL);
        value = x ? x : unscaled_by_head(node, &value->type, &scale);
    }
    return false;
}

/* True if the dim is `size`, or what `size` and others are when they are broadcast together. A product whose
 * other factor has `size` there takes no other. */
static bool attention_match_can_be(const grt_dims *dims, grt_dim dim, grt_dim size, int32_t depth)
{
    if (dim == size)
        return true;
    const grt_dim_expr e = grt_dim_get(dims, dim);
    return depth > 0 && e.op == GRT_DIM_BROADCAST &&
           (attention_match_can_be(dims, e.a, size, depth - 1) ||
            attention_match_can_be(dims, e.b, size, depth - 1));
}

/* The same shape, but for columns that a mask of columns of its own was broadcast with. */
static bool has_shape_of_scores(const ir_value *x, const ir_value *scores)
{
    const ir_type *a = &x->type, *b = &scores->type;
    if (a->rank < 1 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank - 1; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return attention_match_can_be(x->graph->module->dims, b->dims[b->rank - 1], a->dims[a->rank - 1],
                                  ATTENTION_TERMS);
}

/* The scores of scores + mask or scores - mask. */
static ir_value *unadded(const ir_value *scores, attention_term *out_term)
{
    const ir_node *node = scores->producer;
    const bool sub = rewrite_is(node, "Sub");
    const int32_t sides = sub ? 1 : rewrite_is(node, "Add") ? 2 : 0;
    for (int32_t i = 0; i < sides; i++) {
        ir_value *x = ir_in(node, i);
        if (has_shape_of_scores(x, scores) && reaches_product(x, MOST_STEPS)) {
            *out_term = (attention_term){.value = ir_in(node, 1 - i), .factor = sub ? -1 : 1};
            return x;
        }
    }
    return NULL;
}

/* The scores' type with the columns that they have by the product with the values. NULL when out of memory.
 */
static const ir_type *with_columns(const attention_match *m, const ir_value *scores)
{
    const ir_type *type = &scores->type;
    const int32_t last = type->rank - 1;
    const grt_dim columns = m->scores->dims[m->scores->rank - 1];
    if (m->weights.crossed || type->dims[last] == columns)
        return type;
    grt_arena *arena = scores->graph->module->arena;
    ir_type *made = GRT_ARENA_ARRAY(arena, ir_type, 1);
    grt_dim *dims = GRT_ARENA_ARRAY(arena, grt_dim, type->rank);
    if (!made || !dims)
        return NULL;
    memcpy(dims, type->dims, (size_t)last * sizeof *dims);
    dims[last] = columns;
    *made = *type;
    made->dims = dims;
    return made;
}

static const char *add_term(attention_match *m, attention_term term, const ir_value *scores)
{
    if (m->n_terms == ATTENTION_TERMS)
        return "more masks than are looked for";
    if (m->weights.crossed)
        return "a mask lies on transposed scores";
    if (m->front.mixed)
        return "queries are moved into other dims behind a mask";
    term.factor *= m->scale;
    term.scores = with_columns(m, scores);
    if (!term.scores)
        return "there is no memory";
    m->term[m->n_terms++] = term;
    return NULL;
}

/* Follows the scores back to their product. */
static ir_node *attention_match_find_product(attention_match *m, ir_value *scores)
{
    m->scale = 1;
    m->least = -INFINITY;
    for (int step = 0; step < MOST_STEPS; step++) {
        attention_term term = {0};
        double factor = 1;
        ir_node *node = scores->producer;
        if (!ir_is_inner(scores)) {
            m->why = "the scores have another reader";
            return NULL;
        }
        if (rewrite_is(node, "MatMul"))
            return node;
        ir_value *x = unadded(scores, &term);
        if (!x)
            x = step_back(scores, &factor, &term, &m->front);
        if (!x && rewrite_is(node, "Tanh") && m->softcap == 0 && m->scale > 0 && !m->head_scale) {
            m->softcap = m->scale;
            x = ir_in(node, 0);
        }
        if (!x && m->scale == 1 && m->softcap == 0 && !m->head_scale && !m->n_terms)
            x = unbounded(node, &m->least);
        if (!x && !m->head_scale && !m->weights.crossed)
            x = unscaled_by_head(node, m->scores, &m->head_scale);
        if (!x) {
            m->why = "the scores are not a product, scaled and masked";
            return NULL;
        }
        if ((m->softcap != 0 || m->head_scale) && term.value) {
            m->why =
                m->head_scale ? "a mask lies under a scale of each head" : "a mask lies under the soft cap";
            return NULL;
        }
        if (term.value && (m->why = add_term(m, term, scores)))
            return NULL;
        m->scale *= factor;
        scores = x;
    }
    m->why = "more steps between softmax and product than are looked for";
    return NULL;
}

/* x of the value, if that is x in a wider type. */
static ir_value *unwidened(const ir_value *value)
{
    const ir_node *cast = rewrite_producer(value, "Cast");
    ir_value *x = cast && value->type.dtype == GRT_DTYPE_FLOAT ? ir_in(cast, 0) : NULL;
    return x && grt_dtype_in(x->type.dtype, GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) ? x : NULL;
}

/* The value's map, with the leading dims of the scores. */
static bool find_side(attention_side *side, ir_value *value, const ir_type *scores, bool exchanged)
{
    grt_dims *dims = value->graph->module->dims;
    const int32_t rank = value->type.rank, more = scores->rank - rank;
    grt_dim wide[GRT_MAX_RANK];
    int64_t perm[GRT_MAX_RANK];
    *side = (attention_side){.value = value, .scale = 1, .outer_scale = 1, .exchanged = exchanged};
    for (double factor = 1; value->producer; factor = 1) {
        ir_value *x = unwidened(value);
        if (!x)
            x = attention_match_unscaled(value->producer, &factor);
        if (!x || !rewrite_same_shape(&x->type, &value->type))
            break;
        side->value = value = x;
        side->outer_scale *= factor;
    }
    side->scale = side->outer_scale;
    if (rank < 2 || more < 0 || !index_map_of(value, &side->map, &side->scale))
        return false;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = !exchanged || i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    if (!index_map_transpose(&side->map, perm))
        return false;
    for (int32_t i = 0; i < scores->rank; i++)
        wide[i] = i < scores->rank - 2 ? scores->dims[i] : value->type.dims[perm[i - more]];
    return index_map_expand(dims, &side->map, scores->rank, wide);
}

static ir_value *attention_match_scaled(ir_node *before, ir_value *x, ir_value *c)
{
    ir_node *mul =
        ir_node_create(before->graph, before, "", "Mul", before->desc.name, 2, (ir_value *[]){x, c}, 1);
    return mul && op_infer_node(mul) == GRT_OK ? mul->out[0] : NULL;
}

/* Queries times the factors of their heads where a Transpose has put heads in front: the factors are along
 * another dim of what it moves, so that inputs in rows stay in rows. NULL where there is none. */
static ir_value *scaled_before_transpose(ir_node *before, ir_value *q, ir_value *c)
{
    const ir_node *transpose = rewrite_producer(q, "Transpose");
    const int32_t rank = q->type.rank;
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    if (!perm || rank < 3 || n != (size_t)rank)
        return NULL;
    grt_dim dims[GRT_MAX_RANK];
    const int32_t more = rank - (int32_t)perm[rank - 3];
    for (int32_t i = 0; i < more; i++)
        dims[i] = i ? grt_dim_const(before->graph->module->dims, 1) : c->type.dims[c->type.rank - 3];
    ir_value *along = rewrite_reshaped(before, c, more, dims);
    ir_value *x = along ? attention_match_scaled(before, ir_in(transpose, 0), along) : NULL;
    ir_node *moved =
        x ? ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1) : NULL;
    if (!moved)
        return NULL;
    ir_attrs_copy(moved, transpose);
    return op_infer_node(moved) == GRT_OK ? moved->out[0] : NULL;
}

/* The queries of the product, times the factors of their heads. The scores have the product's heads where
 * they are multiplied: only dims in front of these are joined or split between. */
static ir_value *queries_of(attention_match *m, ir_node *product)
{
    ir_value *q = ir_in(product, m->weights.crossed ? 1 : 0), *c = m->head_scale;
    const ir_type *scores = &product->out[0]->type;
    if (!c)
        return q;
    if (q->type.rank != scores->rank || c->type.rank > scores->rank || c->type.dtype != q->type.dtype ||
        scores->dims[scores->rank - 3] != m->scores->dims[m->scores->rank - 3]) {
        m->why = "a scale of each head does not go with the queries";
        return NULL;
    }
    ir_value *scaled = scaled_before_transpose(product, q, c);
    return scaled ? scaled : attention_match_scaled(product, q, c);
}

/* The type with its last two dims exchanged, if `exchange`. dims: room for them. */
static ir_type attention_match_type(const ir_type *type, bool exchange, grt_dim *dims)
{
    const int32_t rank = type->rank;
    ir_type made = *type;
    memcpy(dims, type->dims, (size_t)rank * sizeof *dims);
    if (exchange) {
        dims[rank - 2] = type->dims[rank - 1];
        dims[rank - 1] = type->dims[rank - 2];
    }
    made.dims = dims;
    return made;
}

static bool has_rows_of(const ir_type *a, const ir_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank - 1; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* The queries with the rows that the softmax has. */
static bool move_queries(attention_match *m, const ir_type *scores)
{
    attention_side *q = &m->side[ATTENTION_SIDE_Q];
    const double outer = q->outer_scale;
    ir_value *x =
        has_rows_of(&q->value->type, scores) ? score_moves_apply(m->last, &m->front, q->value) : NULL;
    if (!x || !has_rows_of(&x->type, m->scores) || !find_side(q, x, m->scores, false))
        return false;
    q->outer_scale *= outer;
    q->scale *= outer;
    return true;
}

/* All sides with the rows that the softmax has: the rows of queries are moved, and keys and values are the
 * same for all of the last of the rows' dims there. */
static bool find_moved_sides(attention_match *m, const ir_node *product)
{
    grt_dims *dims = product->graph->module->dims;
    const ir_type *scores = &product->out[0]->type;
    attention_side *k = &m->side[ATTENTION_SIDE_K], *v = &m->side[ATTENTION_SIDE_V];
    const int32_t rank = m->result.rank;
    m->why = "queries are moved into dims that keys or values have";
    if (m->head_scale || m->sinks || m->weights.crossed ||
        !has_rows_of(&m->weights.value->type, &m->result) || !move_queries(m, scores) ||
        !score_moves_follow(dims, &m->front, scores->dims[scores->rank - 2], &k->map) ||
        !score_moves_return(dims, &m->weights.back, m->result_dims[rank - 2], &v->map) ||
        k->map.rank != m->scores->rank || v->map.rank != m->scores->rank)
        return false;
    k->apart = v->apart = true;
    const grt_dim size = m->result_dims[rank - 1];
    memcpy(m->result_dims, m->scores->dims, (size_t)m->scores->rank * sizeof *m->result_dims);
    m->result.rank = m->scores->rank;
    m->result_dims[m->result.rank - 1] = size;
    m->why = NULL;
    return true;
}

static bool attention_match_find_sides(attention_match *m, ir_node *product, ir_value *queries)
{
    const ir_type *scores = &product->out[0]->type;
    ir_value *values = ir_in(m->last, m->weights.flipped ? 0 : 1),
             *keys = ir_in(product, m->weights.crossed ? 0 : 1);
    if (!find_side(&m->side[ATTENTION_SIDE_Q], queries, scores, m->weights.crossed) ||
        !find_side(&m->side[ATTENTION_SIDE_K], keys, scores, !m->weights.crossed) ||
        !find_side(&m->side[ATTENTION_SIDE_V], values, &m->last->out[0]->type, m->weights.flipped)) {
        m->why = "queries, keys or values have no known shape";
        return false;
    }
    if (!m->weights.crossed && scores->dims[scores->rank - 1] != m->scores->dims[m->scores->rank - 1]) {
        m->why = "the scores of one key are repeated for all values";
        return false;
    }
    return !(m->front.mixed || m->weights.back.mixed) || find_moved_sides(m, product);
}

/* The rows of values; NONE if that is not known. */
static grt_dim rows_of_values(const attention_match *m)
{
    const ir_type *values = &ir_in(m->last, m->weights.flipped ? 0 : 1)->type;
    return values->rank < 2 ? GRT_DIM_NONE : values->dims[values->rank - (m->weights.flipped ? 1 : 2)];
}

/* The scores that are not sinks: the softmax has one column more than there are values. */
static ir_value *without_sinks(attention_match *m, ir_value *scores)
{
    const grt_dims *dims = scores->graph->module->dims;
    const int32_t rank = scores->type.rank;
    const ir_node *concat = ir_is_inner(scores) ? rewrite_producer(scores, "Concat") : NULL;
    const grt_dim rows = rows_of_values(m);
    if (m->weights.crossed || rows == GRT_DIM_NONE ||
        attention_match_can_be(dims, scores->type.dims[rank - 1], rows, ATTENTION_TERMS))
        return scores;
    if (!concat || concat->n_in != 2 || grt_axis(grt_attr_int(&concat->desc, "axis", 0), rank) != rank - 1 ||
        !grt_dim_equals(dims, ir_in(concat, 1)->type.dims[rank - 1], 1) || rank != 4) {
        m->why = "the softmax has other columns than there are values";
        return NULL;
    }
    m->sinks = ir_in(concat, 1);
    return ir_in(concat, 0);
}

/* Why what lies between the softmax and the last product is no attention; NULL if it is. */
static const char *attention_match_why_not(const attention_match *m)
{
    const ir_type *type = &m->weights.softmax->out[0]->type;
    if (type->rank < 3 || type->rank > GRT_MAX_RANK || m->last->out[0]->type.rank < 3)
        return "the scores have fewer than three dims";
    if (grt_axis(grt_attr_int(&m->weights.softmax->desc, "axis", -1), type->rank) !=
        type->rank - (m->weights.crossed ? 2 : 1))
        return "the softmax is not over the last dim";
    return attention_weights_are_private(&m->weights) ? NULL
                                                      : "the weights behind the softmax have another reader";
}

bool attention_find(ir_node *last, attention_match *m)
{
    *m = (attention_match){.last = last};
    if (!attention_weights_find(last, &m->weights))
        return false;
    m->scores = &m->weights.softmax->out[0]->type;
    m->why = attention_match_why_not(m);
    ir_value *scores = m->why ? NULL : without_sinks(m, ir_in(m->weights.softmax, 0));
    if (!scores)
        return false;
    m->turned = attention_match_type(&scores->type, m->weights.crossed, m->turned_dims);
    m->scores = &m->turned;
    if (!m->weights.crossed && rows_of_values(m) != GRT_DIM_NONE)
        m->turned_dims[m->turned.rank - 1] = rows_of_values(m);
    m->result = attention_match_type(&last->out[0]->type, m->weights.flipped, m->result_dims);
    ir_node *product = attention_match_find_product(m, scores);
    ir_value *queries = product ? queries_of(m, product) : NULL;
    if (!queries)
        return false;
    if (!isfinite(m->scale) || m->scale == 0)
        m->why = "the scale is zero or not finite";
    return !m->why && attention_match_find_sides(m, product, queries);
}

/* The last two dims exchanged. */
static ir_value *attention_match_turned(ir_node *before, ir_value *y)
{
    const int32_t rank = y->type.rank;
    int64_t perm[GRT_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &y, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

ir_value *attention_match_finish(const attention_match *m, ir_value *y)
{
    ir_node *before = m->last;
    if (m->front.mixed || m->weights.back.mixed)
        y = score_moves_apply(before, &m->weights.back, y);
    if (y && m->weights.flipped)
        y = attention_match_turned(before, y);
    if (!y || !m->weights.head_factor)
        return y;
    ir_node *mul = ir_node_create(before->graph, before, "", "Mul", before->desc.name, 2,
                                  (ir_value *[]){y, m->weights.head_factor}, 1);
    return mul && y->type.dtype == m->weights.head_factor->type.dtype && op_infer_node(mul) == GRT_OK
               ? mul->out[0]
               : NULL;
}
