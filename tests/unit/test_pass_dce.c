/* SPDX-License-Identifier: Apache-2.0 */
/* Unused nodes and unused optional outputs are removed. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

START_TEST(dead_chains)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Relu x\n"
                  "b = Neg a\n"
                  "c = Exp b\n"
                  "y = Abs x\n"
                  "out y\n",
                  "dce", "Abs");
}
END_TEST

START_TEST(a_used_second_output_keeps_the_node)
{
    ir_text_check("in x f32 4\n"
                  "const n i64 2 1 3\n"
                  "a,b = Split x n\n"
                  "c = Relu b\n"
                  "out c\n",
                  "dce", "Split Relu");
}
END_TEST

START_TEST(optional_outputs)
{
    ir_module *m = ir_text("in x f32 2,4\n"
                           "const s f32 4 1\n"
                           "y,mean,dev = LayerNormalization x s\n"
                           "out y\n");
    ir_text_pass(m, "dce");
    ck_assert_int_eq(ir_text_node(m, "LayerNormalization", 0)->n_out, 1);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_dce(void)
{
    Suite *suite = suite_create("pass_dce");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, dead_chains);
    tcase_add_test(tc, a_used_second_output_keeps_the_node);
    tcase_add_test(tc, optional_outputs);
    suite_add_tcase(suite, tc);
    return suite;
}
