/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WMatMul: a product of float32 by constant weights of 2, 4 or 8 bits, which pass `quantised` makes.
 *
 * Inputs: x; w, a matrix; its scales and zero points (may be omitted), as DequantizeLinear has them; bias, a
 * vector over the columns; residual, of y's shape; norm, a vector over x's columns. Attributes: axis and
 * block_size as of DequantizeLinear, on w as it is stored; transB: w is stored transposed; activation, alpha
 * and beta as of graphrt::MatMul; accuracy_level as of MatMulNBits: at 4, a backend may round x to 8 bits for
 * each block; epsilon: of RMSNormalization; gated.
 * y = act(x * dequantised(w) + bias + residual)
 * With norm, x is RMSNormalization(x, norm) over its last dim instead. Gated, the result has half as many
 * columns: SiLU of the first half times the second. Pass `weight_steps` makes both. */
#include "graph/ir/flops.h"
#include "graph/ir/op.h"

#include <string.h>

static grt_status infer_wmatmul(infer *inf)
{
    enum { X, W, BIAS = 4, NORM = 6 };
    const op_row *row = op_find("", "MatMul");
    const ir_type *w = inf->in[W];
    ir_type plain_w = *w;
    const ir_type *in[] = {inf->in[X], &plain_w};
    infer plain = *inf;
    int64_t channels, found;
    if (!row || !row->infer)
        return infer_fail(inf, "MatMul has no rule");
    if (w->rank != 2)
        return infer_fail(inf, "the weights must have rank 2, found %d", w->rank);
    const bool transposed = grt_attr_int(inf->desc, "transB", 0) != 0;
    grt_dim *dims = infer_dims(inf, 2);
    if (!dims)
        return GRT_OK;
    dims[0] = w->dims[transposed ? 1 : 0];
    dims[1] = w->dims[transposed ? 0 : 1];
    plain_w.dims = dims;
    plain_w.dtype = inf->in[X]->dtype;
    if (infer_has(inf, BIAS) && inf->in[BIAS]->rank >= 0 &&
        (inf->in[BIAS]->rank != 1 || (infer_const(inf, inf->in[BIAS]->dims[0], &found) &&
                                      infer_const(inf, dims[1], &channels) && found != channels)))
        return infer_fail(inf, "the bias must be a vector over the columns of the weights");
    if (infer_has(inf, NORM) && inf->in[NORM]->rank >= 0 &&
        (inf->in[NORM]->rank != 1 || (infer_const(inf, inf->in[NORM]->dims[0], &found) &&
                                      infer_const(inf, dims[0], &channels) && found != channels)))
        return infer_fail(inf, "the norm must be a vector over the rows of the weights");
    if (grt_attr_int(inf->desc, "gated", 0)) {
        if (!infer_const(inf, dims[1], &channels) || channels % 2)
            return infer_fail(inf, "gated weights must have an even number of columns");
        dims[1] = grt_dim_const(inf->dims, channels / 2);
    }
    plain.in = in;
    plain.n_in = 2;
    return op_infer_types(row, &plain);
}

static const op_attr attrs[] = {
    {"accuracy_level", GRT_ATTR_INT, false}, {"axis", GRT_ATTR_INT, false},
    {"block_size", GRT_ATTR_INT, false},     {"transB", GRT_ATTR_INT, false},
    {"alpha", GRT_ATTR_FLOAT, false},        {"activation", GRT_ATTR_STRING, false},
    {"beta", GRT_ATTR_FLOAT, false},         {"epsilon", GRT_ATTR_FLOAT, false},
    {"gated", GRT_ATTR_INT, false},          {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "WMatMul",
     .since = 1,
     .min_in = 3,
     .max_in = 7,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .precision = OP_NARROW_FIRST,
     .flops = flops_matmul,
     .infer = infer_wmatmul},
};
OP_TABLE(wmatmul, rows);
