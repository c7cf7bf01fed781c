/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_near.h. Looks from the product back to a softmax, or to exponentials that are summed, through
 * all that models put between, and from there to the scores' product. Nothing is changed: this only finds
 * words for a user who wonders where the attention is. */
#include "graph/passes/attention_near.h"

#include "graph/passes/rewrite.h"

/* What lies between softmax and values; the greatest is told. */
typedef enum near_step { NEAR_NOTHING, NEAR_MOVED, NEAR_CHANGED, NEAR_MIXED } near_step;

/* Values have several inputs, which a hostile model shares: looking at them is bounded. */
typedef struct near_search {
    int32_t visits_left;
    near_step between;
} near_search;

enum { MOST_VISITS = 128, MOST_MOVES = 8 };

static bool near_is_move(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW | OP_PICKS) || rewrite_is(node, "Split");
}

/* False for weights, also quantised ones. */
static bool near_is_computed(const ir_value *value)
{
    for (int32_t i = 0; i < MOST_MOVES && value && !value->type.data && value->producer; i++) {
        const ir_node *node = value->producer;
        if (!near_is_move(node) && !rewrite_is(node, "Cast") && !rewrite_is(node, "DequantizeLinear"))
            return true;
        value = ir_in(node, 0);
    }
    return value && !value->type.data;
}

static bool near_is_product(const ir_node *node)
{
    return node->n_in == 2 && (rewrite_is(node, "MatMul") || rewrite_is(node, "Einsum"));
}

static bool near_is_of_computed(const ir_node *node)
{
    return near_is_product(node) && near_is_computed(ir_in(node, 0)) && near_is_computed(ir_in(node, 1));
}

/* What a product by a weight mixes, where that leaves the shape: heads, at any place of the scores. */
static const ir_value *near_unmixed(const ir_node *node)
{
    const bool filters = rewrite_is(node, "Conv");
    for (int32_t i = 0; i < 2 && (filters || near_is_product(node)); i++) {
        const ir_value *x = ir_in(node, i), *w = ir_in(node, 1 - i);
        if (x && w && !near_is_computed(w) && rewrite_same_shape(&x->type, &node->out[0]->type) &&
            (i == 0 || !filters))
            return x;
    }
    return NULL;
}

/* True if the scores are made of a product of two computed values. */
static bool near_is_scores(near_search *s, const ir_value *value)
{
    const ir_node *node = value ? value->producer : NULL;
    if (!node || s->visits_left-- <= 0)
        return false;
    if (near_is_of_computed(node))
        return true;
    const ir_value *x = near_is_move(node) ? ir_in(node, 0) : near_unmixed(node);
    if (x)
        return near_is_scores(s, x);
    const bool wide = rewrite_is(node, "Concat") || rewrite_has(node, OP_POINTWISE);
    for (int32_t i = 0; i < node->n_in && wide && s->visits_left > 0; i++)
        if (near_is_scores(s, ir_in(node, i)))
            return true;
    return false;
}

/* One of the first readers of the value that is `op`. */
static const ir_node *near_reader(const ir_value *value, const char *op)
{
    int32_t left = MOST_MOVES;
    for (const ir_use *use = value ? value->uses : NULL; use && left > 0; use = use->next, left--)
        if (rewrite_is(use->node, op))
            return use->node;
    return NULL;
}

/* True if a sum of the value is taken, perhaps in another precision. */
static bool near_is_summed(const ir_value *value)
{
    const ir_node *cast = near_reader(value, "Cast");
    return near_reader(value, "ReduceSum") || (cast && near_reader(cast->out[0], "ReduceSum"));
}

static const ir_node *near_softmax(near_search *s, const ir_value *value, near_step between);

/* The softmax behind one of the inputs from `first` on. */
static const ir_node *near_behind(near_search *s, const ir_node *node, int32_t first, near_step between)
{
    const ir_node *found = NULL;
    for (int32_t i = first; i < node->n_in && !found && s->visits_left > 0; i++)
        found = near_softmax(s, ir_in(node, i), between);
    return found;
}

/* The softmax of scores, or their exponentials, that the value is made of. between: what was seen so far. */
static const ir_node *near_softmax(near_search *s, const ir_value *value, near_step between)
{
    const ir_node *node = value ? value->producer : NULL;
    if (!node || s->visits_left-- <= 0)
        return NULL;
    if (rewrite_is(node, "Softmax") || (rewrite_is(node, "Exp") && near_is_summed(value))) {
        s->between = between;
        return near_is_scores(s, ir_in(node, 0)) ? node : NULL;
    }
    if (near_is_move(node) || rewrite_is(node, "Gather"))
        return near_softmax(s, ir_in(node, 0), between > NEAR_MOVED ? between : NEAR_MOVED);
    if (rewrite_is(node, "Cast"))
        return near_softmax(s, ir_in(node, 0), between);
    if (rewrite_is(node, "Where") && rewrite_producer(ir_in(node, 0), "IsNaN"))
        return near_softmax(s, ir_in(node, 2), between);
    const ir_value *x = near_unmixed(node);
    if (x)
        return between == NEAR_MIXED ? NULL : near_softmax(s, x, NEAR_MIXED);
    if (!rewrite_has(node, OP_POINTWISE))
        return NULL;
    return near_behind(s, node, 0, between > NEAR_CHANGED ? between : NEAR_CHANGED);
}

static const char *near_words(const ir_node *softmax, near_step between)
{
    const int32_t rank = softmax->out[0]->type.rank;
    if (rewrite_is(softmax, "Exp"))
        return between == NEAR_CHANGED
                   ? "its softmax is written out and is not exponentials divided by their sum"
                   : "its exponentials are multiplied by the values before they are divided by their sum";
    if (between == NEAR_MIXED)
        return "a product by a weight lies between its softmax and the values, as of heads that talk";
    if (between == NEAR_CHANGED)
        return "its weights are changed between softmax and values, as by a mask of heads";
    if (rank < 0)
        return "the scores have no known shape";
    if (rank < 3)
        return "the scores have fewer than three dims";
    if (grt_axis(grt_attr_int(&softmax->desc, "axis", -1), rank) != rank - 1)
        return "its scores are transposed: the softmax is not over their last dim";
    if (between == NEAR_MOVED)
        return "its weights are moved between softmax and values, as where heads share keys and values";
    return "the weights are the second factor of its last product";
}

const char *attention_near_miss(const ir_node *last)
{
    near_search s = {.visits_left = MOST_VISITS};
    const ir_node *softmax = near_is_of_computed(last) ? near_behind(&s, last, 0, NEAR_NOTHING) : NULL;
    return softmax ? near_words(softmax, s.between) : NULL;
}
