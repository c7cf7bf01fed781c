/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and shifts per channel move into the weights before them. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <string.h>

START_TEST(batch_norm_after_conv)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const s f32 4 1 2 -0.5 3\n"
                  "const b f32 4 0.1 0.2 0.3 0\n"
                  "const m f32 4 0.5 -1 0 2\n"
                  "const v f32 4 1 0.25 4 0.5\n"
                  "a = Conv x w\n"
                  "y = BatchNormalization a s b m v\n"
                  "out y\n",
                  "affine", "Conv");
}
END_TEST

START_TEST(batch_norm_after_conv_with_bias)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const s f32 4 1 2 -0.5 3\n"
                  "const b f32 4 0.1 0.2 0.3 0\n"
                  "const m f32 4 0.5 -1 0 2\n"
                  "const v f32 4 1 0.25 4 0.5\n"
                  "const k f32 4\n"
                  "a = Conv x w k\n"
                  "y = BatchNormalization a s b m v epsilon=0.1\n"
                  "out y\n",
                  "affine", "Conv");
}
END_TEST

START_TEST(batch_norm_after_deconvolution)
{
    ir_text_check("in x f32 1,4,3,3\n"
                  "const w f32 4,2,2,2\n"
                  "const s f32 4 1 2 -0.5 3\n"
                  "const b f32 4 0.1 0.2 0.3 0\n"
                  "const m f32 4 0.5 -1 0 2\n"
                  "const v f32 4 1 0.25 4 0.5\n"
                  "a = ConvTranspose x w group=2\n"
                  "y = BatchNormalization a s b m v\n"
                  "out y\n",
                  "affine", "ConvTranspose");
}
END_TEST

START_TEST(mul_and_add_after_conv)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const p f32 4,1,1 1 2 3 4\n"
                  "const q f32 1,4,1,1 -1 1\n"
                  "a = Conv x w\n"
                  "c = Mul a p\n"
                  "y = Add q c\n"
                  "out y\n",
                  "affine", "Conv");
}
END_TEST

START_TEST(sub_and_div_by_scalars)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const p f32 - 2\n"
                  "a = Conv x w\n"
                  "c = Sub a p\n"
                  "y = Div c p\n"
                  "out y\n",
                  "affine", "Conv");
}
END_TEST

START_TEST(gemm_of_both_kinds)
{
    ir_text_check("in x f32 3,4\n"
                  "const w f32 4,5\n"
                  "const u f32 2,5\n"
                  "const p f32 5\n"
                  "const q f32 1,2 3 4\n"
                  "const k f32 2 1 -1\n"
                  "a = Gemm x w\n"
                  "c = Mul a p\n"
                  "d = Gemm c u k transB=1 beta=2\n"
                  "y = Mul d q\n"
                  "out y\n",
                  "affine", "Gemm Gemm");
}
END_TEST

START_TEST(a_constant_over_space_stays)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const p f32 3\n"
                  "a = Conv x w\n"
                  "y = Mul a p\n"
                  "out y\n",
                  "affine", "Conv Mul");
}
END_TEST

START_TEST(a_second_use_stops_it)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const p f32 - 2\n"
                  "a = Conv x w\n"
                  "y = Mul a p\n"
                  "z = Relu a\n"
                  "out y\n"
                  "out z\n",
                  "affine", "Conv Mul Relu");
}
END_TEST

START_TEST(weights_that_others_use_are_not_touched)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const p f32 - 2\n"
                  "a = Conv x w\n"
                  "b = Conv x w pads=0,0,0,0\n"
                  "y = Mul a p\n"
                  "z = Add y b\n"
                  "out z\n",
                  "affine", "Conv Conv Add");
}
END_TEST

START_TEST(batch_norm_alone)
{
    ir_text_check("in x f32 2,4,3,3\n"
                  "const s f32 4 1 2 -0.5 3\n"
                  "const b f32 4 0.1 0.2 0.3 0\n"
                  "const m f32 4 0.5 -1 0 2\n"
                  "const v f32 4 1 0.25 4 0.5\n"
                  "y = BatchNormalization x s b m v\n"
                  "out y\n",
                  "affine", "Mul Add");
}
END_TEST

UNIT_SUITE(test_pass_affine, NULL, NULL, batch_norm_after_conv, batch_norm_after_conv_with_bias,
           batch_norm_after_deconvolution, mul_and_add_after_conv, sub_and_div_by_scalars, gemm_of_both_kinds,
           a_constant_over_space_stays, a_second_use_stops_it, weights_that_others_use_are_not_touched,
           batch_norm_alone)
