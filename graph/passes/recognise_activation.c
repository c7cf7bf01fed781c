/* SPDX-License-Identifier: Apache-2.0 */
/* GELU, SiLU and HardSwish that are written out. */
#include "graph/passes/recognise.h"

/* Two factors: x, and a value made of x by `op`. */
static bool self_times(const recognise_product *p, const char *op, ir_value **out_x, ir_value **out_inner)
{
    for (int32_t i = 0; i < 2 && p->n == 2; i++) {
        *out_x = p->x[i];
        *out_inner = recognise_input_of(p->x[1 - i], op);
        if (*out_inner)
            return true;
    }
    return false;
}

bool recognise_swish(pass_context *context, ir_node *node, const recognise_product *p)
{
    ir_value *x, *inner;
    recognise_product scaled;
    if (p->constant != 1 || !self_times(p, "Sigmoid", &x, &inner) || !recognise_factors_of(inner, &scaled))
        return false;
    bool plain = inner == x;
    if (!plain && (scaled.n != 1 || scaled.x[0] != x || !ir_is_inner(inner)))
        return false;
    ir_node *made = recognise_unary(node, "Swish", x);
    if (made)
        ir_attr_set_float(made, "alpha", plain ? 1 : (float)scaled.constant);
    return recognise_put(context, node, made);
}

bool recognise_hard_swish(pass_context *context, ir_node *node, const recognise_product *p)
{
    ir_value *x, *inner;
    if (p->constant != 1 || !self_times(p, "HardSigmoid", &x, &inner) || inner != x)
        return false;
    const ir_node *sigmoid = p->x[0] == x ? p->x[1]->producer : p->x[0]->producer;
    if (!recognise_is_near((double)grt_attr_float(&sigmoid->desc, "alpha", 0.2f), 1.0 / 6) ||
        !recognise_is_near((double)grt_attr_float(&sigmoid->desc, "beta", 0.5f), 0.5))
        return false;
    return recognise_put(context, node, recognise_unary(node, "HardSwish", x));
}

/* erf's argument: x / sqrt(2) */
static bool is_erf_argument(ir_value *value, const ir_value *x)
{
    recognise_product p;
    return recognise_factors_of(value, &p) && p.n == 1 && p.x[0] == x &&
           recognise_has_constant(&p, 0.70710678);
}

/* tanh's argument: sqrt(2 / pi) * (x + 0.044715 x^3), or with x taken out */
static bool is_tanh_argument(ir_value *value, const ir_value *x)
{
    recognise_product p, cube;
    if (!recognise_factors_of(value, &p) || !recognise_has_constant(&p, 0.79788456))
        return false;
    if (p.n == 2) { /* x * (1 + 0.044715 x^2) */
        for (int32_t i = 0; i < 2; i++) {
            ir_value *square = recognise_plus_constant(p.x[1 - i], 1);
            if (p.x[i] == x && square && recognise_factors_of(square, &cube) && cube.n == 2 &&
                cube.x[0] == x && cube.x[1] == x)
                return recognise_has_constant(&cube, 0.044715);
        }
        return false;
    }
    ir_node *add = p.n == 1 && ir_is_inner(p.x[0]) ? rewrite_producer(p.x[0], "Add") : NULL;
    for (int32_t i = 0; add && i < 2; i++)
        if (ir_in(add, i) == x && recognise_factors_of(ir_in(add, 1 - i), &cube) && cube.n == 3 &&
            cube.x[0] == x && cube.x[1] == x && cube.x[2] == x)
            return recognise_has_constant(&cube, 0.044715);
    return false;
}

bool recognise_gelu(pass_context *context, ir_node *node, const recognise_product *p)
{
    for (int32_t i = 0; i < 2 && p->n == 2 && recognise_is_near(p->constant, 0.5); i++) {
        ir_value *x = p->x[i], *f = recognise_plus_constant(p->x[1 - i], 1);
        ir_value *erf = f ? recognise_input_of(f, "Erf") : NULL,
                 *tanh = f ? recognise_input_of(f, "Tanh") : NULL;
        bool exact = erf && is_erf_argument(erf, x);
        if (!exact && !(tanh && is_tanh_argument(tanh, x)))
            continue;
        ir_node *made = recognise_unary(node, "Gelu", x);
        if (made)
            ir_attr_set_string(made, "approximate", exact ? "none" : "tanh");
        return recognise_put(context, node, made);
    }
    return false;
}
