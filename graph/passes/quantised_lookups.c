/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised_epilogues`: products whose rounded results are looked up in a table, for targets whose
 * steps do. GELU behind a projection is such a table (quantised_tables.c). */
#include "graph/passes/quantised.h"

/* The product by constant weights that makes `value` for the table alone; NULL: there is none. */
static ir_node *looked_up_product(const ir_node *table, const ir_value *value)
{
    ir_node *node = value->producer;
    if (!node || node->graph != table->graph || rewrite_only_user(value) != table ||
        !grt_op_is(&node->desc, "graphrt", "QMatMul"))
        return NULL;
    return ir_in(node, QP_W)->type.data && ir_in(node, QP_Y_SCALE) && !ir_in(node, QP_TABLE) ? node : NULL;
}

static void take_table(pass_context *context, ir_node *table)
{
    ir_value *in[QP_INPUTS] = {NULL};
    ir_node *product = ir_in(table, 1)->type.data ? looked_up_product(table, ir_in(table, 0)) : NULL;
    if (!product)
        return;
    for (int32_t i = 0; i < QP_TABLE; i++)
        in[i] = ir_in(product, i);
    in[QP_TABLE] = ir_in(table, 1);
    ir_node *made =
        ir_node_create(table->graph, table, "graphrt", "QMatMul", product->desc.name, QP_INPUTS, in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, product);
    if (!quantised_offer(context, made, table->out[0]))
        return;
    if (rewrite_take_over(table->out[0], made->out[0]))
        context->changed++;
    else
        ir_node_remove(made);
}

grt_status quantised_lookups(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0] && node->out[0]->n_uses &&
            grt_op_is(&node->desc, "graphrt", "QTable"))
            take_table(context, node);
    return GRT_OK;
}
