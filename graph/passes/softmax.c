/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax that is written out, as models that come from JAX have it, or authors who guard against overflow
 * themselves:
 *
 *   e = Exp(x - ReduceMax(x)); e / ReduceSum(e)
 *
 * along one axis, becomes one node; so does it without the maximum, where only sums that overflow or vanish
 * differ. A maximum along the axis that is subtracted in front of a Softmax is dropped, as it cancels.
 * Reductions may have kept their axis, have got it back by a view, or be expanded. */
#include "graph/passes/rewrite.h"

/* The axis of a reduction along a single one; -1 if it is none. */
static int64_t softmax_reduced_axis(const ir_node *node)
{
    const int64_t *axes;
    int64_t n;
    const ir_value *x = ir_in(node, 0);
    return x && ir_const_ints(ir_in(node, 1), &axes, &n) && n == 1 ? grt_axis(axes[0], x->type.rank) : -1;
}

/* True if the value has the dims of x, but 1 along the axis. */
static bool softmax_is_strip(const ir_value *value, const ir_value *x, int64_t axis)
{
    const ir_type *a = &value->type, *b = &x->type;
    bool same = a->rank == b->rank;
    for (int32_t i = 0; i < b->rank && same; i++)
        same = i == axis ? grt_dim_equals(x->graph->module->dims, a->dims[i], 1) : a->dims[i] == b->dims[i];
    return same;
}

/* The axis along which `op` makes the value of x; -1 if it does not. */
static int64_t softmax_reduction(const ir_value *value, const char *op, const ir_value *x)
{
    const ir_value *strip = value;
    if (rewrite_is(strip->producer, "Expand") && rewrite_same_shape(&strip->type, &x->type))
        strip = ir_in(strip->producer, 0);
    const ir_value *made = strip;
    if (rewrite_is_reshape(made->producer))
        made = ir_in(made->producer, 0);
    const ir_node *node = made ? rewrite_producer(made, op) : NULL;
    const int64_t axis = node && ir_in(node, 0) == x ? softmax_reduced_axis(node) : -1;
    return axis >= 0 && softmax_is_strip(strip, x, axis) ? axis : -1;
}

/* x of x - max(x) along the axis. */
static ir_value *softmax_unshifted(ir_value *value, int64_t axis)
{
    const ir_node *sub = rewrite_producer(value, "Sub");
    ir_value *x = sub ? ir_in(sub, 0) : NULL;
    return x && ir_in(sub, 1) && softmax_reduction(ir_in(sub, 1), "ReduceMax", x) == axis ? x : NULL;
}

/* e and what it is divided by: e / s, or e * (1 / s). */
static bool softmax_quotient(const ir_node *node, ir_value **out_e, ir_value **out_s)
{
    if (rewrite_is(node, "Div")) {
        *out_e = ir_in(node, 0), *out_s = ir_in(node, 1);
        return *out_e && *out_s;
    }
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Mul"); i++) {
        const ir_node *inverse = ir_in(node, i) ? rewrite_producer(ir_in(node, i), "Reciprocal") : NULL;
        if (inverse && ir_in(node, i)->n_uses == 1) {
            *out_e = ir_in(node, 1 - i), *out_s = ir_in(inverse, 0);
            return *out_e && *out_s;
        }
    }
    return false;
}

static void find_softmax(pass_context *context, ir_node *node)
{
    ir_value *e, *s;
    if (!softmax_quotient(node, &e, &s) || e->n_uses != 2)
        return;
    const ir_node *exponential = rewrite_producer(e, "Exp");
    const int64_t axis = exponential ? softmax_reduction(s, "ReduceSum", e) : -1;
    if (axis < 0)
        return;
    ir_value *scores = ir_in(exponential, 0), *x = softmax_unshifted(scores, axis);
    ir_node *made = ir_node_create(node->graph, node, "", "Softmax", node->desc.name, 1,
                                   (ir_value *[]){x ? x : scores}, 1);
    if (!made)
        return;
    ir_attr_set_int(made, "axis", axis);
    if (op_infer_node(made) == GRT_OK && rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) &&
        rewrite_supported(context, made, NULL) && rewrite_replace(node->out[0], made->out[0])) {
        ir_node_remove(node);
        context->changed++;
        return;
    }
    ir_node_remove(made);
}

static void drop_shift(pass_context *context, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    const int64_t axis =
        x && x->type.rank > 0 ? grt_axis(grt_attr_int(&node->desc, "axis", -1), x->type.rank) : -1;
    x = axis >= 0 ? softmax_unshifted(x, axis) : NULL;
    if (!x)
        return;
    ir_node_set_input(node, 0, x);
    context->changed++;
}

static void softmax_visit(pass_context *context, ir_node *node)
{
    if (rewrite_is(node, "Softmax"))
        drop_shift(context, node);
    else if (rewrite_is(node, "Div") || rewrite_is(node, "Mul"))
        find_softmax(context, node);
}

grt_status pass_softmax(pass_context *context)
{
    return rewrite_each_node(context, softmax_visit);
}
