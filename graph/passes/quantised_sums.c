/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: products and convolutions that add a residual to their rounded result, for targets whose
 * steps do; of products of matrices a constant row, too, as a bias that a quantiser put behind a rounding.
 * The model's rounding between the two stays, so the results are the same. */
#include "graph/passes/quantised.h"

#include <string.h>

/* Inputs of graphrt::QAdd. */
enum { A, B = 3, SUM_SCALE = 6, SUM_ZERO };

/* The product that makes `value` for the sum alone; NULL: there is none. In a body that is run many times it
 * would be made as often. */
static ir_node *quantised_sums_product_of(const ir_node *sum, const ir_value *value)
{
    ir_node *node = value ? value->producer : NULL;
    if (!node || value->n_uses != 1 || node->graph != sum->graph || !quantised_is_product(node))
        return NULL;
    return ir_in(node, QP_Y_SCALE) && !ir_in(node, QP_RESIDUAL) && !ir_in(node, QP_TABLE) ? node : NULL;
}

/* True of what has a constant for each column of a product, the same in all rows. */
static bool is_row_of(const ir_value *row, const ir_value *product)
{
    const grt_tensor *data = row->type.data;
    const ir_type *y = &product->type;
    int64_t columns;
    return data && y->rank > 0 && row->type.rank > 0 && row->type.rank <= y->rank &&
           grt_dim_is_const(product->graph->module->dims, y->dims[y->rank - 1], &columns) &&
           data->dims[data->rank - 1] == columns && grt_tensor_elements(data) == columns;
}

static void copy_activation(ir_node *to, const ir_node *sum)
{
    const char *name = grt_attr_string(&sum->desc, "activation", "");
    if (!*name)
        return;
    ir_attr_set_string(to, "sum_activation", name);
    ir_attr_set_float(to, "sum_alpha", grt_attr_float(&sum->desc, "alpha", 0));
    ir_attr_set_float(to, "sum_beta", grt_attr_float(&sum->desc, "beta", 0));
}

/* Does the product whose result is input `at` of the sum take the sum over? */
static bool take_sum(pass_context *context, ir_node *sum, int32_t at)
{
    const int32_t other = at == A ? B : A;
    ir_node *product = quantised_sums_product_of(sum, ir_in(sum, at));
    ir_value *in[QP_INPUTS] = {NULL};
    if (!product)
        return false;
    const bool same = rewrite_same_shape(&ir_in(sum, A)->type, &ir_in(sum, B)->type);
    if (!same && (strcmp(product->desc.op, "QMatMul") != 0 || !is_row_of(ir_in(sum, other), ir_in(sum, at))))
        return false;
    for (int32_t i = 0; i <= QP_BIAS; i++)
        in[i] = ir_in(product, i);
    for (int32_t i = 0; i < B - A; i++)
        in[QP_RESIDUAL + i] = ir_in(sum, other + i);
    in[QP_SUM_SCALE] = ir_in(sum, SUM_SCALE);
    in[QP_SUM_ZERO] = ir_in(sum, SUM_ZERO);
    ir_node *made =
        ir_node_create(sum->graph, sum, "graphrt", product->desc.op, product->desc.name, QP_INPUTS, in, 1);
    if (!made)
        return false;
    ir_attrs_copy(made, product);
    copy_activation(made, sum);
    if (!quantised_offer(context, made, sum->out[0]))
        return false;
    if (!rewrite_take_over(sum->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    context->changed++;
    return true;
}

grt_status quantised_sums(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (!strcmp(node->desc.domain, "graphrt") && !strcmp(node->desc.op, "QAdd") && node->out[0]->n_uses &&
            !take_sum(context, node, A))
            take_sum(context, node, B);
    return GRT_OK;
}
