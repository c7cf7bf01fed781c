/* SPDX-License-Identifier: Apache-2.0 */
/* All passes together: real shapes of graphs, names, and the errors they give. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

START_TEST(residual_block)
{
    ir_text_check("in x f32 1,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "const s f32 8 1 2\n"
                  "const b f32 8 0.1\n"
                  "const m f32 8 0.5\n"
                  "const v f32 8 1\n"
                  "a = Conv x w pads=1,1,1,1\n"
                  "c = BatchNormalization a s b m v\n"
                  "d = Relu c\n"
                  "e = Conv d w pads=1,1,1,1\n"
                  "f = Add e x\n"
                  "g = Relu f\n"
                  "out g\n",
                  "", "Transpose graphrt::Conv graphrt::Conv Transpose");
}
END_TEST

START_TEST(every_node_without_a_kernel_is_listed)
{
    ir_module *m = ir_text("in x i64 3\n"
                           "a = Relu x\n"
                           "y = Add a x\n"
                           "out y\n");
    ir_text_node(m, "Relu", 0)->desc.op = "Unheard";
    ir_text_node(m, "Unheard", 0)->row = NULL;
    grt_target target = ir_text_target();
    pass_context context = {.module = m, .target = &target, .level = 0};
    ck_assert_int_eq(pass_run_enabled(&context), GRT_OK);
    ck_assert_int_eq(pass_check_supported(&context), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "Unheard (opset"));
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "int64[3]"));
    ir_module_release(m);
}
END_TEST

START_TEST(unknown_passes_cannot_be_disabled)
{
    ir_module *m = ir_text("in x f32 3\ny = Relu x\nout y\n");
    grt_target target = ir_text_target();
    pass_context context = {.module = m, .target = &target, .level = 2, .disabled = "fold,nonsense"};
    ck_assert_int_eq(pass_run_enabled(&context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "nonsense"));
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "pointwise"));
    ir_module_release(m);
}
END_TEST

/* What stays of a chain that other compiles make one step of. */
static void check_exact(const char *text, const char *expected)
{
    ir_module *m = ir_text(text);
    grt_target target = ir_text_target();
    pass_context context = {.module = m, .target = &target, .level = 2, .exact = true};
    ck_assert_int_eq(pass_run_enabled(&context), GRT_OK);
    ck_assert_str_eq(ir_text_ops(m), expected);
    ir_module_release(m);
}

START_TEST(an_exact_compile_keeps_nodes_of_16_bits)
{
    check_exact(
        "in x f16 2,4\nconst w f16 4,4\nconst b f16 4\na = MatMul x w\nc = Add a b\nd = Relu c\nout d\n",
        "MatMul Add Relu");
    check_exact("in x f16 2,4\nconst e f16 - 3\na = Pow x e\nc = Mul a x\nout c\n", "Pow Mul");
    check_exact(
        "in x f32 2,4\nconst w f32 4,4\nconst b f32 4\na = MatMul x w\nc = Add a b\nd = Relu c\nout d\n",
        "graphrt::MatMul");
}
END_TEST

START_TEST(names_are_those_of_the_table)
{
    const char *const *names;
    size_t n = grt_pass_names(&names);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(names[i], pass_at(i)->name);
    ck_assert_ptr_null(pass_at(n));
}
END_TEST

Suite *suite_test_pass_all(void)
{
    Suite *suite = suite_create("pass_all");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, residual_block);
    tcase_add_test(tc, every_node_without_a_kernel_is_listed);
    tcase_add_test(tc, unknown_passes_cannot_be_disabled);
    tcase_add_test(tc, an_exact_compile_keeps_nodes_of_16_bits);
    tcase_add_test(tc, names_are_those_of_the_table);
    suite_add_tcase(suite, tc);
    return suite;
}
