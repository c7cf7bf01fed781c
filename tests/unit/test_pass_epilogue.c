/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products take over scale, bias, residual and activation. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

START_TEST(conv_relu)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "a = Conv x w\n"
                  "y = Relu a\n"
                  "out y\n",
                  "epilogue", "graphrt::Conv");
}
END_TEST

START_TEST(conv_residual_relu)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "in r f32 2,4,3,3\n"
                  "const k f32 4\n"
                  "a = Conv x w k\n"
                  "b = Add r a\n"
                  "y = Relu b\n"
                  "out y\n",
                  "epilogue", "graphrt::Conv");
}
END_TEST

START_TEST(the_later_conv_takes_the_add)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const u f32 4,3,3,3\n"
                  "a = Conv x w\n"
                  "b = Conv x u\n"
                  "c = Add a b\n"
                  "y = Relu c\n"
                  "out y\n",
                  "epilogue", "graphrt::Conv graphrt::Conv");
}
END_TEST

START_TEST(conv_added_to_itself)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "a = Conv x w\n"
                  "y = Add a a\n"
                  "out y\n",
                  "epilogue", "graphrt::Conv Add");
}
END_TEST

START_TEST(clip_and_friends)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "const lo f32 - 0\n"
                  "const hi f32 - 6\n"
                  "a = Conv x w\n"
                  "b = Clip a lo hi\n"
                  "c = Conv x w strides=2,2\n"
                  "d = HardSwish c\n"
                  "e = Conv x w strides=3,3\n"
                  "f = LeakyRelu e alpha=0.3\n"
                  "out b\n"
                  "out d\n"
                  "out f\n",
                  "epilogue", "graphrt::Conv graphrt::Conv graphrt::Conv");
}
END_TEST

/* A constant row for each matrix of a batch; of one row each it leaves the residual's place free. */
START_TEST(matmul_one_bias_for_each_matrix)
{
    static const char *const rows[] = {"3", "1", "n"};
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text,
                 "in x f32 2,%s,4\n"
                 "const w f32 2,4,5\n"
                 "const k f32 2,1,5\n"
                 "in r f32 2,%s,5\n"
                 "a = MatMul x w\n"
                 "b = Add k a\n"
                 "c = Add b r\n"
                 "y = Relu c\n"
                 "out y\n",
                 rows[i], rows[i]);
        ir_text_check(text, "epilogue", "graphrt::MatMul");
    }
    ir_text_check("in x f32 2,3,4\n"
                  "const w f32 2,4,5\n"
                  "const k f32 1,1,5\n" /* that is one for all */
                  "const l f32 2,3,1\n"
                  "a = MatMul x w\n"
                  "b = Add a k\n"
                  "y = Add b l\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul Add");
}
END_TEST

START_TEST(matmul_bias_residual_gelu)
{
    ir_text_check("in x f32 2,3,4\n"
                  "const w f32 4,5\n"
                  "const k f32 5\n"
                  "in r f32 2,3,5\n"
                  "a = MatMul x w\n"
                  "b = Add a k\n"
                  "c = Add b r\n"
                  "y = Gelu c\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul");
}
END_TEST

START_TEST(scale_before_and_after)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in z f32 2,5,4\n"
                  "const c f32 - 0.5\n"
                  "const d f32 - 4\n"
                  "t = Transpose z perm=0,2,1\n"
                  "s = Mul t c\n"
                  "a = MatMul x s\n"
                  "y = Div a d\n"
                  "out y\n",
                  "epilogue", "Transpose Mul graphrt::MatMul");
}
END_TEST

START_TEST(a_scale_after_the_bias_stays)
{
    ir_text_check("in x f32 3,4\n"
                  "const w f32 4,5\n"
                  "const k f32 5\n"
                  "const c f32 - 0.5\n"
                  "a = MatMul x w\n"
                  "b = Add a k\n"
                  "y = Mul b c\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul Mul");
}
END_TEST

START_TEST(gemm_with_alpha_and_beta)
{
    ir_text_check("in x f32 4,3\n"
                  "const w f32 5,4\n"
                  "const k f32 1,5\n"
                  "a = Gemm x w k transA=1 transB=1 alpha=0.5 beta=2\n"
                  "y = Tanh a\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul");
}
END_TEST

START_TEST(gemm_with_a_full_c)
{
    ir_text_check("in x f32 3,4\n"
                  "const w f32 4,5\n"
                  "in k f32 3,5\n"
                  "y = Gemm x w k\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul");
}
END_TEST

START_TEST(gemm_with_a_column_stays)
{
    ir_text_check("in x f32 3,4\n"
                  "const w f32 4,5\n"
                  "in k f32 3,1\n"
                  "y = Gemm x w k\n"
                  "out y\n",
                  "epilogue", "Gemm");
}
END_TEST

START_TEST(rows_joined_and_split)
{
    ir_text_check("in x f32 2,3,4\n"
                  "const w f32 4,5\n"
                  "const s i64 2 6 4\n"
                  "const t i64 3 2 3 5\n"
                  "in r f32 2,3,5\n"
                  "j = Reshape x s\n"
                  "a = Gemm j w\n"
                  "b = Reshape a t\n"
                  "y = Add b r\n"
                  "out y\n",
                  "epilogue", "Reshape graphrt::MatMul");
}
END_TEST

/* Keys of attention over channels are scaled, then transposed. */
START_TEST(a_scale_behind_a_transpose)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in z f32 2,3,5\n"
                  "const c f32 - 0.5\n"
                  "s = Mul x c\n"
                  "t = Transpose s perm=0,2,1\n"
                  "y = MatMul t z\n"
                  "out y\n",
                  "", "graphrt::MatMul");
}
END_TEST

START_TEST(rows_split_behind_a_bias)
{
    ir_text_check("in x f32 2,3,4\n"
                  "const w f32 4,5\n"
                  "const c f32 5\n"
                  "const s i64 2 6 4\n"
                  "const t i64 3 2 3 5\n"
                  "in r f32 2,3,5\n"
                  "j = Reshape x s\n"
                  "a = MatMul j w\n"
                  "b = Add a c\n"
                  "d = Reshape b t\n"
                  "y = Add d r\n"
                  "out y\n",
                  "epilogue", "Reshape graphrt::MatMul");
    ir_text_check("in x f32 1,6,4\n"
                  "const w f32 4,5\n"
                  "const c f32 5\n"
                  "const ax i64 1 0\n"
                  "in r f32 1,6,5\n"
                  "j = Flatten x axis=2\n"
                  "a = MatMul j w\n"
                  "b = Add a c\n"
                  "d = Unsqueeze b ax\n"
                  "y = Add d r\n"
                  "out y\n",
                  "epilogue", "Flatten graphrt::MatMul");
}
END_TEST

START_TEST(rows_that_were_none_get_their_dims)
{
    ir_text_check("in x f32 1,3,8\n"
                  "const w f32 4,5\n"
                  "const s i64 2 6 4\n"
                  "const t i64 3 3 2 5\n"
                  "in r f32 3,2,5\n"
                  "j = Reshape x s\n"
                  "a = Gemm j w\n"
                  "b = Reshape a t\n"
                  "y = Add b r\n"
                  "out y\n",
                  "epilogue", "Reshape Reshape graphrt::MatMul");
}
END_TEST

/* Without columns, dims in front say nothing of the number of rows. */
START_TEST(rows_without_columns_stay)
{
    ir_text_check("in x f32 1,3,8\n"
                  "in w f32 4,0\n"
                  "const s i64 2 6 4\n"
                  "const t i64 3 7 2 0\n"
                  "in r f32 7,2,0\n"
                  "j = Reshape x s\n"
                  "a = MatMul j w\n"
                  "b = Reshape a t allowzero=1\n"
                  "y = Add b r\n"
                  "out y\n",
                  "epilogue", "Reshape graphrt::MatMul Reshape Add");
}
END_TEST

START_TEST(vectors_stay)
{
    ir_text_check("in x f32 4\n"
                  "const w f32 4,5\n"
                  "a = MatMul x w\n"
                  "y = Relu a\n"
                  "out y\n",
                  "epilogue", "MatMul Relu");
}
END_TEST

START_TEST(a_gate_is_for_pointwise_groups)
{
    ir_text_check("in x f32 2,4\n"
                  "const w f32 4,5\n"
                  "const u f32 4,5\n"
                  "a = MatMul x w\n"
                  "b = MatMul x u\n"
                  "g = Swish a\n"
                  "y = Mul g b\n"
                  "out y\n",
                  "epilogue", "graphrt::MatMul graphrt::MatMul Swish Mul");
}
END_TEST

START_TEST(an_output_inside_stops_it)
{
    ir_text_check("in x f32 2,3,5,5\n"
                  "const w f32 4,3,3,3\n"
                  "a = Conv x w\n"
                  "y = Relu a\n"
                  "out a\n"
                  "out y\n",
                  "epilogue", "graphrt::Conv Relu");
}
END_TEST

/* As behind convolutions over tokens. A model's output keeps its activation behind the moves. */
START_TEST(activation_behind_moves)
{
    ir_text_check("in x f32 2,3,4,4\nconst w f32 5,3,3,3\nconst to i64 3 2 5 16\na = Conv x w pads=1,1,1,1\n"
                  "b = Reshape a to\nc = Transpose b perm=0,2,1\ny = Relu c\nz = Neg y\nout z\n",
                  "epilogue", "graphrt::Conv Reshape Transpose Neg");
    ir_text_check("in x f32 2,3,4,4\nconst w f32 5,3,3,3\nconst to i64 3 2 5 16\na = Conv x w pads=1,1,1,1\n"
                  "b = Reshape a to\ny = Relu b\nout b\nout y\n",
                  "epilogue", "graphrt::Conv Reshape Relu");
}
END_TEST

/* Of an earlier run, that has become possible. */
START_TEST(a_second_run_takes_residuals)
{
    ir_module *m = ir_text("in x f32 2,3,4\nin r f32 2,3,5\nconst w f32 4,5\na = MatMul x w\n"
                           "b = Transpose a perm=0,2,1\nc = Transpose b perm=0,2,1\ny = Add c r\nout y\n");
    ir_text_pass(m, "epilogue");
    ck_assert_str_eq(ir_text_ops(m), "graphrt::MatMul Transpose Transpose Add");
    ir_text_pass(m, "simplify");
    ir_text_pass(m, "dce");
    ir_text_pass(m, "epilogue");
    ck_assert_str_eq(ir_text_ops(m), "graphrt::MatMul");
    ir_module_release(m);
}
END_TEST

#define WEIGHTS "const w u8 64,32\nconst s f32 32\na = graphrt::WMatMul x w s axis=1\n"

START_TEST(products_by_weights_of_few_bits_take_a_bias)
{
    ir_text_check("in x f32 2,64\n" WEIGHTS "const b f32 32\ny = Add b a\nout y\n", "epilogue",
                  "graphrt::WMatMul");
    /* One for each matrix of a batch, a scale, and what the CPU has no kernel for. */
    ir_text_check("in x f32 2,3,64\n" WEIGHTS "const b f32 2,1,32\ny = Add b a\nout y\n", "epilogue",
                  "graphrt::WMatMul Add");
    ir_text_check("in x f32 2,64\n" WEIGHTS "const b f32 1 3\ny = Mul b a\nout y\n", "epilogue",
                  "graphrt::WMatMul Mul");
    ir_text_check("in x f32 2,64\nin r f32 2,32\n" WEIGHTS "b = Add r a\ny = Relu b\nout y\n", "epilogue",
                  "graphrt::WMatMul Add Relu");
}
END_TEST

/* The node that is left, for a device that has every kernel. */
static ir_node *weights_take_residual(const char *text, const char *expected, ir_module **out_module)
{
    ir_module *m = *out_module = ir_text(text);
    grt_target target = ir_text_target();
    target.supports = ir_text_takes_all;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_epilogue(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_str_eq(ir_text_ops(m), expected);
    return ir_text_node(m, "WMatMul", 0);
}

START_TEST(products_by_weights_of_few_bits_take_a_residual)
{
    ir_module *m;
    const ir_node *node = weights_take_residual("in x f16 2,64\nin r f16 2,32\n"
                                                "const w u8 64,32\nconst s f16 32\nconst b f16 32\n"
                                                "a = graphrt::WMatMul x w s axis=1\nc = Add a b\n"
                                                "d = Add r c\ny = Relu d\nout y\n",
                                                "graphrt::WMatMul", &m);
    ck_assert_int_eq(node->n_in, 6);
    ck_assert_ptr_null(ir_in(node, 3));
    ck_assert_int_eq(ir_in(node, 4)->type.rank, 1);
    ck_assert_int_eq(ir_in(node, 5)->type.rank, 2);
    ck_assert_str_eq(grt_attr_string(&node->desc, "activation", ""), "Relu");
    ir_module_release(m);
    /* In float32, narrowing comes later, and leaves residuals alone. */
    weights_take_residual("in x f32 2,64\nin r f32 2,32\n" WEIGHTS "y = Add r a\nout y\n",
                          "graphrt::WMatMul Add", &m);
    ir_module_release(m);
}
END_TEST

/* A value has the name of the model's tensor that it is: that of the last node, not of the first. */
START_TEST(results_have_the_names_of_what_they_are)
{
    static const char *const texts[] = {
        "in x f32 2,3,5,5\nconst w f32 4,3,3,3\na = Conv x w\nr = Relu a\ny = Sqrt r\nout y\n",
        /* The activation comes before the moves; what is between is no tensor of the model. */
        "in x f32 4,6\nconst w f32 6,8\nconst to i64 2 2 16\na = MatMul x w\nb = Reshape a to\nr = Relu b\n"
        "y = Sqrt r\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *m = ir_text(texts[i]);
        ir_text_pass(m, "epilogue");
        const ir_node *root = ir_text_node(m, "Sqrt", 0);
        ck_assert_str_eq(ir_in(root, 0)->name, "r");
        ck_assert_str_eq(root->out[0]->name, "y");
        IR_FOR_EACH_NODE (node, m->main)
            ck_assert_str_ne(node->out[0]->name, "a");
        ir_module_release(m);
    }
}
END_TEST

/* Rows of windows, which are put back into an image and added to it: the product has the image's dims. Not
 * where the Reshape is no longer one of rows, has another reader, or nothing of its dims is added. */
START_TEST(rows_get_the_dims_of_a_residual)
{
    static const struct {
        const char *behind, *ops;
    } cases[] = {
        {"const to i64 4 2 2 3 8\nr = Reshape b to\ny = Add z r\nout y\n", "Reshape graphrt::MatMul"},
        {"const to i64 4 2 2 3 8\nr = Reshape b to\nv = Add r z\ny = Relu v\nout y\n",
         "Reshape graphrt::MatMul"},
        {"const to i64 4 2 2 6 4\nr = Reshape b to\nk = Reshape z to\ny = Add k r\nout y\n",
         "graphrt::MatMul Reshape Reshape Add"},
        {"const to i64 4 2 2 3 8\nr = Reshape b to\ny = Add z r\nout y\nout r\n",
         "graphrt::MatMul Reshape Add"},
        {"const to i64 4 2 2 3 8\nr = Reshape b to\ny = Add r r\nout y\nout z\n",
         "graphrt::MatMul Reshape Add"},
        {"const to i64 4 2 2 3 8\nr = Reshape b to\ny = Mul z r\nout y\n", "graphrt::MatMul Reshape Mul"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in x f32 4,3,6\nin z f32 2,2,3,8\nconst w f32 6,8\nconst c f32 8\na = MatMul x w\n"
                 "b = Add a c\n%s",
                 cases[i].behind);
        ir_text_check(text, "epilogue", cases[i].ops);
    }
}
END_TEST

/* A bias of its own for each of the batch belongs to the dims that the product has. */
START_TEST(a_bias_for_each_of_the_batch_keeps_its_dims)
{
    static const char *const to[] = {"3 6 2 8", "2 12 8", "4 2 3 2 8"}, *const z[] = {"6,2,8", "12,8",
                                                                                      "2,3,2,8"};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in x f32 2,6,16\nin z f32 %s\nconst w f32 16,8\nconst c f32 2,1,8\nconst to i64 %s\n"
                 "a = MatMul x w\nb = Add a c\nr = Reshape b to\ny = Add r z\nout y\n",
                 z[i], to[i]);
        ir_text_check(text, "epilogue", "graphrt::MatMul Reshape Add");
    }
}
END_TEST

/* Other passes may bring a Transpose in front of a product that has taken one: with an activation or without,
 * both go. */
START_TEST(transposes_that_come_later_cancel)
{
    const char *const behind[] = {"out y\n", "z = Relu y\nout z\n"};
    for (int k = 0; k < 2; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "in x f32 2,3,5\nin other f32 2,5,3\nconst w f32 3,4\nt = Transpose x perm=0,2,1\n"
                 "y = MatMul t w\n%s",
                 behind[k]);
        ir_module *m = ir_text(text);
        ir_text_pass(m, "epilogue");
        ir_node *product = ir_text_node(m, "MatMul", 0);
        ck_assert_int_eq(grt_attr_int(&product->desc, "transA", 0), 1);
        ir_value *other = m->main->inputs[1];
        ir_node *transpose = ir_node_create(product->graph, product, "", "Transpose", "late", 1, &other, 1);
        ir_attr_set_ints(transpose, "perm", (int64_t[]){0, 2, 1}, 3);
        ck_assert_int_eq(op_infer_node(transpose), GRT_OK);
        ir_node_set_input(product, 0, transpose->out[0]);
        ck_assert_int_gt(ir_text_pass(m, "epilogue"), 0);
        ck_assert_str_eq(ir_text_ops(m), "graphrt::MatMul");
        ck_assert_int_eq(grt_attr_int(&ir_text_node(m, "MatMul", 0)->desc, "transA", 0), 0);
        ck_assert_ptr_eq(ir_in(ir_text_node(m, "MatMul", 0), 0), other);
        ir_module_release(m);
    }
}
END_TEST

UNIT_SUITE(test_pass_epilogue, NULL, NULL, results_have_the_names_of_what_they_are, conv_relu,
           conv_residual_relu, the_later_conv_takes_the_add, conv_added_to_itself, clip_and_friends,
           matmul_one_bias_for_each_matrix, matmul_bias_residual_gelu, scale_before_and_after,
           a_scale_after_the_bias_stays, gemm_with_alpha_and_beta, gemm_with_a_full_c,
           gemm_with_a_column_stays, rows_joined_and_split, a_scale_behind_a_transpose,
           rows_split_behind_a_bias, rows_that_were_none_get_their_dims, rows_without_columns_stay,
           vectors_stay, a_gate_is_for_pointwise_groups, an_output_inside_stops_it, activation_behind_moves,
           a_second_run_takes_residuals, products_by_weights_of_few_bits_take_a_bias,
           products_by_weights_of_few_bits_take_a_residual, rows_get_the_dims_of_a_residual,
           a_bias_for_each_of_the_batch_keeps_its_dims, transposes_that_come_later_cancel)
