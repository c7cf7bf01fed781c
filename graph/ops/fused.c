/* SPDX-License-Identifier: Apache-2.0 */
/* Fused ops of our own, made by the passes: a convolution or a matrix product with what follows it.
 *
 *   graphrt::Conv(x, w, bias?, residual?)    Conv's attributes, and those below
 *   graphrt::MatMul(a, b, bias?, residual?)  transA, transB (exchange the last two dims), scale, and those
 * below
 *
 *   y = act(scale * product + bias + residual)
 *
 * bias: 1-D over the output channels (Conv: dim 1; MatMul: the last dim), or, of a MatMul, one such row for
 * each matrix of the batch: y's dims, but 1 row. residual: of y's shape. activation: "" (none), or
 * one that src/base/activation.h lists, with parameters alpha and beta. layout: "NHWC" if x, y and residual
 * are laid out with channels last (their dims are in that order then; w stays as in ONNX). */
#include "graph/ir/flops.h"
#include "graph/ir/op.h"
#include "graph/ops/window.h"

#include <string.h>

static grt_status fused_check_bias(const infer *inf, grt_dim channels)
{
    int64_t found, expected;
    if (!infer_has(inf, 2) || inf->in[2]->rank < 0)
        return GRT_OK;
    if (inf->in[2]->rank != 1)
        return infer_fail(inf, "the bias must have rank 1, found %d", inf->in[2]->rank);
    if (infer_const(inf, inf->in[2]->dims[0], &found) && infer_const(inf, channels, &expected) &&
        found != expected)
        return infer_fail(inf, "the bias has %lld elements for %lld channels", (long long)found,
                          (long long)expected);
    return GRT_OK;
}

/* Infer by the rule of the ONNX op of that name, on these inputs. */
static grt_status infer_as(infer *inf, const char *op, const ir_type *const *in, int32_t n_in)
{
    const op_row *row = op_find("", op);
    if (!row || !row->infer)
        return infer_fail(inf, "%s has no rule", op);
    infer plain = *inf;
    plain.in = in;
    plain.n_in = n_in;
    return op_infer_types(row, &plain);
}

/* Conv's own rule knows the attribute layout and the bias. */
static grt_status infer_conv_epilogue(infer *inf)
{
    return infer_as(inf, "Conv", inf->in, inf->n_in < 3 ? inf->n_in : 3);
}

static grt_status fused_transposed(const infer *inf, const char *attr, const ir_type *type, ir_type *out)
{
    *out = *type;
    if (!grt_attr_int(inf->desc, attr, 0) || type->rank < 0)
        return GRT_OK;
    if (type->rank < 2)
        return infer_fail(inf, "%s needs an input of rank 2 at least, found %d", attr, type->rank);
    grt_dim *dims = infer_dims(inf, type->rank);
    if (!dims)
        return GRT_OK;
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[type->rank - 2] = type->dims[type->rank - 1];
    dims[type->rank - 1] = type->dims[type->rank - 2];
    out->dims = dims;
    return GRT_OK;
}

/* One row of bias for each matrix of y. */
static grt_status fused_check_rows(const infer *inf)
{
    const ir_type *bias = inf->in[2], *y = &inf->out[0];
    int64_t found, expected;
    if (y->rank < 0)
        return GRT_OK;
    if (bias->rank != y->rank)
        return infer_fail(inf, "the bias must have rank 1 or the result's, %d, found %d", y->rank,
                          bias->rank);
    for (int32_t i = 0; i < y->rank; i++) {
        const grt_dim dim = i == y->rank - 2 ? grt_dim_const(inf->dims, 1) : y->dims[i];
        if (infer_const(inf, bias->dims[i], &found) && infer_const(inf, dim, &expected) && found != expected)
            return infer_fail(inf, "dim %d of the bias is %lld; expected %lld", i, (long long)found,
                              (long long)expected);
    }
    return GRT_OK;
}

static grt_status fused_infer_matmul(infer *inf)
{
    ir_type a, b;
    GRT_TRY(fused_transposed(inf, "transA", inf->in[0], &a));
    GRT_TRY(fused_transposed(inf, "transB", inf->in[1], &b));
    GRT_TRY(infer_as(inf, "MatMul", (const ir_type *[]){&a, &b}, 2));
    if (infer_has(inf, 2) && inf->in[2]->rank > 2)
        return fused_check_rows(inf);
    return b.rank < 2 ? GRT_OK : fused_check_bias(inf, b.dims[b.rank - 1]);
}

#define EPILOGUE                                                              \
    {"activation", GRT_ATTR_STRING, false}, {"alpha", GRT_ATTR_FLOAT, false}, \
    {                                                                         \
        "beta", GRT_ATTR_FLOAT, false                                         \
    }

static const op_attr conv_attrs[] = {CONV_ATTRS, {"layout", GRT_ATTR_STRING, false}, EPILOGUE, {0}};
static const op_attr matmul_attrs[] = {{"transA", GRT_ATTR_INT, false},
                                       {"transB", GRT_ATTR_INT, false},
                                       {"scale", GRT_ATTR_FLOAT, false},
                                       EPILOGUE,
                                       {0}};

#define FUSED .domain = "graphrt", .since = 1, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1
static const op_row rows[] = {
    {FUSED, .name = "Conv", .attrs = conv_attrs, .ranges = window_ranges, .precision = OP_NARROW,
     .flags = OP_TF32, .layout = OP_LAYOUT_CONV, .flops = flops_conv, .infer = infer_conv_epilogue},
    {FUSED, .name = "MatMul", .attrs = matmul_attrs, .precision = OP_NARROW, .flags = OP_TF32,
     .flops = flops_matmul, .infer = fused_infer_matmul},
};
OP_TABLE(fused, rows);
