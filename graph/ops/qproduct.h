/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul and graphrt::QConv: products of 8-bit numbers, which pass `quantised` makes.
 *
 * Inputs: x, its scale, its zero point; w, its scale, its zero point (one, or one per output channel); y's
 * scale and zero point (omitted: y is float32); bias, one per output channel: float32, or int32 in units of
 * the sums; residual of y's shape, its scale, its zero point (none of both, and y's type, where y is not
 * quantised); scale and zero point of a sum, whose residual may be a constant row, too; a table of 256
 * elements.
 *
 *   y = quantised(act(x_scale * w_scale * sum((x - x_zero) * (w - w_zero)) + bias + residual))
 *
 * With a sum's scale y is rounded before the residual is added, so that a model's own rounding stays:
 *
 *   sum = quantised(sum_act(y_scale * (y - y_zero) + residual)), and the step's result is that
 *
 * With a table it is what graphrt::QTable makes of it.
 *
 * Products are summed in int32. Attributes: as of graphrt::MatMul without scale and transA, or of
 * graphrt::Conv. */
#ifndef GRT_GRAPH_OPS_QPRODUCT_H
#define GRT_GRAPH_OPS_QPRODUCT_H

#include "graph/ir/op.h"

enum {
    QPRODUCT_W = 3,
    QPRODUCT_Y_SCALE = 6,
    QPRODUCT_Y_ZERO,
    QPRODUCT_BIAS,
    QPRODUCT_RESIDUAL,
    QPRODUCT_SUM_SCALE = 12,
    QPRODUCT_SUM_ZERO,
    QPRODUCT_TABLE,
    QPRODUCT_INPUTS
};

/* The rule of a QLinear op, which has these inputs up to its first n_in, with w in the place of input 3. */
grt_status infer_as_qlinear(infer *inf, const char *op, int32_t n_in, const ir_type *w);

/* output_dtype: of results that are not quantised; float32 if it is not there. */
#define QPRODUCT_EPILOGUE                                                            \
    {"activation", GRT_ATTR_STRING, false}, {"alpha", GRT_ATTR_FLOAT, false},        \
        {"beta", GRT_ATTR_FLOAT, false}, {"sum_activation", GRT_ATTR_STRING, false}, \
        {"sum_alpha", GRT_ATTR_FLOAT, false}, {"output_dtype", GRT_ATTR_INT, false}, \
    {                                                                                \
        "sum_beta", GRT_ATTR_FLOAT, false                                            \
    }
#define QPRODUCT                                                                                         \
    .domain = "graphrt", .since = 1, .min_in = 5, .max_in = QPRODUCT_INPUTS, .min_out = 1, .max_out = 1, \
    .precision = OP_NARROW_RESULT

#endif
