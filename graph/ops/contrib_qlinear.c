/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: operators on quantised tensors, as ONNX Runtime's static quantiser writes them: dequantise,
 * compute, quantise. */
#include "graph/ops/foreign.h"

static const op_attr leaky_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr concat_attrs[] = {{"axis", GRT_ATTR_INT, true}, {0}};
static const op_attr softmax_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"opset", GRT_ATTR_INT, true}, {0}};
static const op_attr mean_attrs[] = {{"axes", GRT_ATTR_INTS, true}, {"keepdims", GRT_ATTR_INT, true}, {0}};
static const op_attr global_attrs[] = {{"channels_last", GRT_ATTR_INT, false}, {0}};
static const op_attr pool_attrs[] = {{"auto_pad", GRT_ATTR_STRING, false},
                                     {"ceil_mode", GRT_ATTR_INT, false},
                                     {"channels_last", GRT_ATTR_INT, false},
                                     {"count_include_pad", GRT_ATTR_INT, false},
                                     {"dilations", GRT_ATTR_INTS, false},
                                     {"kernel_shape", GRT_ATTR_INTS, true},
                                     {"pads", GRT_ATTR_INTS, false},
                                     {"strides", GRT_ATTR_INTS, false},
                                     {0}};
static const op_attr conv_attrs[] = {
    {"auto_pad", GRT_ATTR_STRING, false},   {"channels_last", GRT_ATTR_INT, false},
    {"dilations", GRT_ATTR_INTS, false},    {"group", GRT_ATTR_INT, false},
    {"kernel_shape", GRT_ATTR_INTS, false}, {"pads", GRT_ATTR_INTS, false},
    {"strides", GRT_ATTR_INTS, false},      {0}};

/* Inputs i to i + 2: a tensor, its scale, its zero point. */
static ir_value *contrib_qlinear_real(ir_node *node, int32_t i)
{
    return put3(node, "DequantizeLinear", ir_in(node, i), ir_in(node, i + 1), ir_in(node, i + 2));
}

/* Quantised by the scale and zero point of inputs i and i + 1, and the dtype of input `like` where there is
 * no zero point. */
static grt_status done(ir_node *node, ir_value *y, int32_t i, int32_t like)
{
    GRT_TRY(foreign_need(node, like, "a quantised tensor"));
    ir_value *q = put3(node, "QuantizeLinear", y, ir_in(node, i), ir_in(node, i + 1));
    const grt_dtype dtype = ir_in(node, like)->type.dtype;
    if (!ir_in(node, i + 1) && dtype)
        with_int(q, "output_dtype", dtype);
    return foreign_done1(node, q);
}

static grt_status rewrite_add(ir_node *node)
{
    return done(node, put2(node, "Add", contrib_qlinear_real(node, 0), contrib_qlinear_real(node, 3)), 6, 0);
}

static grt_status rewrite_mul(ir_node *node)
{
    return done(node, put2(node, "Mul", contrib_qlinear_real(node, 0), contrib_qlinear_real(node, 3)), 6, 0);
}

static grt_status rewrite_sigmoid(ir_node *node)
{
    return done(node, put1(node, "Sigmoid", contrib_qlinear_real(node, 0)), 3, 0);
}

static grt_status rewrite_leaky(ir_node *node)
{
    return done(node, with_attr_of(put1(node, "LeakyRelu", contrib_qlinear_real(node, 0)), node, "alpha"), 3,
                0);
}

static grt_status rewrite_mean(ir_node *node)
{
    size_t n;
    const int64_t *axes = grt_attr_ints(&node->desc, "axes", &n);
    ir_value *y = put2(node, "ReduceMean", contrib_qlinear_real(node, 0), put_ints(node, axes, (int64_t)n));
    return done(node, with_attr_of(y, node, "keepdims"), 3, 0);
}

/* (condition, x, scale, zero, y, scale, zero, scale, zero) */
static grt_status rewrite_where(ir_node *node)
{
    return done(
        node,
        put3(node, "Where", ir_in(node, 0), contrib_qlinear_real(node, 1), contrib_qlinear_real(node, 4)), 7,
        1);
}

/* (scale, zero, then a tensor, its scale and its zero each time) */
static grt_status rewrite_concat(ir_node *node)
{
    const int32_t n = (node->n_in - 2) / 3;
    if (n < 1 || node->n_in != 3 * n + 2)
        return foreign_invalid(node, "has %d inputs; after the first two, they must come in threes",
                               node->n_in);
    ir_value **parts = GRT_ARENA_ARRAY(node->graph->module->arena, ir_value *, n);
    if (!parts)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < n; i++)
        parts[i] = contrib_qlinear_real(node, 2 + 3 * i);
    return done(node, put_concat(node, grt_attr_int(&node->desc, "axis", 0), n, parts), 0, 2);
}

/* Before opset 13, Softmax took all dims from `axis` on together. */
static grt_status rewrite_softmax(ir_node *node)
{
    ir_value *x = contrib_qlinear_real(node, 0);
    const int64_t opset = grt_attr_int(&node->desc, "opset", 13);
    const int64_t axis = grt_attr_int(&node->desc, "axis", opset < 13 ? 1 : -1);
    if (opset >= 13)
        return done(node, with_int(put1(node, "Softmax", x), "axis", axis), 3, 0);
    ir_value *flat = with_int(put1(node, "Flatten", x), "axis", axis);
    ir_value *y = with_int(put1(node, "Softmax", flat), "axis", 1);
    return done(node, put2(node, "Reshape", y, put1(node, "Shape", ir_in(node, 0))), 3, 0);
}

static grt_status move_channels(ir_node *node, bool first, ir_value **x)
{
    int64_t perm[GRT_MAX_RANK];
    if (!grt_attr_int(&node->desc, "channels_last", 0))
        return GRT_OK;
    GRT_TRY(foreign_need_rank(node, 0, "X"));
    const int32_t rank = foreign_rank(node, 0);
    if (rank < 3)
        return foreign_invalid(node, "the input has rank %d; expected batch, spatial dims and channels",
                               rank);
    for (int32_t i = 1; i < rank; i++)
        perm[i] = first ? i == 1 ? rank - 1 : i - 1 : i == rank - 1 ? 1 : i + 1;
    perm[0] = 0;
    *x = put_transpose(node, *x, perm, (size_t)rank);
    return GRT_OK;
}

static void keep_window(ir_value *y, const ir_node *node)
{
    static const char *const kept[] = {"auto_pad",  "ceil_mode", "count_include_pad",
                                       "dilations", "group",     "kernel_shape",
                                       "pads",      "strides"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        with_attr_of(y, node, kept[i]);
}

static grt_status pool(ir_node *node, const char *op)
{
    ir_value *x = contrib_qlinear_real(node, 0);
    GRT_TRY(move_channels(node, true, &x));
    ir_value *y = put1(node, op, x);
    keep_window(y, node);
    GRT_TRY(move_channels(node, false, &y));
    return done(node, y, 3, 0);
}

static grt_status rewrite_average_pool(ir_node *node)
{
    return pool(node, "AveragePool");
}

static grt_status rewrite_global_pool(ir_node *node)
{
    return pool(node, "GlobalAveragePool");
}

static grt_status contrib_qlinear_rewrite_conv(ir_node *node)
{
    ir_value *in[9];
    for (int32_t i = 0; i < 9; i++)
        in[i] = ir_in(node, i);
    GRT_TRY(move_channels(node, true, &in[0]));
    ir_value *y = put(node, "QLinearConv", in[8] ? 9 : 8, in);
    keep_window(y, node);
    GRT_TRY(move_channels(node, false, &y));
    return foreign_done1(node, y);
}

/* [batch, height, width, channels], of any dtype that MaxPool takes. */
static grt_status rewrite_max_pool(ir_node *node)
{
    ir_attr_set_int(node, "channels_last", 1);
    ir_value *x = ir_in(node, 0);
    GRT_TRY(move_channels(node, true, &x));
    ir_value *y = put1(node, "MaxPool", x);
    keep_window(y, node);
    GRT_TRY(move_channels(node, false, &y));
    return foreign_done1(node, y);
}

static const op_row rows[] = {
    FOREIGN(MS, "QLinearAdd", 7, 8, 1, 1, NULL, rewrite_add),
    FOREIGN(MS, "QLinearMul", 7, 8, 1, 1, NULL, rewrite_mul),
    FOREIGN(MS, "QLinearSigmoid", 4, 5, 1, 1, NULL, rewrite_sigmoid),
    FOREIGN(MS, "QLinearLeakyRelu", 4, 5, 1, 1, leaky_attrs, rewrite_leaky),
    FOREIGN(MS, "QLinearReduceMean", 4, 5, 1, 1, mean_attrs, rewrite_mean),
    FOREIGN(MS, "QLinearWhere", 9, 9, 1, 1, NULL, rewrite_where),
    FOREIGN(MS, "QLinearConcat", 3, OP_VARIADIC, 1, 1, concat_attrs, rewrite_concat),
    FOREIGN(MS, "QLinearSoftmax", 5, 5, 1, 1, softmax_attrs, rewrite_softmax),
    FOREIGN(MS, "QLinearAveragePool", 4, 5, 1, 1, pool_attrs, rewrite_average_pool),
    FOREIGN(MS, "QLinearGlobalAveragePool", 5, 5, 1, 1, global_attrs, rewrite_global_pool),
    FOREIGN(MS, "QLinearConv", 8, 9, 1, 1, conv_attrs, contrib_qlinear_rewrite_conv),
    FOREIGN(MS, "NhwcMaxPool", 1, 1, 1, 1, pool_attrs, rewrite_max_pool),
};
OP_TABLE(contrib_qlinear, rows);
