/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of float32 products are stored as [n, k]. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define TEXT                                      \
    "in x f32 2,5,6\n"                            \
    "const w f32 6,40\n"                          \
    "const b f32 40\n"                            \
    "const v f32 40,7\n"                          \
    "h = graphrt::MatMul x w b activation=Relu\n" \
    "y = MatMul h v\n"                            \
    "out y\n"

static int64_t turn(ir_module *m, bool gains)
{
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.weight_rows = gains;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_weight_rows(&context), GRT_OK);
    return context.changed;
}

START_TEST(products_read_rows)
{
    ir_module *m = ir_text(TEXT);
    const float *w = ir_in(ir_text_node(m, "MatMul", 0), 1)->type.data->data;
    ck_assert_int_eq(turn(m, true), 2);
    ck_assert_str_eq(ir_text_ops(m), "graphrt::MatMul graphrt::MatMul");
    const ir_node *first = ir_text_node(m, "MatMul", 0);
    const grt_tensor *turned = ir_in(first, 1)->type.data;
    ck_assert_int_eq(grt_attr_int(&first->desc, "transB", 0), 1);
    ck_assert_str_eq(grt_attr_string(&first->desc, "activation", ""), "Relu");
    ck_assert_int_eq(turned->dims[0], 40);
    ck_assert_int_eq(turned->dims[1], 6);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 40; k++)
            ck_assert_float_eq(((const float *)turned->data)[k * 6 + i], w[i * 40 + k]);
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_int_eq(turn(m, true), 0);
    ir_module_release(m);
}
END_TEST

START_TEST(shared_weights_are_turned_once)
{
    ir_module *m = ir_text("in x f32 3,6\n"
                           "const w f32 6,6\n"
                           "h = MatMul x w\n"
                           "y = MatMul h w\n"
                           "out y\n");
    ck_assert_int_eq(turn(m, true), 2);
    ck_assert_ptr_eq(ir_in(ir_text_node(m, "MatMul", 0), 1), ir_in(ir_text_node(m, "MatMul", 1), 1));
    ir_module_release(m);
}
END_TEST

START_TEST(others_stay)
{
    ir_module *m = ir_text(TEXT); /* the target does not gain */
    ck_assert_int_eq(turn(m, false), 0);
    ir_module_release(m);
    m = ir_text("in x f32 2,5,6\n" /* a batch of matrices, a vector, what others read, what is computed */
                "in v f32 6\n"
                "in i i64 6\n"
                "const a f32 2,6,4\n"
                "const b f32 6,4\n"
                "const c f32 6,4\n"
                "p = MatMul x a\n"
                "q = MatMul v b\n"
                "r = MatMul x c\n"
                "s = Gather c i\n"
                "t = MatMul x s\n"
                "out p\nout q\nout r\nout t\n");
    ck_assert_int_eq(turn(m, true), 0);
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_weight_rows, NULL, NULL, products_read_rows, shared_weights_are_turned_once, others_stay)
