/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/recognise.h"
#include "graph/ir/constant.h"

#include "src/base/float.h"

#include <math.h>

static void take_constant(recognise_product *p, const ir_value *value, double factor)
{
    if (grt_dtype_in(value->type.dtype, GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)))
        p->narrow = value->type.dtype;
    p->constant *= factor;
}

static bool collect_factors(ir_value *value, bool root, recognise_product *p)
{
    double c;
    ir_node *node = value->producer;
    if (ir_const_float(value, &c)) {
        take_constant(p, value, c);
        return true;
    }
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Mul") && ir_in(node, 0) != ir_in(node, 1))
        return collect_factors(ir_in(node, 0), false, p) && collect_factors(ir_in(node, 1), false, p);
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Mul") && ir_in(node, 0) == ir_in(node, 1) &&
        p->n + 2 <= RECOGNISE_FACTORS) {
        p->x[p->n++] = ir_in(node, 0);
        p->x[p->n++] = ir_in(node, 0);
        return true;
    }
    if (node && (root || ir_is_inner(value)) && rewrite_is(node, "Div") &&
        ir_const_float(ir_in(node, 1), &c)) {
        take_constant(p, ir_in(node, 1), 1 / c);
        return collect_factors(ir_in(node, 0), false, p);
    }
    if (p->n == RECOGNISE_FACTORS)
        return false;
    p->x[p->n++] = value;
    return true;
}

bool recognise_factors_of(ir_value *value, recognise_product *p)
{
    *p = (recognise_product){.constant = 1};
    return value && collect_factors(value, true, p);
}

bool recognise_is_near(double found, double expected)
{
    return fabs(found - expected) <= 1e-4 * fabs(expected);
}

static float narrowed(grt_dtype dtype, double x)
{
    return dtype == GRT_DTYPE_FLOAT16 ? grt_half_to_float(grt_float_to_half((float)x))
                                      : grt_bfloat16_to_float(grt_float_to_bfloat16((float)x));
}

bool recognise_has_constant(const recognise_product *p, double expected)
{
    if (recognise_is_near(p->constant, expected))
        return true;
    return p->narrow && ((float)p->constant == narrowed(p->narrow, expected) ||
                         (float)(1 / p->constant) == narrowed(p->narrow, 1 / expected));
}

ir_value *recognise_plus_constant(const ir_value *value, double expected)
{
    double c;
    ir_node *add = rewrite_producer(value, "Add");
    if (!add || !ir_is_inner(value))
        return NULL;
    for (int32_t i = 0; i < 2; i++)
        if (ir_const_float(ir_in(add, i), &c) && recognise_is_near(c, expected))
            return ir_in(add, 1 - i);
    return NULL;
}

ir_value *recognise_input_of(const ir_value *value, const char *op)
{
    ir_node *node = ir_is_inner(value) ? rewrite_producer(value, op) : NULL;
    return node ? ir_in(node, 0) : NULL;
}

bool recognise_put(pass_context *context, ir_node *node, ir_node *made)
{
    if (!made)
        return false;
    if (op_infer_node(made) != GRT_OK || !rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) ||
        made->out[0]->type.dtype != node->out[0]->type.dtype || !rewrite_supported(context, made, NULL) ||
        !rewrite_take_over(node->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    ir_node_remove(node);
    context->changed++;
    return true;
}

ir_node *recognise_unary(ir_node *node, const char *op, ir_value *x)
{
    return ir_node_create(node->graph, node, "", op, node->desc.name, 1, &x, 1);
}
