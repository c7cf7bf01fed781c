/* SPDX-License-Identifier: Apache-2.0 */
/* Connected element-wise nodes become one group. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

START_TEST(a_chain)
{
    ir_text_check("in x f32 2,3\n"
                  "const c f32 - 2\n"
                  "a = Mul x c\n"
                  "b = Sigmoid a\n"
                  "y = Add b x\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(a_diamond)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Exp x\n"
                  "b = Neg a\n"
                  "c = Abs a\n"
                  "y = Mul b c\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(one_node_stays)
{
    ir_text_check("in x f32 2,3\n"
                  "y = Exp x\n"
                  "out y\n",
                  "pointwise", "Exp");
}
END_TEST

START_TEST(an_output_inside_ends_the_group)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Exp x\n"
                  "b = Neg a\n"
                  "y = Abs b\n"
                  "out a\n"
                  "out y\n",
                  "pointwise", "Exp graphrt::Pointwise");
}
END_TEST

START_TEST(a_path_outside_and_back)
{
    ir_text_check("in x f32 3,3\n"
                  "a = Exp x\n"
                  "b = MatMul a a\n"
                  "c = Neg a\n"
                  "d = Add b c\n"
                  "y = Abs d\n"
                  "out y\n",
                  "pointwise", "Exp MatMul graphrt::Pointwise");
}
END_TEST

START_TEST(broadcast_inputs)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in u f32 3,1\n"
                  "in v f32 4\n"
                  "a = Mul x u\n"
                  "b = Add a v\n"
                  "y = Tanh b\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(smaller_work_stays_outside)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in u f32 3,1\n"
                  "c = Exp u\n"
                  "d = Neg c\n"
                  "a = Mul x d\n"
                  "y = Tanh a\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise graphrt::Pointwise");
}
END_TEST

START_TEST(conditions)
{
    ir_text_check("in x f32 2,3\n"
                  "const zero f32 - 0\n"
                  "a = IsNaN x\n"
                  "y = Where a zero x\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(clip_without_a_bound)
{
    ir_text_check("in x f32 2,3\n"
                  "const lo f32 - 0\n"
                  "a = Neg x\n"
                  "y = Clip a lo\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(integers_stay)
{
    ir_text_check("in x i64 3\n"
                  "a = Neg x\n"
                  "y = Abs a\n"
                  "out y\n",
                  "pointwise", "Neg Abs");
}
END_TEST

START_TEST(mixed_dtypes_split)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Neg x\n"
                  "b = Abs a\n"
                  "c = Cast b to=11\n"
                  "d = Neg c\n"
                  "y = Exp d\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise Cast Neg Exp");
}
END_TEST

START_TEST(casts_at_the_edges)
{
    ir_text_check("in x f16 2,3\n"
                  "in u f32 2,1\n"
                  "w = Cast x to=1\n"
                  "a = Mul w u\n"
                  "b = Add a w\n"
                  "y = Cast b to=10\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
    ir_text_check("in x f32 2,3\n"
                  "in u f32 2,3\n"
                  "a = Less x u\n"
                  "b = Cast a to=1\n"
                  "y = Cast b to=16\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
    ir_text_check("in x f16 2,3\n"
                  "in u f32 2,3\n"
                  "w = Cast x to=1\n"
                  "y = Less w u\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(casts_that_stay)
{
    ir_text_check("in x f16 2,3\n"
                  "y = Cast x to=1\n"
                  "out y\n",
                  "pointwise", "Cast");
    ir_text_check("in x bool 2,3\n"
                  "a = Cast x to=10\n"
                  "y = Cast a to=1\n"
                  "out y\n",
                  "pointwise", "Cast Cast");
    ir_text_check("in x f16 2,3\n"
                  "w = Cast x to=1\n"
                  "y = Exp w\n"
                  "z = Softmax w\n"
                  "out y\n"
                  "out z\n",
                  "pointwise", "Cast Exp Softmax");
    ir_text_check("in x f32 2,3\n"
                  "a = Exp x\n"
                  "y = Cast a to=9\n"
                  "out y\n",
                  "pointwise", "Exp Cast");
}
END_TEST

/* What a model rounds or overflows by a Cast is rounded and overflows in a group, too. */
START_TEST(casts_that_round)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Cast x to=10\n"
                  "b = Cast a to=1\n"
                  "c = Sub b x\n"
                  "y = Mul c x\n"
                  "out y\n",
                  "pointwise", "Cast graphrt::Pointwise");
    ir_text_check("in x f32 2,3\n"
                  "in u f16 2,3\n"
                  "a = Exp x\n"
                  "b = Cast a to=10\n"
                  "c = Add b u\n"
                  "d = Cast c to=1\n"
                  "y = Mul d x\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise Add graphrt::Pointwise");
    ir_text_check("in x f16 2,3\n"
                  "a = Cast x to=16\n"
                  "b = Neg a\n"
                  "y = Exp b\n"
                  "out y\n",
                  "pointwise", "Cast graphrt::Pointwise");
}
END_TEST

START_TEST(repeated_inputs)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Mul x x\n"
                  "y = Add a a\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

/* A step costs more than what is done again for each element. */
START_TEST(single_numbers_join)
{
    ir_text_check("in x f32 2,3\n"
                  "in s f32 -\n"
                  "a = Neg s\n"
                  "b = Max x a\n"
                  "y = Min b s\n"
                  "out y\n",
                  "pointwise", "graphrt::Pointwise");
}
END_TEST

START_TEST(a_constant_that_gives_the_shape)
{
    ir_text_check("in x f32 -\n"
                  "const c f32 1,1 2\n"
                  "a = Mul x c\n"
                  "y = Neg a\n"
                  "out y\n",
                  "pointwise", "Mul Neg");
}
END_TEST

Suite *suite_test_pass_pointwise(void)
{
    Suite *suite = suite_create("pass_pointwise");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, a_chain);
    tcase_add_test(tc, a_diamond);
    tcase_add_test(tc, one_node_stays);
    tcase_add_test(tc, an_output_inside_ends_the_group);
    tcase_add_test(tc, a_path_outside_and_back);
    tcase_add_test(tc, broadcast_inputs);
    tcase_add_test(tc, smaller_work_stays_outside);
    tcase_add_test(tc, conditions);
    tcase_add_test(tc, clip_without_a_bound);
    tcase_add_test(tc, integers_stay);
    tcase_add_test(tc, mixed_dtypes_split);
    tcase_add_test(tc, casts_at_the_edges);
    tcase_add_test(tc, casts_that_stay);
    tcase_add_test(tc, casts_that_round);
    tcase_add_test(tc, repeated_inputs);
    tcase_add_test(tc, single_numbers_join);
    tcase_add_test(tc, a_constant_that_gives_the_shape);
    suite_add_tcase(suite, tc);
    return suite;
}
