/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of constants are folded, within the budget. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

START_TEST(arithmetic)
{
    ir_text_check("in x f32 2,3\n"
                  "const a f32 3 1 2 3\n"
                  "const b f32 - 2\n"
                  "c = Mul a b\n"
                  "d = Add c b\n"
                  "y = Add x d\n"
                  "out y\n",
                  "fold", "Add");
}
END_TEST

START_TEST(a_constant_output_keeps_its_name)
{
    ir_text_check("const a f32 3 1 2 3\n"
                  "b = Neg a\n"
                  "out b\n",
                  "fold", "");
}
END_TEST

/* A mask of a whole batch, larger than what is folded: one slice of it is, and what reads it broadcasts. */
START_TEST(slices_that_repeat)
{
    ir_module *m = ir_text("in x f32 40,1,200,200\n"
                           "const a f32 40,1,200,1 1\n"
                           "const b f32 200,200\n"
                           "c = Sub a b\n"
                           "d = Exp c\n"
                           "y = Mul x d\n"
                           "out y\n");
    ir_text_pass(m, "fold");
    ir_text_pass(m, "simplify");
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), "Mul");
    ck_assert_int_eq(ir_in(ir_text_node(m, "Mul", 0), 1)->type.data->dims[0], 1);
    ir_module_release(m);
}
END_TEST

START_TEST(slices_that_repeat_compute_the_same)
{
    ir_text_check("in x f32 40,1,100,100\n"
                  "const a f32 40,1,100,1 1\n"
                  "const b f32 100,100\n"
                  "c = Sub a b\n"
                  "y = Mul x c\n"
                  "out y\n",
                  "fold", "Expand Mul");
}
END_TEST

/* 400 kB, of which a product reads 4 MB, and an addition one slice. */
START_TEST(factors_are_made_once)
{
    const bool factor = _i;
    ir_module *m =
        ir_text(factor ? "in x f32 10,1,100\nconst w f32 1,100,1000\nconst s i64 3 10 100 1000\n"
                         "e = Expand w s\ny = MatMul x e\nout y\n"
                       : "in x f32 10,100,1000\nconst w f32 1,100,1000\nconst s i64 3 10 100 1000\n"
                         "e = Expand w s\ny = Add x e\nout y\n");
    ir_text_pass(m, "fold");
    ck_assert_str_eq(ir_text_ops(m), factor ? "MatMul" : "Expand Add");
    ir_module_release(m);
}
END_TEST

START_TEST(slices_that_differ)
{
    ir_text_check("in x f32 40,1,100,100\n"
                  "const a f32 40,1,100,1\n"
                  "const b f32 100,100\n"
                  "c = Sub a b\n"
                  "y = Mul x c\n"
                  "out y\n",
                  "fold", "Sub Mul");
}
END_TEST

START_TEST(views_of_constants)
{
    ir_text_check("in x f32 2,3\n"
                  "const a f32 6 1 2 3\n"
                  "const s i64 2 2 3\n"
                  "b = Reshape a s\n"
                  "y = Add x b\n"
                  "out y\n",
                  "fold", "Add");
}
END_TEST

START_TEST(shapes_of_fixed_dims)
{
    ir_text_check("in x f32 2,3,4\n"
                  "s = Shape x\n"
                  "const i i64 1 1\n"
                  "const ax i64 1 0\n"
                  "g = Gather s i\n"
                  "const m i64 1 -1\n"
                  "c = Concat g m axis=0\n"
                  "y = Reshape x c\n"
                  "out y\n",
                  "fold", "Reshape");
}
END_TEST

START_TEST(random_numbers_are_not_constants)
{
    ir_module *m = ir_text("const s i64 1 3\n"
                           "a = ConstantOfShape s\n"
                           "y = RandomNormalLike a\n"
                           "out y\n");
    ir_text_pass(m, "fold");
    ck_assert_str_eq(ir_text_ops(m), "RandomNormalLike");
    ir_module_release(m);
}
END_TEST

START_TEST(nothing_huge_is_made_of_little)
{
    ir_module *m = ir_text("const s i64 2 1048576 4096\n"
                           "a = ConstantOfShape s\n"
                           "const i i64 1 5\n"
                           "y = Gather a i\n"
                           "out y\n");
    ir_text_pass(m, "fold");
    ck_assert_str_eq(ir_text_ops(m), "ConstantOfShape Gather");
    ir_module_release(m);
}
END_TEST

START_TEST(symbolic_shapes_stay_until_they_are_known)
{
    ir_module *m = ir_text("in x f32 n,6\n"
                           "s = Shape x\n"
                           "const i i64 - 0\n"
                           "const ax i64 1 0\n"
                           "g = Gather s i\n"
                           "u = Unsqueeze g ax\n"
                           "const r i64 2 2 3\n"
                           "c = Concat u r axis=0\n"
                           "y = Reshape x c\n"
                           "out y\n");
    ir_text_pass(m, "fold");
    ck_assert_str_eq(ir_text_ops(m), "Shape Gather Unsqueeze Concat Reshape");
    const ir_type *y = &m->main->outputs[0].value->type;
    ck_assert_int_eq(y->dims[0], grt_dim_symbol(m->dims, "n"));
    ir_text_pass(m, "drop_shape_inputs");
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), "Reshape");
    ck_assert_ptr_null(ir_text_node(m, "Reshape", 0)->in[1].value);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_fold(void)
{
    Suite *suite = suite_create("pass_fold");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, arithmetic);
    tcase_add_test(tc, a_constant_output_keeps_its_name);
    tcase_add_test(tc, slices_that_repeat);
    tcase_add_test(tc, slices_that_repeat_compute_the_same);
    tcase_add_loop_test(tc, factors_are_made_once, 0, 2);
    tcase_add_test(tc, slices_that_differ);
    tcase_add_test(tc, views_of_constants);
    tcase_add_test(tc, shapes_of_fixed_dims);
    tcase_add_test(tc, random_numbers_are_not_constants);
    tcase_add_test(tc, nothing_huge_is_made_of_little);
    tcase_add_test(tc, symbolic_shapes_stay_until_they_are_known);
    suite_add_tcase(suite, tc);
    return suite;
}
