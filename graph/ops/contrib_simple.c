/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: small fusions and integer arithmetic, each a few nodes of ai.onnx. */
#include "graph/ops/foreign.h"

static const op_attr bias_softmax_attrs[] = {
    {"axis", GRT_ATTR_INT, false}, {"is_inner_broadcast", GRT_ATTR_INT, true}, {0}};
static const op_attr finite_attrs[] = {
    {"isinf_only", GRT_ATTR_INT, false}, {"isnan_only", GRT_ATTR_INT, false}, {0}};
static const op_attr sum_attrs[] = {{"axes", GRT_ATTR_INTS, true}, {"keepdims", GRT_ATTR_INT, true}, {0}};

/* softmax(data + bias) over all dims from `axis` on. Both ways of broadcasting are those of Add. */
static grt_status rewrite_bias_softmax(ir_node *node)
{
    GRT_TRY(foreign_need_rank(node, 0, "data"));
    const int32_t rank = foreign_rank(node, 0);
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 1), rank);
    if (axis < 0)
        return foreign_invalid(node, "attribute axis is %lld; the data has rank %d",
                               (long long)grt_attr_int(&node->desc, "axis", 1), rank);
    ir_value *sum = put2(node, "Add", ir_in(node, 0), ir_in(node, 1));
    if (axis == rank - 1)
        return foreign_done1(node, with_int(put1(node, "Softmax", sum), "axis", -1));
    int64_t dims[GRT_MAX_RANK] = {0};
    dims[axis] = -1;
    ir_value *flat = with_int(put1(node, "Softmax", put_reshape(node, sum, dims, axis + 1)), "axis", -1);
    return foreign_done1(node, put2(node, "Reshape", flat, put1(node, "Shape", ir_in(node, 0))));
}

/* One bool: no element of any input is infinite or no number. */
static grt_status rewrite_finite(ir_node *node)
{
    const bool inf = !grt_attr_int(&node->desc, "isnan_only", 0),
               nan = !grt_attr_int(&node->desc, "isinf_only", 0);
    ir_value *most = put_scalar(node, GRT_DTYPE_INT32, 0);
    if (!inf && !nan)
        return foreign_invalid(node, "isinf_only and isnan_only exclude each other");
    for (int32_t i = 0; i < node->n_in; i++) {
        ir_value *odd = inf ? put1(node, "IsInf", ir_in(node, i)) : NULL;
        ir_value *none = nan ? put1(node, "IsNaN", ir_in(node, i)) : NULL;
        odd = odd && none ? put2(node, "Or", odd, none) : odd ? odd : none;
        ir_value *count =
            with_int(put1(node, "ReduceSum", put_cast(node, odd, GRT_DTYPE_INT32)), "keepdims", 0);
        most = put2(node, "Max", most, count);
    }
    return foreign_done1(node, put2(node, "Equal", most, put_scalar(node, GRT_DTYPE_INT32, 0)));
}

/* Numbers are pairs along the last dim. The conjugate is the second operand's. */
static grt_status multiply_complex(ir_node *node, bool conjugate)
{
    ir_value *part[2][2];
    for (int32_t i = 0; i < 2; i++)
        for (int32_t k = 0; k < 2; k++)
            part[i][k] = put_part(node, ir_in(node, i), -1, k, k + 1);
    ir_value *rr = put2(node, "Mul", part[0][0], part[1][0]), *ii = put2(node, "Mul", part[0][1], part[1][1]),
             *ir = put2(node, "Mul", part[0][1], part[1][0]), *ri = put2(node, "Mul", part[0][0], part[1][1]);
    ir_value *both[] = {put2(node, conjugate ? "Add" : "Sub", rr, ii),
                        put2(node, conjugate ? "Sub" : "Add", ir, ri)};
    return foreign_done1(node, put_concat(node, -1, 2, both));
}

static grt_status rewrite_complex(ir_node *node)
{
    return multiply_complex(node, false);
}

static grt_status rewrite_complex_conjugate(ir_node *node)
{
    return multiply_complex(node, true);
}

static ir_value *wide(ir_node *node, ir_value *x)
{
    return put_cast(node, x, GRT_DTYPE_INT32);
}

/* int16 matrices, int32 sums */
static grt_status rewrite_matmul16(ir_node *node)
{
    return foreign_done1(node, put2(node, "MatMul", wide(node, ir_in(node, 0)), wide(node, ir_in(node, 1))));
}

/* (a, a_zero_point, b, b_zero_point) */
static grt_status rewrite_mul_integer(ir_node *node)
{
    ir_value *x[2];
    for (int32_t i = 0; i < 2; i++) {
        x[i] = wide(node, ir_in(node, 2 * i));
        if (ir_in(node, 2 * i + 1))
            x[i] = put2(node, "Sub", x[i], wide(node, ir_in(node, 2 * i + 1)));
    }
    return foreign_done1(node, put2(node, "Mul", x[0], x[1]));
}

static grt_status rewrite_sum_integer(ir_node *node)
{
    size_t n;
    const int64_t *axes = grt_attr_ints(&node->desc, "axes", &n);
    GRT_TRY(foreign_need(node, 0, "data"));
    const grt_dtype sum = ir_in(node, 0)->type.dtype == GRT_DTYPE_UINT8 ? GRT_DTYPE_UINT32 : GRT_DTYPE_INT32;
    ir_value *y =
        put2(node, "ReduceSum", put_cast(node, ir_in(node, 0), sum), put_ints(node, axes, (int64_t)n));
    return foreign_done1(node, with_attr_of(y, node, "keepdims"));
}

static const op_row rows[] = {
    FOREIGN(MS, "BiasSoftmax", 2, 2, 1, 1, bias_softmax_attrs, rewrite_bias_softmax),
    FOREIGN(MS, "IsAllFinite", 1, OP_VARIADIC, 1, 1, finite_attrs, rewrite_finite),
    FOREIGN(MS, "ComplexMul", 2, 2, 1, 1, NULL, rewrite_complex),
    FOREIGN(MS, "ComplexMulConj", 2, 2, 1, 1, NULL, rewrite_complex_conjugate),
    FOREIGN(MS, "MatMulInteger16", 2, 2, 1, 1, NULL, rewrite_matmul16),
    FOREIGN(MS, "MulInteger", 3, 4, 1, 1, NULL, rewrite_mul_integer),
    FOREIGN(MS, "ReduceSumInteger", 1, 1, 1, 1, sum_attrs, rewrite_sum_integer),
};
OP_TABLE(contrib_simple, rows);
