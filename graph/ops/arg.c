/* SPDX-License-Identifier: Apache-2.0 */
/* The place of the largest or smallest along an axis: ArgMax, ArgMin, Hardmax. */
#include "graph/ops/moves.h"
#include <string.h>

static grt_status infer_arg(infer *inf)
{
    const ir_type *data = inf->in[0];
    bool keep = grt_attr_int(inf->desc, "keepdims", 1) != 0;
    int32_t axis;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, GRT_DTYPE_INT64);
        return GRT_OK;
    }
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), data->rank, &axis));
    grt_dim *dims = infer_dims(inf, data->rank);
    int32_t rank = 0;
    int64_t size;
    if (infer_const(inf, data->dims[axis], &size) && size == 0)
        return infer_fail(inf, "axis %d has size 0: there is no index to name", axis);
    for (int32_t k = 0; dims && k < data->rank; k++)
        if (k != axis)
            dims[rank++] = data->dims[k];
        else if (keep)
            dims[rank++] = grt_dim_const(inf->dims, 1);
    infer_set(inf, 0, GRT_DTYPE_INT64, rank, dims);
    return GRT_OK;
}

static const op_attr arg_attrs[] = {{"axis", GRT_ATTR_INT, false},
                                    {"keepdims", GRT_ATTR_INT, false},
                                    {"select_last_index", GRT_ATTR_INT, false},
                                    {0}};

/* Before 13 the input was seen as a matrix, cut before `axis` (1 unless given), and the rows were looked at.
 */
static grt_status upgrade_hardmax(ir_node *node, int32_t opset)
{
    if (opset >= 13)
        return GRT_OK;
    ir_graph *graph = node->graph;
    ir_value *data = ir_in(node, 0);
    int64_t axis = grt_attr_int(&node->desc, "axis", 1);
    const char *name = node->desc.name;
    ir_node *flatten = ir_node_create(graph, node, "", "Flatten", name, 1, &data, 1);
    ir_value *matrix = ir_node_out(flatten),
             *shape = ir_node_out(ir_node_create(graph, node, "", "Shape", name, 1, &data, 1));
    ir_node *rows = ir_node_create(graph, node, "", "Hardmax", name, 1, &matrix, 1);
    if (!flatten || !shape || !rows)
        return grt_fail_memory(0);
    ir_attr_set_int(flatten, "axis", axis);
    ir_attr_set_int(rows, "axis", 1);
    ir_node_become(node, "", "Reshape");
    ir_attr_remove(node, "axis");
    ir_node_set_input(node, 0, ir_node_out(rows));
    ir_node_add_input(node, shape);
    return GRT_OK;
}

static const op_attr axis_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "ArgMax",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = arg_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_arg},
    {.domain = "",
     .name = "ArgMin",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = arg_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_arg},
    {.domain = "",
     .name = "Hardmax",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = moves_along_axis,
     .upgrade = upgrade_hardmax},
};
OP_TABLE(arg, rows);
