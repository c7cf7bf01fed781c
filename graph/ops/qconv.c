/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv. */
#include "graph/ops/qproduct.h"

#include "graph/ir/flops.h"
#include "graph/ops/window.h"

static grt_status infer_qconv(infer *inf)
{
    return infer_as_qlinear(inf, "QLinearConv", QPRODUCT_BIAS + 1, inf->in[QPRODUCT_W]);
}

static const op_attr conv_attrs[] = {CONV_ATTRS, {"layout", GRT_ATTR_STRING, false}, QPRODUCT_EPILOGUE, {0}};

static const op_row rows[] = {
    {QPRODUCT, .name = "QConv", .attrs = conv_attrs, .ranges = window_ranges, .layout = OP_LAYOUT_QCONV,
     .flops = flops_qconv, .infer = infer_qconv},
};
OP_TABLE(qconv, rows);
