/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution regions run with channels last; transposes restore the layout around them. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(a_conv_alone)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "y = graphrt::Conv x w\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv Transpose");
}
END_TEST

START_TEST(rolled_pixels)
{
    ir_text_check("in x f32 2,8,6,5\n"
                  "const w f32 8,8,3,3\n"
                  "a = graphrt::Conv x w\n"
                  "r = graphrt::Roll a shifts=0,3,1,2\n"
                  "y = graphrt::Conv r w\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv graphrt::Roll graphrt::Conv Transpose");
}
END_TEST

/* Weights that a run computes would have to be turned in each. */
START_TEST(computed_filters_stay)
{
    ir_text_check("in x f32 2,128,6\n"
                  "in w f32 128,128,3\n"
                  "in v f32 128,8,8\n"
                  "const c f32 128,128,3\n"
                  "a = graphrt::Conv x w\n"
                  "b = ConvTranspose a v strides=2\n"
                  "d = graphrt::Conv x c\n"
                  "e = ConvTranspose d v strides=1\n"
                  "out b\n"
                  "out e\n",
                  "layout", "Transpose graphrt::Conv ConvTranspose graphrt::Conv Transpose ConvTranspose");
}
END_TEST

START_TEST(volumes)
{
    ir_text_check("in x f32 1,8,6,6,6\n"
                  "const w f32 8,8,1,3,3\n"
                  "a = graphrt::Conv x w activation=Relu\n"
                  "b = MaxPool a kernel_shape=2,2,2\n"
                  "out b\n",
                  "layout", "Transpose graphrt::Conv graphrt::MaxPool Transpose");
}
END_TEST

/* With fast float16, float32 that may not round keeps volumes as they are, but not windows of planes. */
START_TEST(strict_volumes)
{
    static const char *const windows[] = {"3,3,3", "1,3,3", "3,3,3"}, *const maths[] = {"", "", "tf32"},
                             *const wanted[] = {"graphrt::Conv", "Transpose graphrt::Conv Transpose",
                                                "Transpose graphrt::Conv Transpose"};
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.half_floats = true;
    target.traits = &traits;
    for (int i = 0; i < 3; i++) {
        char text[200];
        snprintf(text, sizeof text, "in x f32 1,8,6,6,6\nconst w f32 8,8,%s\ny = graphrt::Conv x w\nout y\n",
                 windows[i]);
        ir_module *m = ir_text(text);
        if (*maths[i])
            ir_attr_set_string(ir_text_node(m, "Conv", 0), "math", maths[i]);
        pass_context context = {.module = m, .target = &target, .level = 2};
        ck_assert_int_eq(pass_layout(&context), GRT_OK);
        ck_assert_str_eq(ir_text_ops(m), wanted[i]);
        ir_module_release(m);
    }
}
END_TEST

/* Filters for each pixel go with what has channels last. */
START_TEST(filters_of_pixels)
{
    ir_text_check("in x f32 1,8,6,6\n"
                  "const w f32 18,8,1,1\n"
                  "f = graphrt::Conv x w\n"
                  "y = graphrt::PixelFilter x f kernel_shape=3,3 pads=1,1,1,1\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv graphrt::PixelFilter Transpose");
    ir_text_check("in x f32 1,8,6,6\n"
                  "in f f32 1,18,6,6\n"
                  "y = graphrt::PixelFilter x f kernel_shape=3,3 pads=1,1,1,1\n"
                  "out y\n",
                  "layout", "graphrt::PixelFilter");
}
END_TEST

START_TEST(a_transposed_conv_alone)
{
    ir_text_check("in x f32 2,128,6\n"
                  "const w f32 128,8,8\n"
                  "y = ConvTranspose x w strides=2\n"
                  "out y\n",
                  "layout", "Transpose graphrt::ConvTranspose Transpose");
    ir_text_check("in x f32 2,128,6\n"
                  "const w f32 128,8,8\n"
                  "y = ConvTranspose x w strides=4\n"
                  "out y\n",
                  "layout", "ConvTranspose");
}
END_TEST

START_TEST(a_region)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "a = graphrt::Conv x w activation=Relu\n"
                  "b = MaxPool a kernel_shape=2,2\n"
                  "c = graphrt::Conv a w pads=1,1,1,1\n"
                  "d = Add c a\n"
                  "e = Sigmoid d\n"
                  "out e\n"
                  "out b\n",
                  "layout",
                  "Transpose graphrt::Conv graphrt::MaxPool Transpose graphrt::Conv Add Sigmoid Transpose");
}
END_TEST

START_TEST(casts_follow)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "const image i64 2 2 3\n"
                  "a = graphrt::Conv x w activation=Relu\n"
                  "b = Cast a to=10\n"
                  "c = Cast b to=1\n"
                  "d = ReduceL2 c image\n"
                  "e = Div c d\n"
                  "f = graphrt::Conv e w\n"
                  "out f\n",
                  "layout", "Transpose graphrt::Conv Cast Cast ReduceL2 Div graphrt::Conv Transpose");
}
END_TEST

START_TEST(forms_with_channels_last)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "const s f32 8\n"
                  "const b f32 8\n"
                  "const v f32 8,4,2,2\n"
                  "const n i64 4 2 4 16 16\n"
                  "a = graphrt::Conv x w\n"
                  "g = GroupNormalization a s b num_groups=2\n"
                  "i = InstanceNormalization g s b\n"
                  "t = ConvTranspose i v strides=2,2\n"
                  "r = Resize t _ _ n mode=linear\n"
                  "out r\n",
                  "layout",
                  "Transpose graphrt::Conv graphrt::GroupNormalization graphrt::InstanceNormalization "
                  "graphrt::ConvTranspose Resize Transpose");
}
END_TEST

START_TEST(normalisations_alone_stay)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const s f32 8\n"
                  "const b f32 8\n"
                  "g = GroupNormalization x s b num_groups=2\n"
                  "out g\n",
                  "layout", "GroupNormalization");
}
END_TEST

START_TEST(concat_and_split)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "const n i64 2 3 5\n"
                  "a = graphrt::Conv x w\n"
                  "b,c = Split a n axis=1\n"
                  "d = Concat c b axis=1\n"
                  "e = Relu d\n"
                  "out e\n",
                  "layout", "Transpose graphrt::Conv Split Concat Relu Transpose");
}
END_TEST

START_TEST(means_over_space)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "const ax i64 2 2 3\n"
                  "a = graphrt::Conv x w\n"
                  "m = ReduceMean a ax\n"
                  "r = ReduceMean a ax keepdims=0\n"
                  "y = Mul a m\n"
                  "out y\n"
                  "out r\n",
                  "layout", "Transpose graphrt::Conv ReduceMean ReduceMean Mul Transpose");
}
END_TEST

START_TEST(the_way_back_is_there_already)
{
    ir_text_check("in x f32 2,8,6,6\n"
                  "const w f32 8,8,3,3\n"
                  "a = graphrt::Conv x w\n"
                  "b = Transpose a perm=0,2,3,1\n"
                  "c = Relu b\n"
                  "out c\n",
                  "layout", "Transpose graphrt::Conv Transpose Relu");
}
END_TEST

START_TEST(channel_shuffle)
{
    ir_text_check(
        "in x f32 2,8,6,6\n"
        "const w f32 8,8,3,3\n"
        "const s i64 5 2 2 4 4 4\n"
        "const t i64 4 2 8 4 4\n"
        "a = graphrt::Conv x w\n"
        "b = Reshape a s\n"
        "c = Transpose b perm=0,2,1,3,4\n"
        "d = Reshape c t\n"
        "e = Relu d\n"
        "out e\n",
        "layout",
        "Transpose graphrt::Conv Transpose Reshape Transpose Reshape Transpose Reshape Relu Transpose");
}
END_TEST

START_TEST(groups)
{
    ir_text_check("in x f32 1,8,6,6\n"
                  "const w f32 8,4,3,3\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv Transpose");
    ir_text_check("in x f32 1,8,6,6\n"
                  "const w f32 24,4,3,3\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "graphrt::Conv");
}
END_TEST

START_TEST(one_dimension)
{
    ir_text_check("in x f32 1,8,9\n"
                  "const w f32 8,8,3\n"
                  "y = graphrt::Conv x w\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv Transpose");
    ir_text_check("in x f32 1,32,40\n"
                  "const w f32 32,16,3\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv Transpose");
    ir_text_check("in x f32 1,32,40\n"
                  "const w f32 32,16,3\n"
                  "y = graphrt::Conv x w group=2 dilations=2\n"
                  "out y\n",
                  "layout", "graphrt::Conv");
    ir_text_check("in x f32 1,32,40\n"
                  "const w f32 32,16,1\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "graphrt::Conv");
    ir_text_check("in x f32 1,24,40\n"
                  "const w f32 24,12,15\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "graphrt::Conv");
    ir_text_check("in x f32 1,24,40\n"
                  "const w f32 24,12,16\n"
                  "y = graphrt::Conv x w group=2\n"
                  "out y\n",
                  "layout", "Transpose graphrt::Conv Transpose");
}
END_TEST

/* [batch, tokens, channels] to a picture and back: Reshapes alone are left. */
START_TEST(tokens_as_a_grid)
{
    const char *text = "in x f32 2,16,8\nconst w f32 8,1,3,3\nconst g i64 4 2 8 4 4\nconst t i64 3 2 8 16\n"
                       "a = Transpose x perm=0,2,1\nb = Reshape a g\n"
                       "c = graphrt::Conv b w group=8 pads=1,1,1,1\nd = Reshape c t\n"
                       "y = Transpose d perm=0,2,1\nout y\n";
    ir_module *m = ir_text(text);
    ir_text_pass(m, "layout");
    ir_text_pass(m, "fold");
    ir_text_pass(m, "simplify");
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), "Reshape graphrt::Conv Reshape");
    ir_module_release(m);
}
END_TEST

/* In both orders of blocks and channels, beside what computes the same by itself. */
START_TEST(depth_to_space)
{
    static const char *const modes[] = {"DCR", "CRD"};
    for (int i = 0; i < 2; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "in x f32 2,3,4,5\nconst w f32 18,3,1,1\na = graphrt::Conv x w\n"
                 "y = DepthToSpace a blocksize=3 mode=%s\nout y\n",
                 modes[i]);
        ir_text_check(text, "layout", "Transpose graphrt::Conv Reshape Transpose Reshape Transpose");
    }
}
END_TEST

Suite *suite_test_pass_layout(void)
{
    Suite *suite = suite_create("pass_layout");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, a_conv_alone);
    tcase_add_test(tc, rolled_pixels);
    tcase_add_test(tc, computed_filters_stay);
    tcase_add_test(tc, a_region);
    tcase_add_test(tc, volumes);
    tcase_add_test(tc, strict_volumes);
    tcase_add_test(tc, filters_of_pixels);
    tcase_add_test(tc, a_transposed_conv_alone);
    tcase_add_test(tc, casts_follow);
    tcase_add_test(tc, forms_with_channels_last);
    tcase_add_test(tc, normalisations_alone_stay);
    tcase_add_test(tc, concat_and_split);
    tcase_add_test(tc, means_over_space);
    tcase_add_test(tc, the_way_back_is_there_already);
    tcase_add_test(tc, channel_shuffle);
    tcase_add_test(tc, tokens_as_a_grid);
    tcase_add_test(tc, depth_to_space);
    tcase_add_test(tc, groups);
    tcase_add_test(tc, one_dimension);
    suite_add_tcase(suite, tc);
    return suite;
}
