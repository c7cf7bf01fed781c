/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `simplify`: whether any element is infinite, and what is clamped for it. */
#include "tests/unit/ir_text.h"

#include <check.h>

/* As torch.export writes T5's layers in half. */
START_TEST(any_of_truths)
{
    ir_text_check("in x f32 3,4\n"
                  "const axes i64 2 0 1\n"
                  "i = IsInf x\n"
                  "n = Cast i to=7\n"
                  "m = ReduceMax n axes keepdims=0\n"
                  "y = Cast m to=9\n"
                  "out y\n",
                  "simplify", "IsInf ReduceMax");
}
END_TEST

START_TEST(all_of_truths)
{
    ir_text_check("in x f32 3,4\n"
                  "const axes i64 1 1\n"
                  "i = IsInf x\n"
                  "n = Cast i to=6\n"
                  "m = ReduceMin n axes\n"
                  "y = Cast m to=9\n"
                  "out y\n",
                  "simplify", "IsInf ReduceMin");
}
END_TEST

/* As the TorchScript exporter writes them. */
START_TEST(counted_truths)
{
    ir_text_check("in x f32 3,4\n"
                  "const zero i64 - 0\n"
                  "i = IsInf x\n"
                  "n = Cast i to=7\n"
                  "m = ReduceSum n keepdims=0\n"
                  "y = Greater m zero\n"
                  "out y\n",
                  "simplify", "IsInf ReduceMax");
}
END_TEST

/* Of no elements, or perhaps none; of other numbers than truths; sums that may wrap; another limit. */
START_TEST(others_stay)
{
    static const char *const texts[] = {
        "in x f32 0,4\nconst axes i64 1 0\ni = IsInf x\nn = Cast i to=7\nm = ReduceMax n axes\n"
        "y = Cast m to=9\nout y\n",
        "in x f32 n,4\nconst axes i64 1 0\ni = IsInf x\nn = Cast i to=7\nm = ReduceMax n axes\n"
        "y = Cast m to=9\nout y\n",
        "in x i32 3,4\nn = Cast x to=7\nm = ReduceMax n\ny = Cast m to=9\nout y\n",
        "in x f32 3,4\nconst z i32 - 0\ni = IsInf x\nn = Cast i to=6\nm = ReduceSum n\ny = Greater m z\n"
        "out y\n",
        "in x f32 3,4\nconst z i64 - 1\ni = IsInf x\nn = Cast i to=7\nm = ReduceSum n\ny = Greater m z\n"
        "out y\n"};
    ir_module *m = ir_text(texts[_i]);
    ck_assert_int_eq(ir_text_pass(m, "simplify"), 0);
    ir_module_release(m);
}
END_TEST

/* Both numbers are folded, and each reader has a choice of its own. */
START_TEST(choices)
{
    ir_module *m = ir_text("in x f32 3,4\n"
                           "in c bool -\n"
                           "const a f32 - 64504\n"
                           "const b f32 - 65504\n"
                           "w = Where c a b\n"
                           "n = Neg w\n"
                           "low = Cast n to=10\n"
                           "high = Cast w to=10\n"
                           "h = Cast x to=10\n"
                           "y = Clip h low high\n"
                           "out y\n");
    for (int i = 0; i < 2; i++) {
        ir_text_pass(m, "simplify");
        ir_text_pass(m, "fold");
    }
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), "Where Where Cast Clip");
    double low, high;
    ck_assert(ir_const_float(ir_in(ir_text_node(m, "Where", 0), 1), &low));
    ck_assert(ir_const_float(ir_in(ir_text_node(m, "Where", 1), 1), &high));
    ck_assert_double_eq(low, -64512); /* as float16 has it */
    ck_assert_double_eq(high, 64512);
    ir_module_release(m);
}
END_TEST

START_TEST(choices_of_more_stay)
{
    ir_module *m = ir_text("in c bool 3\n"
                           "const a f32 - 1\n"
                           "const b f32 - 2\n"
                           "w = Where c a b\n"
                           "y = Neg w\n"
                           "out y\n");
    ck_assert_int_eq(ir_text_pass(m, "simplify"), 0);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_simplify_truths(void);
Suite *suite_test_simplify_truths(void)
{
    Suite *suite = suite_create("simplify_truths");
    TCase *tests = tcase_create("simplify_truths");
    tcase_add_test(tests, any_of_truths);
    tcase_add_test(tests, all_of_truths);
    tcase_add_test(tests, counted_truths);
    tcase_add_loop_test(tests, others_stay, 0, 5);
    tcase_add_test(tests, choices);
    tcase_add_test(tests, choices_of_more_stay);
    suite_add_tcase(suite, tests);
    return suite;
}
