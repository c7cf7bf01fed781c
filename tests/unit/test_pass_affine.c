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

/* Biases and scales of heads, which the channels of a product have been split into; the second is one for
 * each head. A transpose behind the split keeps its Add. */
START_TEST(heads_after_a_product)
{
    ir_text_check("in x f32 2,3,6\n"
                  "const w f32 6,8\n"
                  "const b f32 2,4\n"
                  "const s f32 2,1 0.5 2\n"
                  "const f i64 4 2 3 2 4\n"
                  "p = MatMul x w\n"
                  "r = Reshape p f\n"
                  "a = Add r b\n"
                  "y = Mul a s\n"
                  "out y\n",
                  "affine", "MatMul Add Reshape");
    ir_text_check("in x f32 2,3,6\n"
                  "const w f32 6,8\n"
                  "const b f32 2,1,4\n"
                  "const f i64 4 2 3 2 4\n"
                  "p = MatMul x w\n"
                  "r = Reshape p f\n"
                  "t = Transpose r perm=0,2,1,3\n"
                  "y = Add t b\n"
                  "out y\n",
                  "affine", "MatMul Reshape Transpose Add");
    ir_text_check("in x f32 2,3,6\n"
                  "const w f32 6,8\n"
                  "const b f32 3,2,4\n"
                  "const f i64 4 2 3 2 4\n"
                  "p = MatMul x w\n"
                  "r = Reshape p f\n"
                  "y = Add r b\n"
                  "out y\n",
                  "affine", "MatMul Reshape Add");
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

/* What ConvNeXt and its kin do behind a block's last product. */
START_TEST(layer_scale_after_a_product)
{
    ir_text_check("in x f32 2,5,3\nin r f32 2,5,4\nconst w f32 3,4\nconst b f32 4\nconst g f32 4 1 2 -3 0.5\n"
                  "a = MatMul x w\nc = Add b a\nd = Mul c g\ny = Add d r\nout y\n",
                  "affine", "MatMul Add Add");
    ir_text_check("in x f32 2,5,6,3\nconst w f32 3,4\nconst b f32 4\nconst g f32 4,1,1 1 2 -3 0.5\n"
                  "a = MatMul x w\nc = Add a b\nd = Transpose c perm=0,3,1,2\ny = Mul d g\nout y\n",
                  "affine", "MatMul Add Transpose");
}
END_TEST

/* LeViT's: normalised as rows. A product without a bias gets one. */
START_TEST(batch_norm_after_a_product)
{
    ir_text_check("in x f32 2,5,3\nconst w f32 3,4\nconst s f32 4 1 2 -0.5 3\nconst b f32 4\nconst m f32 4\n"
                  "const v f32 4 1 0.25 4 0.5\nconst to i64 2 10 4\na = MatMul x w\nc = Reshape a to\n"
                  "y = BatchNormalization c s b m v\nout y\n",
                  "affine", "MatMul Add Reshape");
    ir_text_check("in x f32 2,5,3\nconst w f32 3,4\nconst s f32 4 1 2 -0.5 3\nconst b f32 4\nconst m f32 4\n"
                  "const v f32 4 1 0.25 4 0.5\na = MatMul x w\nc = Flatten a axis=2\n"
                  "y = BatchNormalization c s b m v\nout y\n",
                  "affine", "MatMul Add Flatten");
    ir_text_check(
        "in x f32 5,3\nconst w f32 3,4\nconst s f32 4 1\nconst b f32 4 0\nconst m f32 4 0\n" /* as made */
        "const v f32 4 1\na = MatMul x w\ny = BatchNormalization a s b m v\nout y\n",
        "affine", "MatMul Add");
    ir_text_check(
        "in x f32 5,3\nconst w f32 3,4\nconst s f32 4 1 2 -1 0.5\nconst b f32 4 0.5 -1 2 3\n" /* trained */
        "const m f32 4 0.25 -2 1 4\nconst v f32 4 1 0.25 4 0.5\na = MatMul x w\n"
        "y = BatchNormalization a s b m v\nout y\n",
        "affine", "MatMul Add");
}
END_TEST

/* In order: a scalar, which epilogues take; another product's weights; a scale over rows. */
START_TEST(products_that_stay)
{
    ir_text_check("in x f32 2,5,3\nconst w f32 3,4\nconst g f32 - 2\na = MatMul x w\ny = Mul a g\nout y\n",
                  "affine", "MatMul Mul");
    ir_text_check("in x f32 2,5,3\nconst w f32 3,4\nconst g f32 4 1 2 -3 0.5\na = MatMul x w\n"
                  "y = Mul a g\nz = MatMul x w\nout y\nout z\n",
                  "affine", "MatMul Mul MatMul");
    ir_text_check("in x f32 2,5,3\nconst w f32 3,4\nconst g f32 5,1 1 2 -3 0.5 4\na = MatMul x w\n"
                  "y = Mul a g\nout y\n",
                  "affine", "MatMul Mul");
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

/* Rows that were transposed to be normalised, and are transposed back: the first Transpose comes behind. One
 * that others read, or whose result others read, stays. */
START_TEST(batch_norm_of_transposed_rows)
{
#define NORM                                                                                            \
    "in x f32 2,5,4\nconst s f32 4 1 2 -0.5 3\nconst b f32 4 0.1 0.2 0.3 0\nconst m f32 4 0.5 -1 0 2\n" \
    "const v f32 4 1 0.25 4 0.5\nt = Transpose x perm=0,2,1\nn = BatchNormalization t s b m v\n"
    ir_text_check(NORM "y = Transpose n perm=0,2,1\nout y\n", "affine", "Mul Add Transpose Transpose");
    ir_text_check(NORM "y = Transpose n perm=2,0,1\nz = Transpose n perm=0,2,1\nout y\nout z\n", "affine",
                  "Mul Add Transpose Transpose Transpose");
    ir_text_check(NORM "y = Transpose n perm=0,2,1\nz = Relu t\nout y\nout z\n", "affine",
                  "Transpose Mul Add Transpose Relu");
    ir_text_check(NORM "y = Relu n\nout y\n", "affine", "Transpose Mul Add Relu");
    ir_text_check(NORM "out n\n", "affine", "Transpose Mul Add");
#undef NORM
    ir_text_check(
        "in x f32 4,2,3,5\nconst s f32 4 1 2 -0.5 3\nconst b f32 4 1\nconst m f32 4 2\n"
        "const v f32 4 1 0.25 4 0.5\nt = Transpose x perm=2,0,3,1\nn = BatchNormalization t s b m v\n"
        "y = Transpose n perm=1,3,0,2\nout y\n",
        "affine", "Mul Add Transpose Transpose");
}
END_TEST

/* What a body reads is transposed once, outside it, and not in each of its runs. */
START_TEST(batch_norm_in_a_body)
{
    ir_module *m = ir_text("in x f32 2,5,4\nin go bool -\nconst s f32 4 1 2 -0.5 3\nconst b f32 4 1\n"
                           "const m f32 4 2\nconst v f32 4 1 0.25 4 0.5\nt = Transpose x perm=0,2,1\n"
                           "u = Transpose x perm=0,2,1\no = BatchNormalization u s b m v\nout o\n");
    const ir_node *outside = ir_text_node(m, "BatchNormalization", 0);
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &m->main->inputs[1], 1);
    static const char *const names[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        ir_graph *body = ir_graph_create(m, branch, names[i]);
        ir_value *in[5] = {ir_text_node(m, "Transpose", 0)->out[0]}, *y = m->main->inputs[0];
        for (int k = 1; k < 5; k++)
            in[k] = ir_in(outside, k);
        if (i == 0)
            y = ir_node_create(body, NULL, "", "BatchNormalization", "norm", 5, in, 1)->out[0];
        ir_node *last = ir_node_create(body, NULL, "", "Transpose", "back", 1, &y, 1);
        ir_attr_set_ints(last, "perm", i == 0 ? (int64_t[]){0, 2, 1} : (int64_t[]){0, 1, 2}, 3);
        ir_graph_add_output(body, last->out[0]);
        ir_attr_set(branch, (grt_attr){.name = names[i], .kind = GRT_ATTR_GRAPH, .graph = body});
    }
    ir_graph_add_output(m->main, branch->out[0]);
    ck_assert_int_eq(op_infer_node(branch), GRT_OK);
    ck_assert_int_gt(ir_text_pass(m, "affine"), 0);
    const ir_graph *body = grt_attr_find(&branch->desc, names[0])->graph;
    ck_assert_str_eq(body->first->desc.op, "Mul");
    ck_assert_ptr_eq(ir_in(body->first, 0)->producer, ir_text_node(m, "Transpose", 0));
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_affine, NULL, NULL, batch_norm_after_conv, batch_norm_after_conv_with_bias,
           batch_norm_after_deconvolution, heads_after_a_product, mul_and_add_after_conv,
           sub_and_div_by_scalars, gemm_of_both_kinds, a_constant_over_space_stays, a_second_use_stops_it,
           weights_that_others_use_are_not_touched, layer_scale_after_a_product, batch_norm_after_a_product,
           products_that_stay, batch_norm_alone, batch_norm_of_transposed_rows, batch_norm_in_a_body)
