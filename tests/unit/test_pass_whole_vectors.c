/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions get filters of zeros until their channels are whole vectors. */
#include "graph/ir/infer.h"
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
    ck_assert_int_eq(pass_whole_vectors(&context), GRT_OK);
    return context.changed;
}

/* As pass `precision` leaves a convolution that may be computed in TF32, or not. */
static ir_module *model(int filters, int channels, int window, bool tf32)
{
    char text[400];
    snprintf(text, sizeof text,
             "in x f32 2,20,20,%d\nconst w f32 %d,%d,%d,%d\nconst b f32 %d\n"
             "y = graphrt::Conv x w b layout=NHWC activation=Tanh\nout y\n",
             channels, filters, channels, window, window, filters);
    ir_module *m = ir_text(text);
    if (tf32)
        ir_attr_set_string(ir_text_node(m, "Conv", 0), "math", "tf32");
    return m;
}

START_TEST(filters_are_filled_up)
{
    ir_module *m = model(3, 8, 3, true);
    const float *w = ir_in(ir_text_node(m, "Conv", 0), 1)->type.data->data;
    ck_assert_int_eq(fill(m, true), 1);
    const ir_node *conv = ir_in(ir_text_node(m, "Slice", 0), 0)->producer;
    const grt_tensor *filled = ir_in(conv, 1)->type.data, *bias = ir_in(conv, 2)->type.data;
    ck_assert_int_eq(filled->dims[0], 4);
    ck_assert_int_eq(bias->dims[0], 4);
    ck_assert_str_eq(grt_attr_string(&conv->desc, "activation", ""), "Tanh");
    for (int i = 0; i < 4 * 72; i++)
        ck_assert_float_eq(((const float *)filled->data)[i], i < 3 * 72 ? w[i] : 0);
    ck_assert_float_eq(((const float *)bias->data)[3], 0);
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_int_eq(fill(m, true), 0);
    ir_module_release(m);
}
END_TEST

/* Whole vectors, single filters, products of pixels, inputs that are no whole vectors, float32 as it is, and
 * targets that gain nothing. */
START_TEST(others_stay)
{
    static const struct {
        int filters, channels, window;
        bool tf32, gains;
    } cases[] = {{4, 8, 3, true, true}, {1, 8, 3, true, true},  {3, 8, 1, true, true},
                 {3, 6, 3, true, true}, {3, 8, 3, false, true}, {3, 8, 3, true, false}};
    ir_module *m = model(cases[_i].filters, cases[_i].channels, cases[_i].window, cases[_i].tf32);
    ck_assert_int_eq(fill(m, cases[_i].gains), 0);
    ck_assert_str_eq(ir_text_ops(m), "graphrt::Conv");
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_whole_vectors(void);
Suite *suite_test_pass_whole_vectors(void)
{
    Suite *suite = suite_create("pass_whole_vectors");
    TCase *tests = tcase_create("pass_whole_vectors");
    tcase_add_test(tests, filters_are_filled_up);
    tcase_add_loop_test(tests, others_stay, 0, 6);
    suite_add_tcase(suite, tests);
    return suite;
}
