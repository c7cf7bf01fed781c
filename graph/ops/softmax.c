/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax. */
#include "graph/ir/ir.h"

static grt_status infer_softmax(infer *inf)
{
    int32_t axis;
    if (inf->in[0]->rank > 0)
        GRT_TRY(
            infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), inf->in[0]->rank, &axis));
    return infer_same_as_first(inf);
}

/* Before version 13 all dims from `axis` on were normalised together, as one: flatten, normalise the rows,
 * put the dims back. */
static grt_status upgrade_softmax(ir_node *node, int32_t opset)
{
    (void)opset;
    const int64_t axis = grt_attr_int(&node->desc, "axis", 1);
    ir_value *x = ir_in(node, 0);
    ir_attr_set_int(node, "axis", -1);
    if (!x || axis == -1 || (x->type.rank > 0 && grt_axis(axis, x->type.rank) == x->type.rank - 1))
        return GRT_OK;
    ir_graph *graph = node->graph;
    ir_node *shape = ir_node_create(graph, node, "", "Shape", node->desc.name, 1, &x, 1);
    ir_node *flat = ir_node_create(graph, node, "", "Flatten", node->desc.name, 1, &x, 1);
    if (!shape || !flat)
        return grt_fail_memory(0);
    ir_attr_set_int(flat, "axis", axis);
    ir_node_set_input(node, 0, flat->out[0]);
    /* The source's name stays with the final result; the node makes a fresh value from here on. */
    ir_value *result = node->out[0];
    ir_value *dims[] = {NULL, shape->out[0]};
    ir_node *back = ir_node_create(graph, node->next, "", "Reshape", node->desc.name, 2, dims, 1);
    if (!back)
        return grt_fail_memory(0);
    /* Exchange the two nodes' outputs. */
    ir_value *rows = back->out[0];
    node->out[0] = rows;
    rows->producer = node;
    back->out[0] = result;
    result->producer = back;
    ir_attr_set_int(back, "allowzero", 1);
    ir_node_set_input(back, 0, rows);
    return GRT_OK;
}

static const op_attr attrs[] = {{"axis", GRT_ATTR_INT, false}, {NULL, 0, false}};

#define ROW(op, conduct)                                                                             \
    {                                                                                                \
        .domain = "", .name = op, .since = 13, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, \
        .attrs = attrs, .precision = conduct, .batch = OP_BATCH_AXIS, .cost = OP_COST_COMPUTE,       \
        .infer = infer_softmax, .upgrade = upgrade_softmax                                           \
    }

static const op_row rows[] = {ROW("Softmax", OP_FOLLOWS), ROW("LogSoftmax", OP_WIDE)};
OP_TABLE(softmax, rows);
