/* SPDX-License-Identifier: Apache-2.0 */
/* 1 x 1 convolutions in narrow groups become those of all channels. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

START_TEST(narrow_groups)
{
    const char *text = "in x f32 2,12,5,4\n"
                       "const w f32 6,4,1,1\n"
                       "const b f32 6\n"
                       "y = Conv x w b group=3\n"
                       "out y\n";
    ir_text_check(text, "whole_groups", "Conv");
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "whole_groups"), 1);
    const ir_node *conv = ir_text_node(module, "Conv", 0);
    ck_assert_int_eq(grt_attr_int(&conv->desc, "group", 1), 1);
    ck_assert_int_eq(ir_in(conv, 1)->type.data->dims[1], 12);
    ir_module_release(module);
}
END_TEST

START_TEST(along_a_line)
{
    ir_text_check("in x f32 3,8,20\n"
                  "const w f32 8,2,1\n"
                  "y = Conv x w group=4\n"
                  "out y\n",
                  "whole_groups", "Conv");
}
END_TEST

START_TEST(few_wide_groups_along_a_line)
{
    ir_text_check("in x f32 1,128,64\n"
                  "const w f32 128,64,1\n"
                  "y = Conv x w group=2\n"
                  "out y\n",
                  "whole_groups", "Conv");
}
END_TEST

static void groups_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "whole_groups"), 0);
    ir_module_release(module);
}

START_TEST(others_stay)
{
    groups_stay("in x f32 2,12,8,8\n"
                "const w f32 12,1,1,1\n"
                "y = Conv x w group=12\n"
                "out y\n");
    groups_stay("in x f32 2,12,8,8\n"
                "const w f32 12,4,3,3\n"
                "y = Conv x w group=3\n"
                "out y\n");
    groups_stay("in x f32 2,12,4,3\n" /* few pixels: reading the weights is what takes time */
                "const w f32 12,4,1,1\n"
                "y = Conv x w group=3\n"
                "out y\n");
    groups_stay("in x f32 1,128,8,8\n" /* wide groups */
                "const w f32 128,64,1,1\n"
                "y = Conv x w group=2\n"
                "out y\n");
    groups_stay("in x f32 1,512,64\n" /* many wide ones */
                "const w f32 512,64,1\n"
                "y = Conv x w group=8\n"
                "out y\n");
    groups_stay("in x f32 1,2048,8,8\n" /* many weights */
                "const w f32 2048,16,1,1\n"
                "y = Conv x w group=128\n"
                "out y\n");
}
END_TEST

UNIT_SUITE(test_pass_whole_groups, NULL, NULL, narrow_groups, along_a_line, few_wide_groups_along_a_line,
           others_stay)
