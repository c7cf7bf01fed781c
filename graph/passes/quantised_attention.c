/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised_attention`: attention whose result is quantised, and read by nothing else, writes the 8-bit
 * numbers itself. What is quantised is the result as it is rounded, so the types must be decided by now. */
#include "graph/passes/quantised.h"

enum { ATTENDED = 7, Y_SCALE = ATTENDED, Y_ZERO, INPUTS };

/* The attention that makes the value and nothing else; NULL: there is none. */
static ir_node *quantised_attention_of(const ir_value *value)
{
    ir_node *node = value->producer;
    if (!node || node->out[0] != value || value->n_uses != 1 || rewrite_is_output(value) ||
        !(rewrite_is(node, "Attention") || grt_op_is(&node->desc, "graphrt", "Attention")))
        return NULL;
    for (int32_t i = 1; i < node->n_out; i++)
        if (node->out[i] && (node->out[i]->n_uses || rewrite_is_output(node->out[i])))
            return NULL;
    return node->n_in <= ATTENDED ? node : NULL;
}

static void quantised_attention_join(pass_context *context, ir_node *last)
{
    quantity y;
    ir_node *attention = ir_in(last, 0) ? quantised_attention_of(ir_in(last, 0)) : NULL;
    if (!attention || last->out[0]->n_uses == 0 ||
        !(quantised_read_rounding(last, &y) || quantised_read_float8_rounding(last, &y)))
        return;
    ir_value *in[INPUTS] = {NULL};
    for (int32_t i = 0; i < attention->n_in; i++)
        in[i] = ir_in(attention, i);
    in[Y_SCALE] = y.scale;
    in[Y_ZERO] = y.zero;
    ir_node *made = ir_node_create(attention->graph, attention, "graphrt", "QAttention", attention->desc.name,
                                   INPUTS, in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, attention);
    ir_attr_set_int(made, "joined", grt_op_is(&attention->desc, "graphrt", "Attention"));
    if (!quantised_offer(context, made, last->out[0]))
        return;
    if (!rewrite_take_over(last->out[0], made->out[0])) {
        ir_node_remove(made);
        return;
    }
    context->changed++;
}

static grt_status quantised_attention_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "QuantizeLinear") && node->out[0])
            quantised_attention_join(context, node);
    return GRT_OK;
}

grt_status pass_quantised_attention(pass_context *context)
{
    return rewrite_each_graph(context, quantised_attention_visit);
}
