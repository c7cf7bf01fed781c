/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/quotients.h"

#include "graph/passes/rewrite.h"

enum { MOST_STEPS = 8, MOST_VISITS = 64 };

/* Convolutions and recurrences read their second input again and again: they are none. */
static bool is_computed_product(const ir_node *node)
{
    return node && node->row && (node->row->flags & (OP_TF32 | OP_FILTERS)) == OP_TF32 && node->n_out == 1 &&
           node->out[0] && node->n_in >= 2 && ir_in(node, 0) && ir_in(node, 1) &&
           !ir_in(node, 0)->type.data && !ir_in(node, 1)->type.data;
}

/* Input 0 moved, or with a constant added or multiplied. */
static bool keeps_magnitude(const ir_node *node)
{
    if (!node->row || !ir_in(node, 0))
        return false;
    if ((node->row->flags & (OP_VIEW | OP_PARTS | OP_PICKS)) || node->row->cost == OP_COST_MOVE)
        return true;
    return (node->row->flags & OP_POINTWISE) && node->n_in == 2 && ir_in(node, 1) &&
           ir_in(node, 1)->type.data;
}

static bool comes_from_product(const ir_value *value)
{
    for (int32_t i = 0; i < MOST_STEPS && value && value->producer; i++) {
        if (is_computed_product(value->producer))
            return true;
        if (!keeps_magnitude(value->producer))
            return false;
        value = ir_in(value->producer, 0);
    }
    return false;
}

/* factors: products that may still lie between the value and the quotient. */
static bool is_divided(const ir_value *value, int32_t factors, int32_t steps, int32_t *visits_left)
{
    for (const ir_use *use = value->uses; use && *visits_left > 0; use = use->next) {
        const ir_node *node = use->node;
        --*visits_left;
        if (!node || node->n_out < 1)
            continue;
        if (rewrite_is(node, "Div") && comes_from_product(ir_in(node, 0)) &&
            comes_from_product(ir_in(node, 1)))
            return true;
        const bool moved = use->index == 0 && steps > 0 && keeps_magnitude(node),
                   multiplied = factors > 0 && is_computed_product(node);
        for (int32_t i = 0; (moved || multiplied) && i < node->n_out; i++)
            if (node->out[i] && is_divided(node->out[i], factors - (multiplied ? 1 : 0),
                                           moved ? steps - 1 : MOST_STEPS, visits_left))
                return true;
    }
    return false;
}

bool quotients_has_part(const ir_node *product)
{
    int32_t visits_left = MOST_VISITS;
    return is_computed_product(product) && is_divided(product->out[0], 1, MOST_STEPS, &visits_left);
}
