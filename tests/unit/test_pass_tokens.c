/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in pictures: 1 x 1 convolutions as products of tokens, weights on the right of values. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"
#include <string.h>

/* One head over the pixels of a picture; scores are [2, 16, 16]. */
#define PICTURE                                                                           \
    "in x f32 2,8,4,4\nconst w f32 24,8,1,1\nconst b f32 24\nconst rows i64 3 2 24 16\n"  \
    "const s i64 3 8 8 8\nc = Conv x w b\nr = Reshape c rows\nq,k,v = Split r s axis=1\n" \
    "qt = Transpose q perm=0,2,1\nqk = MatMul qt k\np = Softmax qk\npt = Transpose p perm=0,2,1\n"

START_TEST(attention_over_pixels)
{
    ir_module *m = ir_text(PICTURE "y = MatMul v pt\nout y\n");
    ir_text_pass(m, "");
    ck_assert_msg(strstr(ir_text_ops(m), "Attention") != NULL, "%s", ir_text_ops(m));
    ck_assert_ptr_null(strstr(ir_text_ops(m), "Softmax"));
    ck_assert_ptr_null(strstr(ir_text_ops(m), "Split"));
    ir_module_release(m);
}
END_TEST

START_TEST(both_compute_the_same)
{
    ir_text_check(
        PICTURE "y = MatMul v pt\nout y\n", "tokens",
        "Transpose MatMul Add Transpose Reshape Split Transpose MatMul Softmax Transpose Transpose MatMul "
        "Transpose");
}
END_TEST

/* In order: nothing that is a product of two values; a window; groups. */
START_TEST(others_stay)
{
    ir_text_check("in x f32 2,8,4,4\nconst w f32 8,8,1,1\ny = Conv x w\nout y\n", "tokens", "Conv");
    ir_text_check("in x f32 2,8,4,4\nin z f32 2,8,4,6\nconst w f32 8,8,3,3\na = Conv x w pads=1,1,1,1\n"
                  "y = MatMul a z\nout y\n",
                  "tokens", "Conv MatMul");
    ir_text_check(
        "in x f32 2,8,4,4\nin z f32 2,8,4,6\nconst w f32 8,4,1,1\na = Conv x w group=2\ny = MatMul a z\n"
        "out y\n",
        "tokens", "Conv MatMul");
}
END_TEST

UNIT_SUITE(test_pass_tokens, NULL, NULL, attention_over_pixels, both_compute_the_same, others_stay)
