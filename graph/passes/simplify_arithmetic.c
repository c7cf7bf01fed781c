/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic by a cheaper op, or by the op that other passes look for. */
#include "graph/passes/simplify.h"

/* Passes that look for additions look for Add. */
bool simplify_sum(simplify_work *w, ir_node *node)
{
    if (node->n_in != 2)
        return false;
    ir_node_become(node, "", "Add");
    return simplify_changed(w, node);
}

bool simplify_div(simplify_work *w, ir_node *node)
{
    double one;
    if (!grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS) || !ir_const_float(ir_in(node, 0), &one) ||
        one != 1 || !simplify_keeps_shape(node, 1))
        return false;
    ir_value *x = ir_in(node, 1);
    ir_node_become(node, "", "Reciprocal");
    ir_node_set_input(node, 0, x);
    ir_node_drop_inputs(node, 1);
    return simplify_changed(w, node);
}

bool simplify_pow(simplify_work *w, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    double exponent;
    if (!x || !grt_dtype_in(x->type.dtype, GRT_SET_FLOATS) || !ir_const_float(ir_in(node, 1), &exponent) ||
        !simplify_keeps_shape(node, 0))
        return false;
    if (exponent == 1)
        return simplify_becomes(w, node, x);
    if (exponent == 2) {
        ir_node_become(node, "", "Mul");
        ir_node_set_input(node, 1, x);
    } else if (exponent == 3 && !w->context->exact) { /* two roundings for one */
        ir_node *square =
            ir_node_create(node->graph, node, "", "Mul", node->desc.name, 2, (ir_value *[]){x, x}, 1);
        if (!square || op_infer_node(square) != GRT_OK)
            return false;
        ir_node_become(node, "", "Mul");
        ir_node_set_input(node, 1, square->out[0]);
    } else if (exponent == 0.5 || exponent == -1) {
        ir_node_become(node, "", exponent == 0.5 ? "Sqrt" : "Reciprocal");
        ir_node_drop_inputs(node, 1);
    } else {
        return false;
    }
    return simplify_changed(w, node);
}
