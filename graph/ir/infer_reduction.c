/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of a scalar over its axis 0 or -1. It has no axes; what is meant is all of it, as other runtimes
 * take it. */
#include "graph/ir/infer.h"

#include "src/base/tensor.h"

static bool names_first_axis(const grt_tensor *axes)
{
    if (!axes || !axes->data || grt_tensor_elements(axes) < 1)
        return false;
    for (int64_t i = 0; i < grt_tensor_elements(axes); i++)
        if (grt_tensor_int(axes, i) != 0 && grt_tensor_int(axes, i) != -1)
            return false;
    return true;
}

grt_status infer_reduction(ir_node *node)
{
    ir_value *data = ir_in(node, 0), *axes = ir_in(node, 1);
    if (!node->row || !(node->row->flags & OP_REDUCES) || !data || data->type.rank != 0 || !axes ||
        !names_first_axis(axes->type.data))
        return GRT_OK;
    GRT_TRY(ir_warn(node->graph->module, node,
                    "reduces axis %lld of a scalar, which has none; all of it was taken",
                    (long long)grt_tensor_int(axes->type.data, 0)));
    ir_node_set_input(node, 1, NULL);
    ir_attr_set_int(node, "noop_with_empty_axes", 0);
    return GRT_OK;
}
