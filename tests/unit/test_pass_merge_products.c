/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row with the same input become one. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>

START_TEST(all_of_one_input)
{
    ir_text_check("in x f32 1,1,8\n"
                  "const a f32 8,32\n"
                  "const b f32 8,16\n"
                  "const c f32 8,48\n"
                  "q = MatMul x a\n"
                  "k = MatMul x b\n"
                  "r = Relu q\n"
                  "v = MatMul x c\n"
                  "s = Sqrt k\n"
                  "t = Neg v\n"
                  "out r\n"
                  "out s\n"
                  "out t\n",
                  "merge_products", "MatMul Split Relu Sqrt Neg");
}
END_TEST

START_TEST(parts_are_the_products)
{
    ir_module *m = ir_text("in x f32 1,8\n"
                           "const a f32 8,32\n"
                           "const b f32 8,16\n"
                           "y = MatMul x a\n"
                           "z = MatMul x b\n"
                           "out z\n"
                           "out y\n");
    const grt_tensor *a = ir_in(ir_text_node(m, "MatMul", 0), 1)->type.data,
                     *b = ir_in(ir_text_node(m, "MatMul", 1), 1)->type.data;
    ck_assert_int_eq(ir_text_pass(m, "merge_products"), 2);
    const ir_node *product = ir_text_node(m, "MatMul", 0), *split = ir_text_node(m, "Split", 0);
    ck_assert_str_eq(product->desc.name, "y+z");
    const float *all = ir_in(product, 1)->type.data->data;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 48; k++)
            ck_assert_float_eq(all[i * 48 + k], k < 32 ? ((const float *)a->data)[i * 32 + k]
                                                       : ((const float *)b->data)[i * 16 + k - 32]);
    /* Outputs of the model keep their names and places. */
    ck_assert_str_eq(split->out[0]->name, "y");
    ck_assert_str_eq(split->out[1]->name, "z");
    ck_assert_ptr_eq(m->main->outputs[0].value, split->out[1]);
    ir_module_release(m);
}
END_TEST

START_TEST(fused_forms)
{
    ir_text_check("in x f32 1,8\n"
                  "const a f32 8,16\n"
                  "const b f32 8,32\n"
                  "const c f32 16\n"
                  "const d f32 32\n"
                  "y = graphrt::MatMul x a c activation=Relu scale=2\n"
                  "z = graphrt::MatMul x b d activation=Relu scale=2\n"
                  "s = Add z z\n"
                  "out y\n"
                  "out s\n",
                  "merge_products", "graphrt::MatMul Split Add");
    ir_text_check("in x f32 1,8\n"
                  "const a f32 16,8\n"
                  "const b f32 32,8\n"
                  "y = graphrt::MatMul x a transB=1\n"
                  "z = graphrt::MatMul x b transB=1\n"
                  "out y\n"
                  "out z\n",
                  "merge_products", "graphrt::MatMul Split");
    ir_text_check("in x f32 1,8\n"
                  "const a f32 16,8\n"
                  "const b f32 32,8\n"
                  "const c f32 16\n"
                  "const d f32 32\n"
                  "y = Gemm x a c transB=1 alpha=0.5\n"
                  "z = Gemm x b d transB=1 alpha=0.5\n"
                  "out y\n"
                  "out z\n",
                  "merge_products", "Gemm Split");
}
END_TEST

START_TEST(what_differs_stays)
{
    ir_text_check("in x f32 1,8\n" /* two families, and one alone */
                  "const a f32 8,16\n"
                  "const b f32 8,16\n"
                  "const c f32 8,16\n"
                  "const d f32 8,16\n"
                  "const e f32 8,16\n"
                  "const f f32 16\n"
                  "p = graphrt::MatMul x a activation=Relu\n"
                  "q = graphrt::MatMul x b activation=Tanh\n"
                  "r = graphrt::MatMul x c activation=Relu\n"
                  "s = graphrt::MatMul x d activation=Tanh\n"
                  "t = graphrt::MatMul x e f activation=Tanh\n"
                  "y = Sum p q r s t\n"
                  "out y\n",
                  "merge_products", "graphrt::MatMul Split graphrt::MatMul Split graphrt::MatMul Sum");
    ir_text_check("in x f32 1,8\n" /* another input; a residual, which would have to be joined at every run */
                  "in z f32 1,8\n"
                  "const a f32 8,16\n"
                  "const b f32 8,16\n"
                  "const c f32 8,16\n"
                  "p = MatMul x a\n"
                  "q = MatMul z b\n"
                  "r = graphrt::MatMul x c _ p\n"
                  "y = Add r q\n"
                  "out y\n",
                  "merge_products", "MatMul MatMul graphrt::MatMul Add");
}
END_TEST

START_TEST(only_one_row)
{
    static const char *const dims[] = {"2,1,8", "1,n,8", "n,1,8"};
    char text[512];
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        snprintf(text, sizeof text,
                 "in x f32 %s\n"
                 "const a f32 8,16\n"
                 "const b f32 8,16\n"
                 "y = MatMul x a\n"
                 "z = MatMul x b\n"
                 "out y\n"
                 "out z\n",
                 dims[i]);
        ir_text_check(text, "merge_products", "MatMul MatMul");
    }
}
END_TEST

/* The parts would begin where no value does. */
START_TEST(only_where_parts_are_aligned)
{
    ir_text_check("in x f32 1,8\n"
                  "const a f32 8,24\n"
                  "const b f32 8,16\n"
                  "const c f32 8,16\n"
                  "p = MatMul x a\n"
                  "q = MatMul x b\n"
                  "r = MatMul x c\n"
                  "out p\n"
                  "out q\n"
                  "out r\n",
                  "merge_products", "MatMul MatMul Split");
    ir_text_check("in x f64 1,8\n"
                  "const a f64 8,8\n"
                  "const b f64 8,8\n"
                  "p = MatMul x a\n"
                  "q = MatMul x b\n"
                  "out p\n"
                  "out q\n",
                  "merge_products", "MatMul Split");
}
END_TEST

/* Weights that somebody else reads would be kept twice. */
START_TEST(shared_weights_stay)
{
    ir_text_check("in x f32 1,8\n"
                  "in z f32 1,8\n"
                  "const a f32 8,16\n"
                  "const b f32 8,16\n"
                  "const c f32 8,16\n"
                  "p = MatMul x a\n"
                  "q = MatMul x b\n"
                  "r = MatMul x c\n"
                  "s = MatMul z a\n"
                  "out p\n"
                  "out q\n"
                  "out r\n"
                  "out s\n",
                  "merge_products", "MatMul MatMul Split MatMul");
    ir_text_check("in x f32 1,8\n" /* not a constant */
                  "in a f32 8,16\n"
                  "const b f32 8,16\n"
                  "p = MatMul x a\n"
                  "q = MatMul x b\n"
                  "out p\n"
                  "out q\n",
                  "merge_products", "MatMul MatMul");
}
END_TEST

START_TEST(only_where_the_target_gains)
{
    ir_module *m = ir_text("in x f32 1,8\n"
                           "const a f32 8,16\n"
                           "const b f32 8,16\n"
                           "p = MatMul x a\n"
                           "q = MatMul x b\n"
                           "out p\n"
                           "out q\n");
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.joins_products = false;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_merge_products(&context), GRT_OK);
    ck_assert_int_eq(context.changed, 0);
    ck_assert_str_eq(ir_text_ops(m), "MatMul MatMul");
    ir_module_release(m);
}
END_TEST

/* The gated layer of a language model, through all passes. */
START_TEST(gated_layer)
{
    ir_text_check("in x f32 1,1,16\n"
                  "const a f32 16,64\n"
                  "const b f32 16,64\n"
                  "const c f32 64,16\n"
                  "gate = MatMul x a\n"
                  "up = MatMul x b\n"
                  "s = Sigmoid gate\n"
                  "silu = Mul gate s\n"
                  "both = Mul silu up\n"
                  "down = MatMul both c\n"
                  "y = Add x down\n"
                  "out y\n",
                  "", "graphrt::MatMul Split graphrt::Pointwise graphrt::MatMul");
}
END_TEST

Suite *suite_test_pass_merge_products(void);
Suite *suite_test_pass_merge_products(void)
{
    Suite *suite = suite_create("test_pass_merge_products");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, all_of_one_input);
    tcase_add_test(tests, parts_are_the_products);
    tcase_add_test(tests, fused_forms);
    tcase_add_test(tests, what_differs_stays);
    tcase_add_test(tests, only_one_row);
    tcase_add_test(tests, only_where_parts_are_aligned);
    tcase_add_test(tests, shared_weights_stay);
    tcase_add_test(tests, only_where_the_target_gains);
    tcase_add_test(tests, gated_layer);
    suite_add_tcase(suite, tests);
    return suite;
}
