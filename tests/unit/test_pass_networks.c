/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of small batched products become one node, which computes the same. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

/* What is left after the pass. */
static void expect(const char *text, const char *ops)
{
    ir_module *m = ir_text(text);
    (void)ir_text_pass(m, "networks");
    (void)ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), ops);
    ir_module_release(m);
}

#define TWO_LAYERS                                \
    "const a f32 20,6,5\n"                        \
    "const b f32 20,1,5\n"                        \
    "const c f32 20,5,2\n"                        \
    "const d f32 20,1,2\n"                        \
    "h = graphrt::MatMul t a b activation=Relu\n" \
    "u = graphrt::MatMul h c d activation=Clip alpha=-0.5 beta=0.75\n"

START_TEST(rows_are_not_moved)
{
    static const char text[] = "in x f32 3,20,6\n"
                               "t = Transpose x perm=1,0,2\n" TWO_LAYERS "y = Transpose u perm=1,0,2\n"
                               "out y\n";
    expect(text, "graphrt::Networks");
    ir_text_check(text, "", "graphrt::Networks");
}
END_TEST

START_TEST(one_row_needs_no_move)
{
    static const char text[] = "in t f32 20,1,6\n" TWO_LAYERS "out u\n";
    expect(text, "Reshape graphrt::Networks Reshape");
    ir_text_check(text, "", "Reshape graphrt::Networks Reshape");
}
END_TEST

START_TEST(weights_may_be_turned)
{
    static const char text[] = "in x f32 3,20,6\n"
                               "const a f32 20,5,6\n"
                               "const b f32 20,5,2\n"
                               "t = Transpose x perm=1,0,2\n"
                               "h = graphrt::MatMul t a transB=1 activation=Tanh\n"
                               "u = MatMul h b\n"
                               "y = Transpose u perm=1,0,2\n"
                               "out y\n";
    expect(text, "graphrt::Networks");
    ir_text_check(text, "", "graphrt::Networks");
}
END_TEST

START_TEST(weights_of_neighbours_are_neighbours)
{
    ir_module *m = ir_text("in t f32 20,1,6\n" TWO_LAYERS "out u\n");
    const grt_tensor *a = ir_in(ir_text_node(m, "MatMul", 0), 1)->type.data,
                     *d = ir_in(ir_text_node(m, "MatMul", 1), 2)->type.data;
    ck_assert_int_eq(ir_text_pass(m, "networks"), 2);
    const ir_node *made = ir_text_node(m, "Networks", 0);
    const float *w = ir_in(made, 1)->type.data->data, *bias = ir_in(made, 4)->type.data->data;
    for (int n = 0; n < 20; n++)
        for (int i = 0; i < 6; i++)
            for (int o = 0; o < 5; o++)
                ck_assert_float_eq(w[(i * 5 + o) * 32 + n], ((const float *)a->data)[(n * 6 + i) * 5 + o]);
    for (int n = 0; n < 20; n++)
        for (int o = 0; o < 2; o++)
            ck_assert_float_eq(bias[o * 32 + n], ((const float *)d->data)[n * 2 + o]);
    ir_module_release(m);
}
END_TEST

START_TEST(what_stays)
{
    expect("in t f32 20,1,40\n" /* wide ones have enough to do */
           "const a f32 20,40,8\n"
           "y = MatMul t a\n"
           "out y\n",
           "MatMul");
    expect("in t f32 8,1,6\n" /* few */
           "const a f32 8,6,5\n"
           "y = MatMul t a\n"
           "out y\n",
           "MatMul");
    expect("in t f32 20,3,6\n" /* rows that would have to be moved for it */
           "const a f32 20,6,5\n"
           "y = MatMul t a\n"
           "out y\n",
           "MatMul");
    expect("in t f32 20,1,6\n" /* a product of two tensors of the run; a residual */
           "in v f32 20,6,5\n"
           "in r f32 20,1,5\n"
           "const a f32 20,6,5\n"
           "p = MatMul t v\n"
           "q = graphrt::MatMul t a _ r\n"
           "y = Add p q\n"
           "out y\n",
           "MatMul graphrt::MatMul Add");
}
END_TEST

START_TEST(only_where_the_target_gains)
{
    ir_module *m = ir_text("in t f32 20,1,6\n" TWO_LAYERS "out u\n");
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.joins_networks = false;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_networks(&context), GRT_OK);
    ck_assert_int_eq(context.changed, 0);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_networks(void);
Suite *suite_test_pass_networks(void)
{
    Suite *suite = suite_create("test_pass_networks");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, rows_are_not_moved);
    tcase_add_test(tests, one_row_needs_no_move);
    tcase_add_test(tests, weights_may_be_turned);
    tcase_add_test(tests, weights_of_neighbours_are_neighbours);
    tcase_add_test(tests, what_stays);
    tcase_add_test(tests, only_where_the_target_gains);
    suite_add_tcase(suite, tests);
    return suite;
}
