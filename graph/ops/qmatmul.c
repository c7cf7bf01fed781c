/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul and graphrt::QConv: products of 8-bit numbers, which pass `quantised` makes.
 *
 * Inputs: x, its scale, its zero point; w, its scale, its zero point (one, or one per output channel); y's
 * scale and zero point (omitted: y is float32); bias, one per output channel: float32, or int32 in units of
 * the sums; residual of y's shape, its scale, its zero point.
 *
 *   y = quantised(act(x_scale * w_scale * sum((x - x_zero) * (w - w_zero)) + bias + residual))
 *
 * Sums are int32. Attributes: as of graphrt::MatMul without scale and transA, or of graphrt::Conv. */
#include "graph/ir/flops.h"
#include "graph/ops/window.h"

#include <string.h>

enum { X, W = 3, Y_SCALE = 6, Y_ZERO, BIAS, INPUTS = 12 };

/* QLinear's rules are on the same first inputs, with y's type after them. */
static grt_status infer_as(infer *inf, const char *op, int32_t n_in, const ir_type *w)
{
    const op_row *row = op_find("", op);
    const ir_type *in[INPUTS];
    ir_type scale = {.kind = GRT_KIND_TENSOR, .dtype = GRT_DTYPE_FLOAT};
    infer plain = *inf;
    if (!row || !row->infer)
        return infer_fail(inf, "%s has no rule", op);
    if (infer_has(inf, Y_SCALE) && !infer_has(inf, Y_ZERO))
        return infer_fail(inf, "the result has a scale, but no zero point, whose type it would have");
    for (int32_t i = 0; i < n_in; i++)
        in[i] = i < inf->n_in ? inf->in[i] : NULL;
    in[W] = w;
    if (!infer_has(inf, Y_SCALE))
        in[Y_SCALE] = in[Y_ZERO] = &scale; /* the result's type is the zero point's */
    plain.in = in;
    plain.n_in = n_in;
    return op_infer_types(row, &plain);
}

static grt_status infer_qmatmul(infer *inf)
{
    ir_type w = *inf->in[W];
    if (grt_attr_int(inf->desc, "transB", 0) && w.rank >= 2) {
        grt_dim *dims = infer_dims(inf, w.rank);
        if (!dims)
            return GRT_OK;
        memcpy(dims, w.dims, (size_t)w.rank * sizeof *dims);
        dims[w.rank - 2] = w.dims[w.rank - 1];
        dims[w.rank - 1] = w.dims[w.rank - 2];
        w.dims = dims;
    }
    return infer_as(inf, "QLinearMatMul", BIAS, &w);
}

static grt_status infer_qconv(infer *inf)
{
    return infer_as(inf, "QLinearConv", BIAS + 1, inf->in[W]);
}

#define EPILOGUE                                                              \
    {"activation", GRT_ATTR_STRING, false}, {"alpha", GRT_ATTR_FLOAT, false}, \
    {                                                                         \
        "beta", GRT_ATTR_FLOAT, false                                         \
    }

static const op_attr conv_attrs[] = {{"auto_pad", GRT_ATTR_STRING, false},
                                     {"dilations", GRT_ATTR_INTS, false},
                                     {"group", GRT_ATTR_INT, false},
                                     {"kernel_shape", GRT_ATTR_INTS, false},
                                     {"pads", GRT_ATTR_INTS, false},
                                     {"strides", GRT_ATTR_INTS, false},
                                     {"layout", GRT_ATTR_STRING, false},
                                     EPILOGUE,
                                     {0}};
static const op_attr matmul_attrs[] = {{"transB", GRT_ATTR_INT, false}, EPILOGUE, {0}};

#define QUANTISED .domain = "graphrt", .since = 1, .min_in = 5, .max_in = INPUTS, .min_out = 1, .max_out = 1
static const op_row rows[] = {
    {QUANTISED, .name = "QMatMul", .attrs = matmul_attrs, .precision = OP_WIDE, .flops = flops_qmatmul,
     .infer = infer_qmatmul},
    {QUANTISED, .name = "QConv", .attrs = conv_attrs, .precision = OP_WIDE, .layout = OP_LAYOUT_QCONV,
     .flops = flops_qconv, .infer = infer_qconv},
};
OP_TABLE(qmatmul, rows);
