/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv. */
#include "graph/ops/qproduct.h"

#include "graph/ir/flops.h"

static grt_status infer_qconv(infer *inf)
{
    return infer_as_qlinear(inf, "QLinearConv", QPRODUCT_BIAS + 1, inf->in[QPRODUCT_W]);
}

static const op_attr conv_attrs[] = {{"auto_pad", GRT_ATTR_STRING, false},
                                     {"dilations", GRT_ATTR_INTS, false},
                                     {"group", GRT_ATTR_INT, false},
                                     {"kernel_shape", GRT_ATTR_INTS, false},
                                     {"pads", GRT_ATTR_INTS, false},
                                     {"strides", GRT_ATTR_INTS, false},
                                     {"layout", GRT_ATTR_STRING, false},
                                     QPRODUCT_EPILOGUE,
                                     {0}};

static const op_row rows[] = {
    {QPRODUCT, .name = "QConv", .attrs = conv_attrs, .layout = OP_LAYOUT_QCONV, .flops = flops_qconv,
     .infer = infer_qconv},
};
OP_TABLE(qconv, rows);
