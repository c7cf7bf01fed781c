/* SPDX-License-Identifier: Apache-2.0 */
/* Along one axis, shape unchanged: CumSum, CumProd, Hardmax, LpNormalization; and MeanVarianceNormalization,
 * Det. */
#include "graph/ops/moves.h"

static grt_status infer_cumulate(infer *inf)
{
    const int64_t *axis;
    int64_t n;
    int32_t normal;
    if (inf->in[0]->rank >= 0 && infer_ints(inf, 1, &axis, &n)) {
        if (n != 1)
            return infer_fail(inf, "axis must have one element, found %lld", (long long)n);
        GRT_TRY(infer_axis(inf, "axis", axis[0], inf->in[0]->rank, &normal));
    }
    return infer_same_as_first(inf);
}

static grt_status infer_along_axis(infer *inf)
{
    int32_t axis;
    if (inf->in[0]->rank >= 0)
        GRT_TRY(
            infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), inf->in[0]->rank, &axis));
    return infer_same_as_first(inf);
}

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

static grt_status infer_mvn(infer *inf)
{
    static const int64_t usual[] = {0, 2, 3};
    size_t n;
    const int64_t *axes = grt_attr_ints(inf->desc, "axes", &n);
    if (!axes)
        axes = usual, n = 3;
    int32_t axis;
    for (size_t k = 0; inf->in[0]->rank >= 0 && k < n; k++)
        GRT_TRY(infer_axis(inf, "an entry of axes", axes[k], inf->in[0]->rank, &axis));
    return infer_same_as_first(inf);
}

static grt_status infer_det(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t rows, cols;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (data->rank < 2)
        return infer_fail(inf, "the input must have rank 2 at least, found rank %d", data->rank);
    if (infer_const(inf, data->dims[data->rank - 2], &rows) &&
        infer_const(inf, data->dims[data->rank - 1], &cols) && rows != cols)
        return infer_fail(inf, "matrices must be square, found %lld x %lld", (long long)rows,
                          (long long)cols);
    infer_set(inf, 0, data->dtype, data->rank - 2, data->dims);
    return GRT_OK;
}

static const op_attr cumulate_attrs[] = {
    {"exclusive", GRT_ATTR_INT, false}, {"reverse", GRT_ATTR_INT, false}, {0}};
static const op_attr axis_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};
static const op_attr norm_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"p", GRT_ATTR_INT, false}, {0}};
static const op_attr axes_attrs[] = {{"axes", GRT_ATTR_INTS, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "CumSum",
     .since = 14,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = cumulate_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_cumulate},
    {.domain = "",
     .name = "CumProd",
     .since = 26,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = cumulate_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_cumulate},
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
     .infer = infer_along_axis,
     .upgrade = upgrade_hardmax},
    {.domain = "",
     .name = "LpNormalization",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = norm_attrs,
     .precision = OP_WIDE,
     .infer = infer_along_axis},
    {.domain = "",
     .name = "MeanVarianceNormalization",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = axes_attrs,
     .precision = OP_WIDE,
     .infer = infer_mvn},
    {.domain = "",
     .name = "Det",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_det},
};
OP_TABLE(cumulate, rows);
