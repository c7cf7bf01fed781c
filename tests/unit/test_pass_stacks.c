/* SPDX-License-Identifier: Apache-2.0 */
/* Folds over a stack of values are computed of the values. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>

static const char head[] = "in a f32 2,3,4\nin b f32 2,3,4\nconst last i64 1 -1\nconst other i64 1 1\n"
                           "p = Unsqueeze a last\nq = Unsqueeze b last\ns = Concat p q axis=-1\n";

START_TEST(values_are_folded)
{
    static const char *const ops[][2] = {
        {"ReduceMean", "Add Mul"}, {"ReduceSum", "Add"}, {"ReduceMax", "Max"}, {"ReduceMin", "Min"}};
    char text[400], expected[80];
    snprintf(text, sizeof text, "%sy = %s s last keepdims=0\nout y\n", head, ops[_i][0]);
    snprintf(expected, sizeof expected, "Unsqueeze Unsqueeze Concat %s", ops[_i][1]);
    ir_text_check(text, "stacks", expected);
}
END_TEST

/* Another axis, an axis that stays, and a stack with other readers. */
START_TEST(others_stay)
{
    static const char *const tails[][2] = {
        {"y = ReduceMean s other keepdims=0\nout y\n", "ReduceMean"},
        {"y = ReduceMean s last keepdims=1\nout y\n", "ReduceMean"},
        {"y = ReduceMean s last keepdims=0\nz = Relu s\nout y\nout z\n", "ReduceMean Relu"}};
    char text[400], expected[80];
    snprintf(text, sizeof text, "%s%s", head, tails[_i][0]);
    snprintf(expected, sizeof expected, "Unsqueeze Unsqueeze Concat %s", tails[_i][1]);
    ir_text_check(text, "stacks", expected);
}
END_TEST

Suite *suite_test_pass_stacks(void);
Suite *suite_test_pass_stacks(void)
{
    Suite *suite = suite_create("pass_stacks");
    TCase *tests = tcase_create("pass_stacks");
    tcase_add_loop_test(tests, values_are_folded, 0, 4);
    tcase_add_loop_test(tests, others_stay, 0, 3);
    suite_add_tcase(suite, tests);
    return suite;
}
