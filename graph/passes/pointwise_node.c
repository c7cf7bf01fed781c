/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/pointwise_node.h"

#include "graph/ops/pointwise.h"

static int32_t present_inputs(const ir_node *node)
{
    int32_t n = node->n_in;
    while (n && !node->in[n - 1].value)
        n--;
    return n;
}

static bool has_group_types(const ir_node *node, bool truth)
{
    const ir_type *out = &node->out[0]->type;
    grt_dtype dtype = out->dtype == GRT_DTYPE_BOOL ? GRT_DTYPE_NONE : out->dtype;
    if (out->kind != GRT_KIND_TENSOR || out->rank < 0 || (out->dtype == GRT_DTYPE_BOOL) != truth)
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (!value || value->type.dtype == GRT_DTYPE_BOOL)
            continue;
        if (dtype && value->type.dtype != dtype)
            return false;
        dtype = value->type.dtype;
    }
    return !dtype || grt_dtype_in(dtype, POINTWISE_FLOATS);
}

int32_t pointwise_node_opcode(const ir_node *node)
{
    if (!node->row || !(node->row->flags & OP_POINTWISE) || node->n_out != 1 || !node->out[0] ||
        !ir_in(node, 0))
        return -1;
    const int32_t opcode = grt_pointwise_opcode_of(&node->desc, present_inputs(node));
    return opcode >= 0 && grt_pointwise_info(opcode)->fusible &&
                   has_group_types(node, grt_pointwise_info(opcode)->truth)
               ? opcode
               : -1;
}

bool pointwise_node_is_cast(const ir_node *node)
{
    const ir_value *x = rewrite_is(node, "Cast") ? ir_in(node, 0) : NULL;
    return x && node->out[0]->type.rank >= 0 &&
           grt_dtype_in(x->type.dtype, POINTWISE_FLOATS | GRT_BIT(BOOL)) &&
           grt_dtype_in(node->out[0]->type.dtype, POINTWISE_FLOATS);
}

static bool is_exact_cast(const ir_node *node)
{
    const grt_dtype to = node->out[0]->type.dtype, from = ir_in(node, 0)->type.dtype;
    return to == GRT_DTYPE_FLOAT || to == from || from == GRT_DTYPE_BOOL;
}

bool pointwise_node_may_stay_inside(const ir_node *node)
{
    const ir_value *y = node->out[0];
    if (pointwise_node_is_cast(node) && !is_exact_cast(node))
        return false;
    for (const ir_use *use = y->uses; use && grt_dtype_in(y->type.dtype, POINTWISE_NARROW_FLOATS);
         use = use->next)
        if (pointwise_node_is_cast(use->node))
            return false;
    return true;
}

bool pointwise_node_is_immediate(const ir_value *value, double *out_value)
{
    const grt_tensor *t = value->type.data;
    return t && grt_dtype_in(t->dtype, GRT_SET_FLOATS) && ir_const_float(value, out_value);
}

int64_t pointwise_node_group_of_uses(const ir_value *value)
{
    int64_t found = -1;
    for (const ir_use *use = value->uses; use; use = use->next) {
        if (!use->node || use->graph != value->graph || use->node->mark < 0 ||
            (found >= 0 && use->node->mark != found))
            return -1;
        found = use->node->mark;
    }
    return found;
}
