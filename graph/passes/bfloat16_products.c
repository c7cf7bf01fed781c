/* SPDX-License-Identifier: Apache-2.0 */
/* Products in bfloat16 for targets that gain by them alone (trait bfloat16_products): where the caller asks
 * for precision bf16, products by constant weights round both factors to bfloat16 as they read them and sum
 * in float32, which the attribute math says. Weights are stored in bfloat16 with the plan's packed weights.
 * Values between stay float32, which such a target computes no slower, so that nothing else is rounded; pass
 * `precision` would narrow them. */
#include "graph/passes/rewrite.h"

static bool bfloat16_products_is_float(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.dtype == GRT_DTYPE_FLOAT;
}

/* A product by a constant matrix. */
static bool bfloat16_products_fits(const ir_node *node)
{
    const ir_value *weights = ir_in(node, 1);
    return (rewrite_is(node, "MatMul") || rewrite_is(node, "Gemm") ||
            grt_op_is(&node->desc, "graphrt", "MatMul")) &&
           bfloat16_products_is_float(ir_in(node, 0)) && bfloat16_products_is_float(weights) &&
           weights->type.data && !weights->producer && !weights->is_input && weights->type.rank == 2 &&
           !grt_attr_int(&node->desc, "transA", 0);
}

static grt_status bfloat16_products_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (bfloat16_products_fits(node) && pass_precision_of(context, node) == GRT_PRECISION_BFLOAT16) {
            ir_attr_set_string(node, "math", "bf16");
            context->changed++;
        }
    return GRT_OK;
}

grt_status pass_bfloat16_products(pass_context *context)
{
    if (!context->target->traits->bfloat16_products)
        return GRT_OK;
    context->bfloat16_products = true;
    return rewrite_each_graph(context, bfloat16_products_visit);
}
