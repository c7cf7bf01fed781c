/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions as convolutions of all phases. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>

static const struct {
    const char *attrs;
    int kernel, size;
} enlarged[] = {
    {"strides=2,2 pads=1,1,1,1", 4, 5},
    {"strides=2,2 pads=1,1,1,1 output_padding=1,1", 3, 5},
    {"strides=2,2 pads=2,2,2,2 output_padding=1,1", 5, 4},
    {"strides=3,3 pads=1,1,2,2", 6, 3},
    {"strides=2,2 pads=0,0,2,2", 4, 4},
    {"strides=1,1", 4, 1}, /* a single pixel becomes a block */
    {"strides=2,2 pads=1,1,1,1", 4, 1},
    {"strides=2,2 pads=1,0,0,1", 5, 1},
};

START_TEST(enlarging_is_a_convolution_and_depth_to_space)
{
    char text[400];
    const int k = enlarged[_i].kernel, n = enlarged[_i].size;
    snprintf(text, sizeof text,
             "in x f32 2,3,%d,%d\nconst w f32 3,5,%d,%d\nconst b f32 5\na = ConvTranspose x w b %s\n"
             "y = Relu a\nout y\n",
             n, n, k, k, enlarged[_i].attrs);
    ir_text_check(text, "phases", "Conv Relu DepthToSpace");
}
END_TEST

START_TEST(without_bias_or_activation)
{
    ir_text_check("in x f32 1,2,3,4\nconst w f32 2,3,4,4\n"
                  "y = ConvTranspose x w strides=2,2 pads=1,1,1,1\nout y\n",
                  "phases", "Conv DepthToSpace");
}
END_TEST

START_TEST(windows_without_overlap)
{
    ir_text_check("in x f32 1,2,3,4\nconst w f32 2,5,4,4\nconst b f32 5\n"
                  "y = ConvTranspose x w b strides=4,4\nout y\n",
                  "phases", "Conv DepthToSpace");
    ir_text_check("in x f32 1,2,3,3\nconst w f32 2,16,2,2\ny = ConvTranspose x w strides=2,2\nout y\n",
                  "phases", "Conv DepthToSpace");
}
END_TEST

START_TEST(a_clip_keeps_its_bounds)
{
    ir_text_check("in x f32 1,2,3,3\nconst w f32 2,3,4,4\nconst low f32 - -0.1\nconst high f32 - 0.2\n"
                  "a = ConvTranspose x w strides=2,2 pads=1,1,1,1\ny = Clip a low high\nout y\n",
                  "phases", "Conv Clip DepthToSpace");
}
END_TEST

/* In order: another size than the stride's, groups, dilation,
 * strides that differ, weights that are not known, windows that hardly overlap. */
static const char *const others[] = {
    "in x f32 1,2,3,3\nconst w f32 2,3,4,4\ny = ConvTranspose x w strides=2,2\nout y\n",
    "in x f32 1,2,3,3\nconst w f32 2,3,4,4\ny = ConvTranspose x w strides=2,2 pads=1,1,1,1 group=2\nout y\n",
    "in x f32 1,2,3,3\nconst w f32 2,3,2,2\n"
    "y = ConvTranspose x w strides=2,2 dilations=3,3 pads=1,1,1,1\nout y\n",
    "in x f32 1,2,3,3\nconst w f32 2,3,4,3\n"
    "y = ConvTranspose x w strides=2,1 pads=1,1,1,1\nout y\n",
    "in x f32 1,2,3,3\nin w f32 2,3,4,4\ny = ConvTranspose x w strides=2,2 pads=1,1,1,1\nout y\n",
    "in x f32 1,2,3,3\nconst w f32 2,3,5,5\ny = ConvTranspose x w strides=4,4 pads=1,1,0,0\nout y\n",
};

START_TEST(others_stay)
{
    ir_text_check(others[_i], "phases", "ConvTranspose");
}
END_TEST

/* Both, then the layout: nothing but moves of whole pixels is left between the convolutions. */
START_TEST(convolutions_stay_channels_last)
{
    ir_module *m = ir_text("in x f32 1,8,3,3\nconst w f32 8,8,4,4\nconst v f32 8,8,3,3\n"
                           "a = ConvTranspose x w strides=2,2 pads=1,1,1,1\nb = Relu a\n"
                           "y = Conv b v pads=1,1,1,1\nout y\n");
    ir_text_pass(m, "");
    ck_assert_str_eq(ir_text_ops(m), "Transpose graphrt::WovenConv graphrt::Conv Transpose");
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_phases(void);
Suite *suite_test_pass_phases(void)
{
    Suite *suite = suite_create("pass_phases");
    TCase *tests = tcase_create("pass_phases");
    tcase_add_loop_test(tests, enlarging_is_a_convolution_and_depth_to_space, 0,
                        (int)(sizeof enlarged / sizeof *enlarged));
    tcase_add_test(tests, without_bias_or_activation);
    tcase_add_test(tests, windows_without_overlap);
    tcase_add_test(tests, a_clip_keeps_its_bounds);
    tcase_add_loop_test(tests, others_stay, 0, (int)(sizeof others / sizeof *others));
    tcase_add_test(tests, convolutions_stay_channels_last);
    suite_add_tcase(suite, tests);
    return suite;
}
