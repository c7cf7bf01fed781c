/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `unsigned_windows`: int8 numbers whose zero point is the least of them, as quantisers choose it behind
 * Relu, become uint8 with zero point 0 where a convolution's windows see them, and what is outside of images.
 * The levels are the same. For devices with memory of their own, whose copies fill windows with zeros
 * at no cost. */
#include "graph/passes/quantised.h"

static bool is_least(const ir_value *zero)
{
    return zero && zero->type.data && zero->type.dtype == GRT_DTYPE_INT8 &&
           grt_tensor_elements(zero->type.data) == 1 && *(const int8_t *)zero->type.data->data == INT8_MIN;
}

/* The zero point of a product's result; -1: it is not quantised, or a table's. */
static int32_t zero_of_result(const ir_node *node)
{
    return node->n_in > QP_TABLE && ir_in(node, QP_TABLE)          ? -1
           : node->n_in > QP_SUM_ZERO && ir_in(node, QP_SUM_SCALE) ? QP_SUM_ZERO
           : node->n_in > QP_Y_ZERO && ir_in(node, QP_Y_SCALE)     ? QP_Y_ZERO
                                                                   : -1;
}

/* The zero point of the tensor that a product reads as input `index`; -1: it is no such tensor. */
static int32_t zero_of_input(const ir_use *use)
{
    if (!use->node || !quantised_is_product(use->node) || use->node->graph != use->value->graph)
        return -1;
    return use->index == QP_X ? QP_X_ZERO : use->index == QP_RESIDUAL ? QP_R_ZERO : -1;
}

static bool sees_outside(const ir_use *use)
{
    size_t n;
    const int64_t *pads = grt_attr_ints(&use->node->desc, "pads", &n);
    bool any = false;
    for (size_t i = 0; pads && i < n; i++)
        any |= pads[i] != 0;
    return any && use->index == QP_X;
}

/* True if all that make and read the value are products, and windows are among them. */
static bool may_be_unsigned(const ir_value *value)
{
    bool windows = false;
    const ir_node *from = value->producer;
    const int32_t zero = from && quantised_is_product(from) ? zero_of_result(from) : -1;
    if (zero < 0 || !is_least(ir_in(from, zero)) || rewrite_is_output(value))
        return false;
    for (const ir_use *use = value->uses; use; use = use->next) {
        const int32_t at = zero_of_input(use);
        if (at < 0 || !is_least(ir_in(use->node, at)))
            return false;
        windows |= sees_outside(use);
    }
    return windows;
}

/* Gives the value's product and readers this zero point; false if one of them has no kernel for it. */
static bool set_zeros(pass_context *context, ir_value *value, ir_value *zero)
{
    ir_node *from = value->producer;
    ir_node_set_input(from, zero_of_result(from), zero);
    bool fits = op_infer_node(from) == GRT_OK && rewrite_supported(context, from, NULL);
    for (ir_use *use = value->uses; use; use = use->next) {
        ir_node_set_input(use->node, zero_of_input(use), zero);
        fits = fits && op_infer_node(use->node) == GRT_OK && rewrite_supported(context, use->node, NULL);
    }
    return fits;
}

static grt_status unsigned_windows_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        ir_value *value = node->n_out == 1 ? node->out[0] : NULL;
        if (!value || !value->n_uses || !may_be_unsigned(value))
            continue;
        ir_value *was = ir_in(node, zero_of_result(node)), *zero = quantised_zero(graph, GRT_DTYPE_UINT8);
        if (!zero || !set_zeros(context, value, zero)) {
            set_zeros(context, value, was);
            continue;
        }
        ir_value_forget_name(value);
        context->changed++;
    }
    return GRT_OK;
}

grt_status pass_unsigned_windows(pass_context *context)
{
    return context->target->traits->own_memory ? rewrite_each_graph(context, unsigned_windows_visit) : GRT_OK;
}
