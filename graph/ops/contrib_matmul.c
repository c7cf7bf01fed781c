/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: products and convolutions with what was fused into them. */
#include "graph/ops/foreign.h"
#include "graph/ops/window.h"

#include <string.h>

static const op_attr matmul_attrs[] = {
    {"alpha", GRT_ATTR_FLOAT, false},     {"transA", GRT_ATTR_INT, false},
    {"transB", GRT_ATTR_INT, false},      {"transBatchA", GRT_ATTR_INT, false},
    {"transBatchB", GRT_ATTR_INT, false}, {0}};
static const op_attr activation_attrs[] = {{"activation", GRT_ATTR_STRING, true},
                                           {"activation_alpha", GRT_ATTR_FLOAT, false},
                                           {"activation_axis", GRT_ATTR_INT, false},
                                           {"activation_beta", GRT_ATTR_FLOAT, false},
                                           {"activation_gamma", GRT_ATTR_FLOAT, false},
                                           {"alpha", GRT_ATTR_FLOAT, false},
                                           {"transA", GRT_ATTR_INT, false},
                                           {"transB", GRT_ATTR_INT, false},
                                           {"transBatchA", GRT_ATTR_INT, false},
                                           {"transBatchB", GRT_ATTR_INT, false},
                                           {0}};
static const op_attr gemm_attrs[] = {{"activation", GRT_ATTR_STRING, false},
                                     {"activation_alpha", GRT_ATTR_FLOAT, false},
                                     {"activation_beta", GRT_ATTR_FLOAT, false},
                                     {"activation_gamma", GRT_ATTR_FLOAT, false},
                                     {"alpha", GRT_ATTR_FLOAT, false},
                                     {"beta", GRT_ATTR_FLOAT, false},
                                     {"leaky_relu_alpha", GRT_ATTR_FLOAT, false},
                                     {"transA", GRT_ATTR_INT, false},
                                     {"transB", GRT_ATTR_INT, false},
                                     {0}};
static const op_attr conv_attrs[] = {
    {"activation", GRT_ATTR_STRING, false}, {"activation_params", GRT_ATTR_FLOATS, false}, CONV_ATTRS, {0}};

/* Input i with the first dim behind the batch dims (batch), and the last two dims swapped (matrix). */
static grt_status contrib_matmul_transposed(ir_node *node, int32_t i, const char *matrix, const char *batch,
                                            ir_value **out)
{
    const bool swap = grt_attr_int(&node->desc, matrix, 0) != 0,
               roll = grt_attr_int(&node->desc, batch, 0) != 0;
    int64_t perm[GRT_MAX_RANK];
    *out = ir_in(node, i);
    if (!swap && !roll)
        return GRT_OK;
    GRT_TRY(foreign_need_rank(node, i, "a matrix"));
    const int32_t rank = foreign_rank(node, i);
    if (rank < 2) /* a vector has nothing to transpose */
        return GRT_OK;
    for (int32_t k = 0; k < rank; k++)
        perm[k] = !roll || k == rank - 1 ? k : k == rank - 2 ? 0 : k + 1;
    if (swap) {
        const int64_t last = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = last;
    }
    *out = put_transpose(node, *out, perm, (size_t)rank);
    return GRT_OK;
}

/* alpha times the product */
static grt_status fused_product(ir_node *node, ir_value **out)
{
    ir_value *a, *b;
    GRT_TRY(foreign_need(node, 0, "A"));
    GRT_TRY(contrib_matmul_transposed(node, 0, "transA", "transBatchA", &a));
    GRT_TRY(contrib_matmul_transposed(node, 1, "transB", "transBatchB", &b));
    *out = put2(node, "MatMul", a, b);
    const float alpha = grt_attr_float(&node->desc, "alpha", 1);
    const grt_dtype dtype = ir_in(node, 0)->type.dtype;
    if (alpha == 1)
        return GRT_OK;
    if (!dtype)
        return foreign_unsupported(node, "the dtype of input 0 (A) must be known to the compiler");
    *out = put2(node, "Mul", *out, put_scalar(node, dtype, (double)alpha));
    return GRT_OK;
}

static grt_status rewrite_fused_matmul(ir_node *node)
{
    ir_value *y;
    GRT_TRY(fused_product(node, &y));
    return foreign_done1(node, y);
}

/* The activation of attributes activation, activation_alpha and so on. */
static grt_status activate_product(ir_node *node, ir_value **y)
{
    const char *op = grt_attr_string(&node->desc, "activation", "");
    const grt_attr *alpha = grt_attr_find(&node->desc, "activation_alpha");
    if (!alpha)
        alpha = grt_attr_find(&node->desc, "leaky_relu_alpha");
    const grt_attr *second = grt_attr_find(&node->desc, "activation_beta");
    if (!second)
        second = grt_attr_find(&node->desc, "activation_gamma");
    GRT_TRY(foreign_need(node, 0, "A"));
    const float params[] = {alpha ? alpha->f : 0, second ? second->f : 0};
    return put_activation(node, op, params, alpha ? second ? 2 : 1 : 0, ir_in(node, 0)->type.dtype, y);
}

static grt_status rewrite_fused_matmul_activation(ir_node *node)
{
    ir_value *y;
    GRT_TRY(fused_product(node, &y));
    GRT_TRY(activate_product(node, &y));
    return foreign_done1(node, y);
}

static grt_status rewrite_fused_gemm(ir_node *node)
{
    static const char *const kept[] = {"alpha", "beta", "transA", "transB"};
    ir_value *y = put3(node, "Gemm", ir_in(node, 0), ir_in(node, 1), ir_in(node, 2));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        with_attr_of(y, node, kept[i]);
    GRT_TRY(activate_product(node, &y));
    return foreign_done1(node, y);
}

static ir_value *contrib_matmul_convolve(ir_node *node, ir_value *x, ir_value *w)
{
    static const char *const kept[] = {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"};
    ir_value *y = put3(node, "Conv", x, w, ir_in(node, 2));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        with_attr_of(y, node, kept[i]);
    return y;
}

static grt_status activate(ir_node *node, ir_value **y)
{
    size_t n;
    const float *params = grt_attr_floats(&node->desc, "activation_params", &n);
    GRT_TRY(foreign_need(node, 0, "X"));
    return put_activation(node, grt_attr_string(&node->desc, "activation", ""), params, n,
                          ir_in(node, 0)->type.dtype, y);
}

/* (x, w, bias, z): the activation of Conv(x, w, bias) + z */
static grt_status rewrite_fused_conv(ir_node *node)
{
    ir_value *y =
        put_add(node, contrib_matmul_convolve(node, ir_in(node, 0), ir_in(node, 1)), ir_in(node, 3));
    GRT_TRY(activate(node, &y));
    return foreign_done1(node, y);
}

/* Writers of the channels-last form lay its weights out channels last, too, or leave them as they were: the
 * dim that has the input's channels tells. */
static bool weights_are_last(const ir_node *node)
{
    int64_t channels, first, last;
    const int64_t group = grt_attr_int(&node->desc, "group", 1);
    return foreign_dim(ir_in(node, 0), -1, &channels) && foreign_dim(ir_in(node, 1), 1, &first) &&
                   foreign_dim(ir_in(node, 1), -1, &last) && group > 0
               ? last == channels / group || first != channels / group
               : true;
}

/* The same with channels last: [batch, height, width, channels]. */
static grt_status rewrite_nhwc_conv(ir_node *node)
{
    static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    ir_value *x = put_transpose(node, ir_in(node, 0), to_first, 4), *w = ir_in(node, 1);
    if (weights_are_last(node))
        w = put_transpose(node, w, to_first, 4);
    ir_value *y = put_transpose(node, contrib_matmul_convolve(node, x, w), to_last, 4);
    y = put_add(node, y, ir_in(node, 3));
    GRT_TRY(activate(node, &y));
    return foreign_done1(node, y);
}

static const op_row rows[] = {
    FOREIGN(MS, "FusedMatMul", 2, 2, 1, 1, matmul_attrs, rewrite_fused_matmul),
    FOREIGN(MS, "TransposeMatMul", 2, 2, 1, 1, matmul_attrs, rewrite_fused_matmul),
    FOREIGN(MS, "FusedMatMulActivation", 2, 2, 1, 1, activation_attrs, rewrite_fused_matmul_activation),
    FOREIGN(MS, "FusedGemm", 2, 3, 1, 1, gemm_attrs, rewrite_fused_gemm),
    FOREIGN(MS, "FusedConv", 2, 4, 1, 1, conv_attrs, rewrite_fused_conv),
    FOREIGN(MS, "NhwcConv", 2, 3, 1, 1, conv_attrs, rewrite_nhwc_conv),
    FOREIGN(MS, "NhwcFusedConv", 2, 4, 1, 1, conv_attrs, rewrite_nhwc_conv),
};
OP_TABLE(contrib_matmul, rows);
