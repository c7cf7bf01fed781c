/* SPDX-License-Identifier: Apache-2.0 */
/* One filter for every channel becomes a convolution with a group for each. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define FILTER(dims)                    \
    "in x f32 " dims "\n"               \
    "const s i64 4 -1 1 5 6\n"          \
    "const w f32 1,1,3,2 1 2 3 4 5 6\n" \
    "p = Reshape x s\n"

START_TEST(a_filter_for_all)
{
    ir_text_check(FILTER("2,8,5,6") "y = Conv p w pads=1,0,1,0\nout y\n", "planes", "Reshape Conv Reshape");
    ir_text_check(FILTER("2,8,5,6") "const b f32 1 3\n"
                                    "y = Conv p w b strides=2,1\n"
                                    "const back i64 4 2 8 2 5\n"
                                    "z = Reshape y back\n"
                                    "r = Relu z\n"
                                    "out r\n",
                  "planes", "Reshape Conv Reshape Reshape Relu");
}
END_TEST

START_TEST(an_open_batch)
{
    ir_module *module = ir_text(FILTER("n,8,5,6") "y = Conv p w\nout y\n");
    ck_assert_int_eq(ir_text_pass(module, "planes"), 1);
    ck_assert_str_eq(ir_text_ops(module), "Reshape Conv Reshape");
    ck_assert_int_eq(grt_attr_int(&ir_text_node(module, "Conv", 0)->desc, "group", 1), 8);
    ir_module_release(module);
}
END_TEST

START_TEST(others_stay)
{
    /* few channels; other pixels; no channels; more than one filter */
    ir_text_check(FILTER("2,4,5,6") "y = Conv p w\nout y\n", "planes", "Reshape Conv");
    ir_text_check(FILTER("2,8,6,5") "y = Conv p w\nout y\n", "planes", "Reshape Conv");
    ir_text_check(FILTER("2,8,30") "y = Conv p w\nout y\n", "planes", "Reshape Conv");
    ir_text_check(FILTER("2,8,5,6") "const v f32 2,1,3,3\ny = Conv p v\nout y\n", "planes", "Reshape Conv");
    ir_text_check("in x f32 16,1,5,6\nconst w f32 1,1,3,2\ny = Conv x w\nout y\n", "planes", "Conv");
}
END_TEST

UNIT_SUITE(test_pass_planes, NULL, NULL, a_filter_for_all, an_open_batch, others_stay)
