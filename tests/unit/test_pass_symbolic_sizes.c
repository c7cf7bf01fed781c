/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `sizes`. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

static void check_ops(const char *text, const char *expected)
{
    ir_module *m = ir_text(text);
    ir_text_pass(m, "symbolic_sizes");
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), expected);
    ir_module_release(m);
}

START_TEST(of_an_intermediate_value)
{
    check_ops("in x f32 n,4\n"
              "const zero i64 - 0\n"
              "const one i64 - 1\n"
              "y = Relu x\n"
              "s = Shape y\n"
              "b = Gather s zero\n"
              "r = Range zero b one\n"
              "out y\n"
              "out r\n",
              "Relu Shape Squeeze Range");
}
END_TEST

/* n * 2 is nobody's size, and what it is computed from is. */
START_TEST(what_is_no_size_stays)
{
    check_ops("in x f32 n,4\n"
              "const zero i64 - 0\n"
              "const two i64 - 2\n"
              "y = Concat x x axis=0\n"
              "s = Shape y\n"
              "b = Gather s zero\n"
              "t = Shape x start=0 end=1\n"
              "u = Squeeze t\n"
              "r = Mul b u\n"
              "out y\n"
              "out r\n",
              "Concat Shape Gather Shape Squeeze Mul");
}
END_TEST

/* [n, 8] of a Concat of a size and a constant, and of a Shape as a whole */
START_TEST(whole_shapes)
{
    check_ops("in x f32 n,2,4\n"
              "in z f32 n,8\n"
              "const w i64 2 -1 8\n"
              "y = Reshape x w\n"
              "s = Shape y\n"
              "e = Expand z s\n"
              "out e\n",
              "Shape Concat Expand");
}
END_TEST

UNIT_SUITE(test_pass_symbolic_sizes, NULL, NULL, of_an_intermediate_value, what_is_no_size_stays,
           whole_shapes)
