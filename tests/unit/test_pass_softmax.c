/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax that is written out becomes one node. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define SHIFTED              \
    "in x f32 2,n,5\n"       \
    "const last i64 1 -1\n"  \
    "m = ReduceMax x last\n" \
    "d = Sub x m\n"          \
    "e = Exp d\n"

static void check(const char *text, const char *ops)
{
    ir_module *module = ir_text(text);
    ir_text_pass(module, "softmax");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), ops);
    ir_module_release(module);
}

START_TEST(shifted)
{
    check(SHIFTED "s = ReduceSum e last\ny = Div e s\nout y\n", "Softmax");
    check(SHIFTED "s = ReduceSum e last\nr = Reciprocal s\ny = Mul r e\nout y\n", "Softmax");
    ir_text_check("in x f32 2,3,5\n"
                  "const axis i64 1 1\n"
                  "m = ReduceMax x axis\n"
                  "d = Sub x m\n"
                  "e = Exp d\n"
                  "s = ReduceSum e axis\n"
                  "y = Div e s\n"
                  "out y\n",
                  "softmax", "ReduceMax Sub Exp ReduceSum Softmax");
}
END_TEST

START_TEST(not_shifted)
{
    check("in x f32 2,3\nconst last i64 1 1\ne = Exp x\ns = ReduceSum e last\ny = Div e s\nout y\n",
          "Softmax");
}
END_TEST

/* As JAX writes it: the axis is lost, put back and repeated. */
START_TEST(axis_put_back)
{
    check("in x f32 2,3,5\n"
          "const last i64 1 2\n"
          "const strip i64 3 2 3 1\n"
          "const all i64 3 2 3 5\n"
          "m = ReduceMax x last keepdims=0\n"
          "m1 = Reshape m strip\n"
          "m2 = Expand m1 all\n"
          "d = Sub x m2\n"
          "e = Exp d\n"
          "s = ReduceSum e last keepdims=0\n"
          "s1 = Unsqueeze s last\n"
          "y = Div e s1\n"
          "out y\n",
          "Softmax");
}
END_TEST

START_TEST(maximum_in_front)
{
    check(SHIFTED "y = Softmax d\nout y\n", "Softmax");
    check("in x f32 2,3,5\nconst axis i64 1 1\nm = ReduceMax x axis\nd = Sub x m\ny = Softmax d\nout y\n",
          "ReduceMax Sub Softmax");
}
END_TEST

START_TEST(others_stay)
{
    /* exponentials with another reader */
    check(SHIFTED "s = ReduceSum e last\ny = Div e s\nz = Add y e\nout z\n",
          "ReduceMax Sub Exp ReduceSum Div Add");
    /* the sum of other numbers */
    check(SHIFTED "in w f32 2,n,5\ns = ReduceSum w last\ny = Div e s\nout y\n",
          "ReduceMax Sub Exp ReduceSum Div");
    /* a sum that broadcasts along the wrong dim */
    check(
        "in x f32 5,5\nconst last i64 1 1\ne = Exp x\ns = ReduceSum e last keepdims=0\ny = Div e s\nout y\n",
        "Exp ReduceSum Div");
}
END_TEST

/* A maximum along another axis is no shift: it stays, in front of the Softmax. */
START_TEST(maximum_along_another_axis)
{
    check("in x f32 2,3,5\n"
          "const last i64 1 2\n"
          "const axis i64 1 1\n"
          "m = ReduceMax x axis\n"
          "d = Sub x m\n"
          "e = Exp d\n"
          "s = ReduceSum e last\n"
          "y = Div e s\n"
          "out y\n",
          "ReduceMax Sub Softmax");
    check(SHIFTED "const first i64 1 0\ns = ReduceSum e first\ny = Div e s\nout y\n",
          "ReduceMax Sub Softmax");
}
END_TEST

UNIT_SUITE(test_pass_softmax, NULL, NULL, shifted, not_shifted, axis_put_back, maximum_in_front, others_stay,
           maximum_along_another_axis)
