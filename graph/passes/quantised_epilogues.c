/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised_epilogues`: an activation between a product of 8-bit numbers and QuantizeLinear becomes
 * part of the product's step, and so does what is added to a product that is not quantised, for targets whose
 * steps do that. It runs when activations that were written out have been found. */
#include "graph/passes/quantised.h"

#include "graph/ops/pointwise.h"
#include "src/base/activation.h"

#include <string.h>

static bool is_open_product(const ir_node *node)
{
    return quantised_is_product(node) && node->out[0]->n_uses && !ir_in(node, QP_Y_SCALE) &&
           !*grt_attr_string(&node->desc, "activation", "");
}

/* What the attribute says for a function of one input; NULL: no step applies it. */
static const char *quantised_epilogue_activation_of(const ir_node *node, float *params)
{
    const int32_t function = node && node->n_in == 1 ? grt_pointwise_function_of(&node->desc) : -1;
    const char *name = function < 0 ? NULL : grt_act_name_of(function);
    if (name)
        grt_pointwise_params(&node->desc, function, params);
    return name;
}

static void take_activation(pass_context *context, ir_node *product)
{
    float params[PW_MAX_PARAMS] = {0};
    ir_value *in[QP_INPUTS] = {NULL};
    ir_node *act = rewrite_only_user(product->out[0]);
    const char *name = quantised_epilogue_activation_of(act, params);
    ir_node *last = name ? rewrite_only_user(act->out[0]) : NULL;
    quantity y;
    if (!last || ir_in(last, 0) != act->out[0] ||
        !(quantised_read_target(last, &y) || quantised_read_float8_rounding(last, &y)))
        return;
    for (int32_t i = 0; i <= QP_BIAS; i++)
        in[i] = ir_in(product, i);
    in[QP_Y_SCALE] = y.scale;
    in[QP_Y_ZERO] = y.zero;
    ir_node *made = ir_node_create(product->graph, last, "graphrt", product->desc.op, product->desc.name,
                                   QP_BIAS + 1, in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, product);
    ir_attr_set_string(made, "activation", name);
    ir_attr_set_float(made, "alpha", params[0]);
    ir_attr_set_float(made, "beta", params[1]);
    if (!quantised_offer(context, made, last->out[0]))
        return;
    if (rewrite_take_over(last->out[0], made->out[0]))
        context->changed++;
    else
        ir_node_remove(made);
}

/* The product that makes input i of the sum, for it alone, and adds nothing yet; NULL: there is none. */
static ir_node *summand_of(const ir_node *add, int32_t i)
{
    ir_node *node = ir_in(add, i)->producer;
    if (!node || node->graph != add->graph || rewrite_only_user(ir_in(add, i)) != add ||
        !is_open_product(node) || strcmp(node->desc.op, "QMatMul") != 0 || ir_in(node, QP_RESIDUAL))
        return NULL;
    return node;
}

static bool quantised_epilogue_take_residual(pass_context *context, ir_node *add, int32_t i)
{
    ir_value *in[QP_RESIDUAL + 1] = {NULL}, *other = ir_in(add, 1 - i);
    ir_node *product = summand_of(add, i);
    if (!product || other->type.data || !rewrite_same_shape(&other->type, &product->out[0]->type))
        return false;
    for (int32_t k = 0; k <= QP_BIAS; k++)
        in[k] = ir_in(product, k);
    in[QP_RESIDUAL] = other;
    ir_node *made =
        ir_node_create(add->graph, add, "graphrt", "QMatMul", product->desc.name, QP_RESIDUAL + 1, in, 1);
    if (!made)
        return false;
    ir_attrs_copy(made, product);
    if (!quantised_offer(context, made, add->out[0]))
        return false;
    if (rewrite_take_over(add->out[0], made->out[0])) {
        context->changed++;
        return true;
    }
    ir_node_remove(made);
    return false;
}

static grt_status quantised_epilogue_take_followers(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0] && is_open_product(node))
            take_activation(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "Add") && node->out[0]->n_uses &&
            !quantised_epilogue_take_residual(context, node, 0))
            quantised_epilogue_take_residual(context, node, 1);
    GRT_TRY(quantised_sums(context, graph)); /* those that a Reshape parted from their product until now */
    return quantised_lookups(context, graph);
}

grt_status pass_quantised_epilogues(pass_context *context)
{
    return rewrite_each_graph(context, quantised_epilogue_take_followers);
}
