/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_weights.h"

#include "graph/passes/rewrite.h"

enum { MOST_STEPS = 16 };

ir_value *attention_weights_passed(const ir_value *value, score_moves *moves)
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

/* p of p * factor with one factor for all weights of a head: its last two dims are 1. */
static ir_value *unweighted(const ir_value *value, ir_value **out_factor)
{
    const ir_node *mul = rewrite_producer(value, "Mul");
    for (int32_t i = 0; mul && i < 2; i++) {
        ir_value *p = ir_in(mul, i), *factor = ir_in(mul, 1 - i);
        const ir_type *type = factor ? &factor->type : NULL;
        bool ok = p && type && p != factor && type->rank >= 0 && type->rank <= p->type.rank &&
                  type->dtype == value->type.dtype && rewrite_same_shape(&p->type, &value->type);
        for (int32_t k = type && type->rank > 2 ? type->rank - 2 : 0; ok && k < type->rank; k++)
            ok = grt_dim_equals(value->graph->module->dims, type->dims[k], 1);
        if (ok) {
            *out_factor = factor;
            return p;
        }
    }
    return NULL;
}

/* Sets the moves, the factor and the softmax that the value is made of. */
static ir_node *softmax_of(attention_weights *w, const ir_value *value)
{
    w->back = (score_moves){0};
    w->head_factor = NULL;
    for (int step = 0; step < MOST_STEPS && value; step++) {
        ir_node *node = value->producer;
        if (!node)
            return NULL;
        if (rewrite_is(node, "Softmax"))
            return node;
        ir_value *p = unguarded(node);
        p = p ? p : undropped(value);
        p = p || w->head_factor || w->back.n ? p : unweighted(value, &w->head_factor);
        value = p ? p : attention_weights_passed(value, &w->back);
    }
    return NULL;
}

bool attention_weights_are_private(const attention_weights *w)
{
    const ir_value *value = w->value;
    ir_value *factor;
    for (int32_t uses = 1; value->n_uses == uses;) {
        if (value->producer == w->softmax)
            return true;
        ir_value *p = unguarded(value->producer);
        uses = p ? 2 : 1; /* the guard reads it twice */
        p = p ? p : undropped(value);
        p = p ? p : unweighted(value, &factor);
        value = p ? p : attention_weights_passed(value, NULL);
    }
    return false;
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

static bool attention_weights_are_over(const ir_node *softmax, int32_t from_end)
{
    const int32_t rank = softmax->out[0]->type.rank;
    return rank >= from_end && grt_axis(grt_attr_int(&softmax->desc, "axis", -1), rank) == rank - from_end;
}

/* Looks behind the value, which the last product takes first or second, and takes transposed or not. */
static bool look_behind(attention_weights *w, ir_value *value)
{
    w->value = value;
    w->softmax = value ? softmax_of(w, value) : NULL;
    w->crossed = w->softmax && attention_weights_are_over(w->softmax, 2) && !w->back.mixed;
    return w->softmax != NULL;
}

bool attention_weights_find(const ir_node *last, attention_weights *w)
{
    for (int32_t i = 0; i < 2; i++) {
        ir_value *taken = ir_in(last, i);
        w->flipped = i == 1;
        if (look_behind(w, taken) && w->crossed == w->flipped)
            return true;
        if (taken && look_behind(w, unflipped(taken)) && w->crossed != w->flipped)
            return true;
    }
    w->flipped = false;
    if (!look_behind(w, ir_in(last, 0)))
        return false;
    w->crossed = false; /* the softmax is over another dim */
    return true;
}
