/* SPDX-License-Identifier: Apache-2.0 */
/* Large products get columns of zeros until rows of the result are whole vectors. */
#include "tests/unit/ir_text.h"
#include <check.h>

#include <stdio.h>

static int64_t fill(ir_module *m, bool gains)
{
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.half_floats = gains;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_whole_columns(&context), GRT_OK);
    return context.changed;
}

/* As pass `precision` leaves a product that may be computed in TF32, or not. */
static ir_module *model(const char *dtype, const char *rows, int columns, bool turned, bool tf32)
{
    char text[400];
    snprintf(text, sizeof text,
             "in x %s %s,512\nconst w %s %d,%d\nconst b %s %d\n"
             "y = graphrt::MatMul x w b activation=Relu transB=%d\nout y\n",
             dtype, rows, dtype, turned ? columns : 512, turned ? 512 : columns, dtype, columns, turned);
    ir_module *m = ir_text(text);
    if (tf32)
        ir_attr_set_string(ir_text_node(m, "MatMul", 0), "math", "tf32");
    return m;
}

START_TEST(columns_are_filled_up)
{
    const bool turned = _i;
    ir_module *plain = model("f32", "4096", 131, turned, true), *m = model("f32", "4096", 131, turned, true);
    ck_assert_int_eq(fill(m, true), 1);
    ck_assert_str_eq(ir_text_ops(m), "graphrt::MatMul Slice");
    const ir_node *product = ir_text_node(m, "MatMul", 0);
    ck_assert_int_eq(ir_in(product, 1)->type.data->dims[turned ? 0 : 1], 132);
    ck_assert_int_eq(ir_in(product, 2)->type.data->dims[0], 132);
    ck_assert_str_eq(ir_text_node(m, "Slice", 0)->out[0]->name, "y");
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ir_text_compare(plain, m);
    ck_assert_int_eq(fill(m, true), 0);
    ir_module_release(plain);
    ir_module_release(m);
}
END_TEST

START_TEST(rows_of_any_number)
{
    ir_module *m = model("f16", "seq", 4099, true, false);
    ck_assert_int_eq(fill(m, true), 1);
    ck_assert_int_eq(ir_in(ir_text_node(m, "MatMul", 0), 1)->type.data->dims[0], 4104);
    ir_module_release(m);
}
END_TEST

/* Whole vectors, small products, few rows in TF32, float32 as it is, and targets that gain nothing. */
START_TEST(other_products_stay)
{
    static const struct {
        const char *dtype, *rows;
        int columns;
        bool tf32, gains;
    } cases[] = {{"f32", "4096", 1004, true, true}, {"f16", "8", 1003, false, true},
                 {"f32", "600", 1003, true, true},  {"f32", "seq", 4099, true, true},
                 {"f32", "4096", 131, false, true}, {"f32", "4096", 131, true, false}};
    ir_module *m = model(cases[_i].dtype, cases[_i].rows, cases[_i].columns, true, cases[_i].tf32);
    ck_assert_int_eq(fill(m, cases[_i].gains), 0);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_whole_columns(void);
Suite *suite_test_pass_whole_columns(void)
{
    Suite *suite = suite_create("pass_whole_columns");
    TCase *tests = tcase_create("pass_whole_columns");
    tcase_add_loop_test(tests, columns_are_filled_up, 0, 2);
    tcase_add_test(tests, rows_of_any_number);
    tcase_add_loop_test(tests, other_products_stay, 0, 6);
    suite_add_tcase(suite, tests);
    return suite;
}
