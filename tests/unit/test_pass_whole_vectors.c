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

static void mark_tf32(ir_module *m)
{
    IR_FOR_EACH_NODE (node, m->main)
        if (node->row && node->row->flags & OP_TF32)
            ir_attr_set_string(node, "math", "tf32");
}

static ir_module *region(void)
{
    ir_module *m = ir_text("in x f32 2,20,20,40\n"
                           "const w f32 42,40,3,3\nconst b f32 42\nconst slope f32 1,1,42\n"
                           "const v f32 42,42,3,3\nconst u f32 42,1,3,3\nconst t f32 40,42,1,1\n"
                           "a = graphrt::Conv x w b layout=NHWC\n"
                           "p = PRelu a slope\n"
                           "q = graphrt::Conv p v layout=NHWC pads=1,1,1,1\n"
                           "s = Add q p\n"
                           "g = graphrt::MaxPool s kernel_shape=2,2 layout=NHWC\n"
                           "d = graphrt::Conv g u layout=NHWC group=42\n"
                           "y = graphrt::Conv d t layout=NHWC\n"
                           "e = Exp q\n"
                           "out y\nout e\n");
    mark_tf32(m);
    return m;
}

/* The channels of zeros stay up to the last convolution, and are cut off for what may not be finite. */
START_TEST(what_lies_between_is_filled_too)
{
    ir_module *m = region();
    ck_assert_int_eq(fill(m, true), 7);
    ck_assert_str_eq(ir_text_ops(m),
                     "graphrt::Conv PRelu graphrt::Conv Slice Add graphrt::MaxPool graphrt::Conv "
                     "graphrt::Conv Exp");
    const ir_node *depthwise = ir_text_node(m, "Conv", 2), *last = ir_text_node(m, "Conv", 3);
    ck_assert_int_eq(grt_attr_int(&depthwise->desc, "group", 1), 44);
    ck_assert_int_eq(ir_in(last, 1)->type.data->dims[0], 40);
    ck_assert_int_eq(ir_in(last, 1)->type.data->dims[1], 44);
    const float *w = ir_in(last, 1)->type.data->data;
    for (int i = 0; i < 40; i++)
        ck_assert(w[44 * i + 41] != 0 && w[44 * i + 42] == 0 && w[44 * i + 43] == 0);
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_int_eq(fill(m, true), 0);
    ir_module_release(m);
}
END_TEST

START_TEST(a_region_computes_the_same)
{
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.half_floats = true;
    target.traits = &traits;
    ir_module *m = region(), *filled = region();
    ck_assert_int_eq(fill(filled, true), 7);
    ir_text_compare(m, filled);
    ir_module_release(m);
    ir_module_release(filled);
}
END_TEST

/* Between the convolutions of a network of volumes channels are normalised by themselves: those of zeros stay
 * zeros. With a scale that is computed they are cut off. */
static ir_module *normalised(bool constant)
{
    char text[512];
    snprintf(text, sizeof text,
             "in x f32 2,20,20,40\nconst w f32 42,40,3,3\n%s scale f32 42\nconst shift f32 42\n"
             "const v f32 40,42,3,3\na = graphrt::Conv x w layout=NHWC\n"
             "n = graphrt::InstanceNormalization a scale shift layout=NHWC\nl = LeakyRelu n\n"
             "y = graphrt::Conv l v layout=NHWC\nout y\n",
             constant ? "const" : "in");
    ir_module *m = ir_text(text);
    mark_tf32(m);
    return m;
}

START_TEST(norms_of_channels_are_filled_too)
{
    ir_module *m = normalised(true), *filled = normalised(true), *computed = normalised(false);
    ck_assert_int_eq(fill(filled, true), 4);
    ck_assert_str_eq(ir_text_ops(filled),
                     "graphrt::Conv graphrt::InstanceNormalization LeakyRelu graphrt::Conv");
    ir_node *norm = ir_text_node(filled, "InstanceNormalization", 0);
    for (int i = 1; i < 3; i++) {
        const grt_tensor *constant = ir_in(norm, i)->type.data;
        ck_assert_int_eq(constant->dims[0], 44);
        ck_assert_float_eq(((const float *)constant->data)[43], 0);
    }
    ck_assert_int_eq(ir_infer(filled), GRT_OK);
    ck_assert_int_eq(ir_verify(filled), GRT_OK);
    ir_text_compare(m, filled);
    fill(computed, true);
    ck_assert_str_eq(ir_text_ops(computed), "graphrt::Conv Slice graphrt::InstanceNormalization LeakyRelu "
                                            "Pad graphrt::Conv");
    ir_module_release(m);
    ir_module_release(filled);
    ir_module_release(computed);
}
END_TEST

/* A copy of the input pays where windows are long. */
START_TEST(inputs_are_padded)
{
    ir_module *m = model(8, 42, 3, true);
    ck_assert_int_eq(fill(m, true), 1);
    ck_assert_str_eq(ir_text_ops(m), "Pad graphrt::Conv");
    ck_assert_int_eq(ir_in(ir_text_node(m, "Conv", 0), 1)->type.data->dims[1], 44);
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
    tcase_add_test(tests, what_lies_between_is_filled_too);
    tcase_add_test(tests, a_region_computes_the_same);
    tcase_add_test(tests, norms_of_channels_are_filled_too);
    tcase_add_test(tests, inputs_are_padded);
    suite_add_tcase(suite, tests);
    return suite;
}
