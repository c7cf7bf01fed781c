/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: quantisation before ai.onnx had it in 16 and 4 bits, and products that ONNX Runtime's
 * dynamic quantiser makes. */
#include "graph/ops/foreign.h"

static const op_attr linear_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};
static const op_attr gemm_attrs[] = {
    {"alpha", GRT_ATTR_FLOAT, false}, {"transA", GRT_ATTR_INT, false}, {"transB", GRT_ATTR_INT, false}, {0}};

/* QuantizeLinear and DequantizeLinear: (x, scale, zero_point) */
static grt_status contrib_quantize_rewrite_linear(ir_node *node)
{
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1), ir_in(node, 2)};
    return foreign_done1(node, with_attr_of(put(node, node->desc.op, in[2] ? 3 : 2, in), node, "axis"));
}

/* The product of integers, times the scales of both, plus the bias. */
static ir_value *scaled_product(ir_node *node, ir_value *const in[4], ir_value *a_scale, ir_value *b_scale,
                                ir_value *bias)
{
    ir_value *sums = with_int(put1(node, "Cast", put(node, "MatMulInteger", 4, in)), "to",
                              a_scale && a_scale->type.dtype ? a_scale->type.dtype : GRT_DTYPE_FLOAT);
    return put_add(node, put2(node, "Mul", sums, put2(node, "Mul", a_scale, b_scale)), bias);
}

/* (a, b, b_scale, b_zero_point, bias) */
static grt_status rewrite_dynamic_matmul(ir_node *node)
{
    ir_node *quantized = ir_node_create(node->graph, node, "", "DynamicQuantizeLinear", node->desc.name, 1,
                                        (ir_value *[]){ir_in(node, 0)}, 3);
    if (!quantized)
        return grt_fail_memory(0);
    ir_value *in[] = {quantized->out[0], ir_in(node, 1), quantized->out[2], ir_in(node, 3)};
    return foreign_done1(node, scaled_product(node, in, quantized->out[1], ir_in(node, 2), ir_in(node, 4)));
}

/* (a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias) */
static grt_status rewrite_matmul_to_float(ir_node *node)
{
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1), ir_in(node, 4), ir_in(node, 5)};
    return foreign_done1(node, scaled_product(node, in, ir_in(node, 2), ir_in(node, 3), ir_in(node, 6)));
}

static ir_value *maybe_transposed(ir_node *node, int32_t i, const char *attr)
{
    static const int64_t swap[] = {1, 0};
    ir_value *x = ir_in(node, i);
    return grt_attr_int(&node->desc, attr, 0) ? put_transpose(node, x, swap, 2) : x;
}

/* (a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero); without y_scale the result is float. */
static grt_status rewrite_gemm(ir_node *node)
{
    ir_value *in[] = {maybe_transposed(node, 0, "transA"), maybe_transposed(node, 3, "transB"),
                      ir_in(node, 2), ir_in(node, 5)};
    ir_value *sums = put_add(node, put(node, "MatMulInteger", 4, in), ir_in(node, 6));
    const double alpha = (double)grt_attr_float(&node->desc, "alpha", 1);
    ir_value *scale = put2(node, "Mul", ir_in(node, 1), ir_in(node, 4));
    if (alpha != 1)
        scale = put2(node, "Mul", scale, put_scalar(node, GRT_DTYPE_FLOAT, alpha));
    ir_value *y = put2(node, "Mul", with_int(put1(node, "Cast", sums), "to", GRT_DTYPE_FLOAT), scale);
    if (ir_in(node, 7))
        y = put3(node, "QuantizeLinear", y, ir_in(node, 7), ir_in(node, 8));
    return foreign_done1(node, y);
}

static const op_row rows[] = {
    FOREIGN(MS, "QuantizeLinear", 2, 3, 1, 1, linear_attrs, contrib_quantize_rewrite_linear),
    FOREIGN(MS, "DequantizeLinear", 2, 3, 1, 1, linear_attrs, contrib_quantize_rewrite_linear),
    FOREIGN(MS, "DynamicQuantizeMatMul", 3, 5, 1, 1, NULL, rewrite_dynamic_matmul),
    FOREIGN(MS, "MatMulIntegerToFloat", 4, 7, 1, 1, NULL, rewrite_matmul_to_float),
    FOREIGN(MS, "QGemm", 6, 9, 1, 1, gemm_attrs, rewrite_gemm),
};
OP_TABLE(contrib_quantize, rows);
