/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: convolutions and what surrounds them run with channels last (NHWC, or NLC for one spatial dim),
 * where the target says that this is faster.
 *
 * Nodes are visited in order. A value that was made with channels last is remembered as the `last` twin of
 * the value that it stands for. Convolutions always switch, fetching (or making, by a Transpose) the twins of
 * their inputs; ops that work in either layout switch when their inputs have twins already. What still uses
 * the old value in the end gets it back by a Transpose. Transposes of constants are folded and pairs that
 * cancel are removed by the passes that follow. */
#include "graph/passes/layout.h"

#include <stdlib.h>

static bool switch_node(layout *l, ir_node *node)
{
    static bool (*const switches[N_OP_LAYOUTS])(layout * l, ir_node * node) = {
        [OP_LAYOUT_CONV] = layout_switch_conv,           [OP_LAYOUT_QCONV] = layout_switch_qconv,
        [OP_LAYOUT_PAIR] = layout_switch_pair,           [OP_LAYOUT_SCALED] = layout_switch_scaled,
        [OP_LAYOUT_FIRST] = layout_switch_first,         [OP_LAYOUT_FORM] = layout_switch_form,
        [OP_LAYOUT_CONCAT] = layout_switch_concat,       [OP_LAYOUT_SPLIT] = layout_switch_split,
        [OP_LAYOUT_SLICE] = layout_switch_slice,         [OP_LAYOUT_PAD] = layout_switch_pad,
        [OP_LAYOUT_RESIZE] = layout_switch_resize,       [OP_LAYOUT_REDUCE] = layout_switch_reduction,
        [OP_LAYOUT_TRANSPOSE] = layout_switch_transpose, [OP_LAYOUT_RESHAPE] = layout_switch_reshape,
        [OP_LAYOUT_DEPTH] = layout_switch_depth,         [OP_LAYOUT_ROLL] = layout_switch_roll,
    };
    if (!node->n_out || !node->out[0] || !node->row)
        return false;
    if (node->row->flags & OP_POINTWISE)
        return node->n_out == 1 && layout_switch_pointwise(l, node);
    return node->row->layout && switches[node->row->layout](l, node);
}

/* Old results that are still used come back by a Transpose; the nodes that stood for them go. */
static grt_status layout_finish(layout *l)
{
    IR_FOR_EACH_NODE (node, l->graph) {
        bool replaced = false;
        for (int32_t i = 0; i < node->n_out; i++) {
            ir_value *value = node->out[i];
            if (!layout_has_twin(value) || l->twins[value->mark].old != node)
                continue;
            replaced = true;
            if (!rewrite_is_output(value))
                rewrite_take_name(value, l->twins[value->mark].last);
            if (!value->n_uses)
                continue;
            ir_node *back =
                layout_transpose_before(l, node, l->twins[value->mark].last, node->desc.name, false);
            if (!back)
                return l->status;
            if (!rewrite_replace(value, back->out[0])) /* a new result takes any place */
                return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL,
                                   "layout: the Transpose of '%s' cannot take its place", value->name);
        }
        if (replaced)
            ir_node_remove(node);
    }
    return GRT_OK;
}

static grt_status layout_visit(pass_context *context, ir_graph *graph)
{
    layout l = {.context = context, .graph = graph};
    ir_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph)
        if (l.status == GRT_OK)
            switch_node(&l, node);
    grt_status status = l.status == GRT_OK ? layout_finish(&l) : l.status;
    free(l.twins);
    return status;
}

grt_status pass_layout(pass_context *context)
{
    return context->target->traits->channels_last ? rewrite_each_graph(context, layout_visit) : GRT_OK;
}
