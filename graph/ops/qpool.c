/* SPDX-License-Identifier: Apache-2.0 */
/* Means and Softmax of 8-bit tensors, which pass `quantised` makes.
 *
 * graphrt::QGlobalAveragePool: x, its scale and zero point; y's scale and zero point.
 * y = quantised(x_scale * sum(x - x_zero) / count), the sum being of integers. Attribute layout.
 * graphrt::QSoftmax: x, its scale; y's scale and zero point. Attribute axis: the last one if it is left out.
 */
#include "graph/ir/op.h"

enum { AVERAGE_Y_ZERO = 4, SOFTMAX_Y_ZERO = 3 };

static grt_status qpool_infer_global(infer *inf)
{
    const op_row *row = op_find("graphrt", "GlobalAveragePool");
    infer plain = *inf;
    plain.n_in = 1;
    if (!row || !row->infer)
        return infer_fail(inf, "GlobalAveragePool has no rule");
    GRT_TRY(op_infer_types(row, &plain));
    inf->out[0].dtype = inf->in[AVERAGE_Y_ZERO]->dtype;
    return GRT_OK;
}

static grt_status qpool_infer_softmax(infer *inf)
{
    infer_set_like(inf, 0, inf->in[SOFTMAX_Y_ZERO]->dtype, inf->in[0]);
    return GRT_OK;
}

static const op_attr global_attrs[] = {{"layout", GRT_ATTR_STRING, false}, {0}};
static const op_attr softmax_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};

#define QUANTISED \
    .domain = "graphrt", .since = 1, .min_out = 1, .max_out = 1, .precision = OP_WIDE, .cost = OP_COST_COMPUTE
static const op_row rows[] = {
    {QUANTISED, .min_in = 5, .max_in = 5, .layout = OP_LAYOUT_FORM, .name = "QGlobalAveragePool",
     .attrs = global_attrs, .infer = qpool_infer_global},
    {QUANTISED, .name = "QSoftmax", .min_in = 4, .max_in = 4, .attrs = softmax_attrs,
     .infer = qpool_infer_softmax},
};
OP_TABLE(qpool, rows);
