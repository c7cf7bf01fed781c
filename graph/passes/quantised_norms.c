/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised_norms`: a layer normalisation whose result is quantised writes the 8-bit numbers itself,
 * and its own result only where others read it. What is quantised is the result as it is rounded, so the
 * types must be decided by now. */
#include "graph/passes/quantised.h"

enum { NORM_X, NORM_SCALE, NORM_BIAS, NORM_Y_SCALE, NORM_Y_ZERO, NORM_INPUTS };

/* The normalisation that makes the value and nothing else; NULL: there is none. */
static ir_node *quantised_norms_norm_of(const ir_value *value)
{
    ir_node *node = rewrite_producer(value, "LayerNormalization");
    if (!node)
        node = rewrite_producer(value, "RMSNormalization");
    for (int32_t i = 1; node && i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return NULL;
    return node;
}

static void quantised_norms_join(pass_context *context, ir_node *last)
{
    quantity y;
    ir_node *norm = quantised_norms_norm_of(ir_in(last, 0));
    if (!norm || last->out[0]->n_uses == 0 ||
        !(quantised_read_rounding(last, &y) || quantised_read_float8_rounding(last, &y)))
        return;
    ir_value *in[NORM_INPUTS] = {ir_in(norm, NORM_X), ir_in(norm, NORM_SCALE),
                                 norm->n_in > NORM_BIAS ? ir_in(norm, NORM_BIAS) : NULL, y.scale, y.zero};
    const bool is_read = ir_in(last, 0)->n_uses > 1 || rewrite_is_output(ir_in(last, 0));
    ir_node *made = ir_node_create(norm->graph, norm, "graphrt", "QLayerNormalization", norm->desc.name,
                                   NORM_INPUTS, in, is_read ? 2 : 1);
    if (!made)
        return;
    ir_attrs_copy(made, norm);
    ir_attr_set_int(made, "rms", rewrite_is(norm, "RMSNormalization"));
    if (!quantised_offer(context, made, last->out[0]))
        return;
    if (!rewrite_take_over(last->out[0], made->out[0]) ||
        (is_read && !rewrite_take_over(norm->out[0], made->out[1]))) {
        ir_node_remove(made);
        return;
    }
    context->changed++;
}

static grt_status quantised_norms_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "QuantizeLinear") && node->out[0])
            quantised_norms_join(context, node);
    return GRT_OK;
}

grt_status pass_quantised_norms(pass_context *context)
{
    return rewrite_each_graph(context, quantised_norms_visit);
}
