/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers that do not wait for each other become one step. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

START_TEST(features_of_a_recommender)
{
    ir_text_check("in ids i64 3,2\n"
                  "const zero i64 - 0\n"
                  "const one i64 - 1\n"
                  "const a f32 7,4\n"
                  "const b f32 5,6\n"
                  "ci = Mod ids ids\n"
                  "c0 = Gather ci zero axis=1\n"
                  "e0 = Gather a c0\n"
                  "c1 = Gather ci one axis=-1\n"
                  "e1 = Gather b c1\n"
                  "y = Concat e0 e1 axis=1\n"
                  "out y\n",
                  "merge_gathers", "Mod graphrt::GatherEach graphrt::GatherEach Concat");
}
END_TEST

START_TEST(names_and_outputs_stay)
{
    ir_module *m = ir_text("in i i32 n\n"
                           "in k i64 2,2\n"
                           "const a f16 9,4\n"
                           "const b f16 9,3,2\n"
                           "y = Gather a i\n"
                           "z = Gather b k\n"
                           "out z\n"
                           "out y\n");
    ck_assert_int_eq(ir_text_pass(m, "merge_gathers"), 2);
    const ir_node *made = ir_text_node(m, "GatherEach", 0);
    ck_assert_str_eq(made->desc.name, "y+z");
    ck_assert_str_eq(made->out[0]->name, "y");
    ck_assert_str_eq(made->out[1]->name, "z");
    ck_assert_int_eq(made->out[1]->type.rank, 4);
    ir_module_release(m);
}
END_TEST

START_TEST(what_differs_stays)
{
    ir_text_check("in i i64 4,4\n" /* another axis, another type, one that waits, a list */
                  "const zero i64 - 0\n"
                  "const k i64 2 1 0\n"
                  "const a f32 7,4\n"
                  "const b f16 7,4\n"
                  "const c i64 5\n"
                  "m = Mod i i\n"
                  "w = Gather a k axis=1\n"
                  "x = Gather a k\n"
                  "y = Gather b k\n"
                  "n = Gather m zero\n"
                  "z = Gather a n\n"
                  "l = Gather c k\n"
                  "out w\n"
                  "out x\n"
                  "out y\n"
                  "out z\n"
                  "out l\n",
                  "merge_gathers", "Mod Gather Gather Gather Gather Gather Gather");
}
END_TEST

START_TEST(large_results_stay)
{
    ir_text_check("in i i64 2,1100\n"
                  "const a f32 3,1000\n"
                  "m = Mod i i\n"
                  "x = Gather a m\n"
                  "y = Gather a m\n"
                  "r = ReduceMax x keepdims=0\n"
                  "s = ReduceMax y keepdims=0\n"
                  "out r\n"
                  "out s\n",
                  "merge_gathers", "Mod Gather Gather ReduceMax ReduceMax");
}
END_TEST

UNIT_SUITE(test_pass_merge_gathers, NULL, NULL, features_of_a_recommender, names_and_outputs_stay,
           what_differs_stays, large_results_stay)
