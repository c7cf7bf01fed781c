/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul, and the rule that it shares with graphrt::QConv. */
#include "graph/ops/qproduct.h"

#include "graph/ir/flops.h"

#include <string.h>

grt_status infer_as_qlinear(infer *inf, const char *op, int32_t n_in, const ir_type *w)
{
    const op_row *row = op_find("", op);
    const ir_type *in[QPRODUCT_INPUTS];
    grt_dtype result = GRT_DTYPE_FLOAT;
    GRT_TRY(infer_dtype_attr(inf, "output_dtype", GRT_SET_FLOATS, GRT_DTYPE_FLOAT, &result));
    ir_type scale = {.kind = GRT_KIND_TENSOR, .dtype = GRT_DTYPE_FLOAT};
    infer plain = *inf;
    if (!row || !row->infer)
        return infer_fail(inf, "%s has no rule", op);
    if (infer_has(inf, QPRODUCT_Y_SCALE) && !infer_has(inf, QPRODUCT_Y_ZERO))
        return infer_fail(inf, "the result has a scale, but no zero point, whose type it would have");
    for (int32_t i = 0; i < n_in; i++)
        in[i] = i < inf->n_in ? inf->in[i] : NULL;
    in[QPRODUCT_W] = w;
    if (!infer_has(inf, QPRODUCT_Y_SCALE))
        in[QPRODUCT_Y_SCALE] = in[QPRODUCT_Y_ZERO] = &scale; /* the result's type is the zero point's */
    plain.in = in;
    plain.n_in = n_in;
    GRT_TRY(op_infer_types(row, &plain));
    if (!infer_has(inf, QPRODUCT_Y_SCALE))
        inf->out[0].dtype = result;
    if (infer_has(inf, QPRODUCT_SUM_ZERO))
        inf->out[0].dtype = inf->in[QPRODUCT_SUM_ZERO]->dtype;
    if (infer_has(inf, QPRODUCT_TABLE))
        inf->out[0].dtype = inf->in[QPRODUCT_TABLE]->dtype;
    return GRT_OK;
}

static grt_status infer_qmatmul(infer *inf)
{
    ir_type w = *inf->in[QPRODUCT_W];
    if (grt_attr_int(inf->desc, "transB", 0) && w.rank >= 2) {
        grt_dim *dims = infer_dims(inf, w.rank);
        if (!dims)
            return GRT_OK;
        memcpy(dims, w.dims, (size_t)w.rank * sizeof *dims);
        dims[w.rank - 2] = w.dims[w.rank - 1];
        dims[w.rank - 1] = w.dims[w.rank - 2];
        w.dims = dims;
    }
    return infer_as_qlinear(inf, "QLinearMatMul", QPRODUCT_BIAS, &w);
}

static const op_attr matmul_attrs[] = {{"transB", GRT_ATTR_INT, false}, QPRODUCT_EPILOGUE, {0}};

static const op_row rows[] = {
    {QPRODUCT, .name = "QMatMul", .attrs = matmul_attrs, .flops = flops_qmatmul, .infer = infer_qmatmul},
};
OP_TABLE(qmatmul, rows);
