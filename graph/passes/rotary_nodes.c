/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/rotary_nodes.h"
#include "graph/ir/constant.h"

ir_node *rotary_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    return ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
}

ir_node *rotary_reshape(ir_node *before, ir_value *x, const int64_t *shape, int64_t n)
{
    ir_value *constant = ir_constant_ints(before->graph, before->desc.name, shape, n);
    ir_node *node = constant ? rotary_add_node(before, "Reshape", 2, (ir_value *[]){x, constant}) : NULL;
    return node && op_infer_node(node) == GRT_OK ? node : NULL;
}

ir_value *rotary_exchanged(ir_node *before, ir_value *x)
{
    ir_node *back = rotary_add_node(before, "Transpose", 1, &x);
    if (!back)
        return NULL;
    ir_attr_set_ints(back, "perm", (int64_t[]){0, 2, 1, 3}, 4);
    return op_infer_node(back) == GRT_OK ? back->out[0] : NULL;
}

bool rotary_widen(ir_node *rotary)
{
    bool done;
    ir_node *last = rotary->prev;
    if (rotary->row->expand(rotary, &done) != GRT_OK)
        return false;
    for (ir_node *node = last ? last->next : rotary->graph->first; node != rotary; node = node->next)
        if (op_infer_node(node) != GRT_OK)
            return false;
    return true;
}
