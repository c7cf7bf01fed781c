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

enum { MOST_STEPS = 16 };

/* x, where the value is x with its rows moved, or in another precision. moves: may be NULL. */
static ir_value *passed(const ir_value *value, score_moves *moves)
{
    const ir_node *node = value->producer;
    ir_value *x = node ? score_moves_before(value, moves) : NULL;
    if (x || !rewrite_is(node, "Cast"))
        return x;
    x = ir_in(node, 0);
    return grt_dtype_in(x->type.dtype, GRT_SET_FLOATS) ? x : NULL;
}

/* p of Where(IsNaN(p), 0, p). */
static ir_value *unguarded(const ir_node *where)
{
    double zero;
    ir_value *p = rewrite_is(where, "Where") ? ir_in(where, 2) : NULL;
    ir_node *test = p && ir_is_inner(ir_in(where, 0)) ? rewrite_producer(ir_in(where, 0), "IsNaN") : NULL;
    return test && ir_in(test, 0) == p && p->n_uses == 2 && ir_const_float(ir_in(where, 1), &zero) &&
                   zero == 0
               ? p
               : NULL;
}

/* Where the value is a softmax without its last column, as a sink is dropped: the softmax's result. */
static ir_value *undropped(const ir_value *value)
{
    const ir_node *slice = rewrite_producer(value, "Slice");
    ir_value *p = slice ? ir_in(slice, 0) : NULL;
    const int64_t *start, *axis, *step;
    int64_t n;
    if (!p || !rewrite_is(p->producer, "Softmax") || p->type.rank != value->type.rank || p->type.rank < 1)
        return NULL;
    const int32_t last = p->type.rank - 1;
    grt_dims *dims = value->graph->module->dims;
    const bool front = ir_const_ints(ir_in(slice, 1), &start, &n) && n == 1 && start[0] == 0 &&
                       ir_const_ints(ir_in(slice, 3), &axis, &n) && n == 1 &&
                       grt_axis(axis[0], p->type.rank) == last &&
                       (!ir_in(slice, 4) || (ir_const_ints(ir_in(slice, 4), &step, &n) && step[0] == 1));
    return front && grt_dim_addc(dims, value->type.dims[last], 1) == p->type.dims[last] ? p : NULL;
}

static ir_node *softmax_of(const ir_value *value, score_moves *moves)
{
    for (int step = 0; step < MOST_STEPS && value; step++) {
        ir_node *node = value->producer;
        if (!node)
            return NULL;
        if (rewrite_is(node, "Softmax"))
            return node;
        ir_value *p = unguarded(node);
        p = p ? p : undropped(value);
        value = p ? p : passed(value, moves);
    }
    return NULL;
}

/* True if nothing but the attention reads the values between it and its softmax. */
static bool is_private(const ir_value *value, const ir_node *softmax)
{
    for (int32_t uses = 1; value->n_uses == uses;) {
        if (value->producer == softmax)
            return true;
        ir_value *p = unguarded(value->producer);
        uses = p ? 2 : 1; /* the guard reads it twice */
        p = p ? p : undropped(value);
        value = p ? p : passed(value, NULL);
    }
    return false;
}

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

/* One step back from the scores to the product: the value in front of it. Sets a factor, a term or neither.
 */
static ir_value *step_back(const ir_value *scores, double *factor, attention_term *term, score_moves *moves)
{
    const ir_node *node = scores->producer;
    ir_value *x = passed(scores, moves);
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
        ir_value *x = rewrite_is(node, "Tanh") || rewrite_is(node, "Sub") ? ir_in(node, 0)
                                                                          : step_back(value, &factor, &term, NULL);
        value = x ? x : unscaled_by_head(node, &value->type, &scale);
    }
    return false;
}

/* The scores of scores + mask or scores - mask. */
static ir_value *unadded(const ir_value *scores, attention_term *out_term)
{
    const ir_node *node = scores->producer;
    const bool sub = rewrite_is(node, "Sub");
    const int32_t sides = sub ? 1 : rewrite_is(node, "Add") ? 2 : 0;
    for (int32_t i = 0; i < sides; i++) {
        ir_value *x = ir_in(node, i);
        if (rewrite_same_shape(&x->type, &scores->type) && reaches_product(x, MOST_STEPS)) {
            *out_term = (attention_term){.value = ir_in(node, 1 - i), .factor = sub ? -1 : 1};
            return x;
        }
    }
    return NULL;
}

static const char *add_term(attention_match *m, attention_term term, const ir_type *scores)
{
    if (m->n_terms == ATTENTION_TERMS)
        return "more masks than are looked for";
    if (m->front.mixed)
        return "queries are moved into other dims behind a mask";
    term.factor *= m->scale;
    term.scores = scores;
    m->term[m->n_terms++] = term;
    return NULL;
}

/* Follows the scores back to their product. */
static ir_node *attention_match_find_product(attention_match *m, ir_value *scores)
{
    m->scale = 1;
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
        if (!x && !m->head_scale)
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
        if (term.value && (m->why = add_term(m, term, &scores->type)))
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

/* The queries of the product, times the factors of their heads. The scores have the product's heads where
 * they are multiplied: only dims in front of these are joined or split between. */
static ir_value *queries_of(attention_match *m, ir_node *product)
{
    ir_value *q = ir_in(product, 0), *c = m->head_scale;
    const ir_type *scores = &product->out[0]->type;
    if (!c)
        return q;
    if (q->type.rank != scores->rank || c->type.rank > scores->rank || c->type.dtype != q->type.dtype ||
        scores->dims[scores->rank - 3] != m->scores->dims[m->scores->rank - 3]) {
        m->why = "a scale of each head does not go with the queries";
        return NULL;
    }
    ir_node *mul =
        ir_node_create(product->graph, product, "", "Mul", product->desc.name, 2, (ir_value *[]){q, c}, 1);
    return mul && op_infer_node(mul) == GRT_OK ? mul->out[0] : NULL;
}

/* Dims of a product's result as [..., rows, size], also where it is [..., size, rows]. */
static void result_type(attention_match *m)
{
    const ir_type *out = &m->last->out[0]->type;
    const int32_t rank = out->rank;
    memcpy(m->result_dims, out->dims, (size_t)rank * sizeof *out->dims);
    if (m->flipped) {
        m->result_dims[rank - 2] = out->dims[rank - 1];
        m->result_dims[rank - 1] = out->dims[rank - 2];
    }
    m->result = *out;
    m->result.dims = m->result_dims;
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
static bool find_moved_sides(attention_match *m, const ir_node *product, const ir_value *weights)
{
    grt_dims *dims = product->graph->module->dims;
    const ir_type *scores = &product->out[0]->type;
    attention_side *k = &m->side[ATTENTION_SIDE_K], *v = &m->side[ATTENTION_SIDE_V];
    const int32_t rank = m->result.rank;
    m->why = "queries are moved into dims that keys or values have";
    if (m->head_scale || m->sinks || !has_rows_of(&weights->type, &m->result) || !move_queries(m, scores) ||
        !score_moves_follow(dims, &m->front, scores->dims[scores->rank - 2], &k->map) ||
        !score_moves_return(dims, &m->back, m->result_dims[rank - 2], &v->map) ||
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

static bool find_sides(attention_match *m, ir_node *product, ir_value *queries, const ir_value *weights)
{
    ir_value *values = ir_in(m->last, m->flipped ? 0 : 1);
    if (!find_side(&m->side[ATTENTION_SIDE_Q], queries, &product->out[0]->type, false) ||
        !find_side(&m->side[ATTENTION_SIDE_K], ir_in(product, 1), &product->out[0]->type, true) ||
        !find_side(&m->side[ATTENTION_SIDE_V], values, &m->last->out[0]->type, m->flipped)) {
        m->why = "queries, keys or values have no known shape";
        return false;
    }
    return !(m->front.mixed || m->back.mixed) || find_moved_sides(m, product, weights);
}

/* The result with the last two dims of x exchanged, if only `value` reads x. */
static ir_value *unflipped(const ir_value *value)
{
    size_t n;
    const ir_node *node = ir_is_inner(value) ? rewrite_producer(value, "Transpose") : NULL;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    const int32_t rank = value->type.rank;
    if (!perm || rank < 3 || (int32_t)n != rank || perm[rank - 1] != rank - 2 || perm[rank - 2] != rank - 1)
        return NULL;
    for (int32_t i = 0; i < rank - 2; i++)
        if (perm[i] != i)
            return NULL;
    return ir_in(node, 0);
}

/* The weights that the last product takes, whose softmax is found. NULL if there is none. */
static ir_value *weights_of(attention_match *m)
{
    ir_value *first = ir_in(m->last, 0), *second = ir_in(m->last, 1);
    if (!first || !second)
        return NULL;
    m->softmax = softmax_of(first, &m->back);
    if (m->softmax)
        return first;
    m->back = (score_moves){0};
    first = unflipped(second);
    m->softmax = first ? softmax_of(first, &m->back) : NULL;
    m->flipped = m->softmax != NULL;
    return m->softmax ? first : NULL;
}

/* The scores that are not sinks: the softmax has one column more than there are values. */
static ir_value *without_sinks(attention_match *m, ir_value *scores)
{
    const grt_dims *dims = scores->graph->module->dims;
    const int32_t rank = scores->type.rank;
    const ir_node *concat = ir_is_inner(scores) ? rewrite_producer(scores, "Concat") : NULL;
    const ir_type *values = &ir_in(m->last, m->flipped ? 0 : 1)->type;
    if (values->rank < 2 ||
        values->dims[values->rank - (m->flipped ? 1 : 2)] == scores->type.dims[rank - 1])
        return scores;
    if (!concat || concat->n_in != 2 || grt_axis(grt_attr_int(&concat->desc, "axis", 0), rank) != rank - 1 ||
        !grt_dim_equals(dims, ir_in(concat, 1)->type.dims[rank - 1], 1) || rank != 4) {
        m->why = "the softmax has other columns than there are values";
        return NULL;
    }
    m->sinks = ir_in(concat, 1);
    return ir_in(concat, 0);
}

bool attention_find(ir_node *last, attention_match *m)
{
    *m = (attention_match){.last = last};
    const ir_value *weights = weights_of(m);
    if (!weights)
        return false;
    const ir_type *type = &m->softmax->out[0]->type;
    m->scores = type;
    if (type->rank < 3 || type->rank > GRT_MAX_RANK || last->out[0]->type.rank < 3)
        m->why = "the scores have fewer than three dims";
    else if (grt_axis(grt_attr_int(&m->softmax->desc, "axis", -1), type->rank) != type->rank - 1)
        m->why = "the softmax is not over the last dim";
    else if (!is_private(weights, m->softmax))
        m->why = "the weights behind the softmax have another reader";
    if (m->why)
        return false;
    ir_value *scores = without_sinks(m, ir_in(m->softmax, 0));
    if (!scores)
        return false;
    m->scores = &scores->type;
    result_type(m);
    ir_node *product = attention_match_find_product(m, scores);
    ir_value *queries = product ? queries_of(m, product) : NULL;
    if (!queries)
        return false;
    if (!isfinite(m->scale) || m->scale == 0)
        m->why = "the scale is zero or not finite";
    return !m->why && find_sides(m, product, queries, weights);
}

ir_value *attention_match_finish(const attention_match *m, ir_value *y)
{
    const int32_t rank = m->last->out[0]->type.rank;
    int64_t perm[GRT_MAX_RANK];
    if (m->front.mixed || m->back.mixed)
        y = score_moves_apply(m->last, &m->back, y);
    if (!y || !m->flipped)
        return y;
    ir_node *node = ir_node_create(m->last->graph, m->last, "", "Transpose", m->last->desc.name, 1, &y, 1);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    if (!node || y->type.rank != rank)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}
