/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: products and convolutions of quantised models become integer steps. */
#include "graph/passes/quantised.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/quantised_text.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#include <stdio.h>
#include <string.h>

/* The first output of a node may be left out: an activation behind another one has no product or sum. */
START_TEST(activation_of_a_later_output)
{
    ir_module *m = ir_text("in x f32 5,3,4\n"
                           "const w f32 1,18,4\n"
                           "const r f32 1,18,6\n"
                           "const s f32 - 0.1\n"
                           "const z i8 - 0\n"
                           "n,h = GRU x w r hidden_size=6\n"
                           "a = Relu h\n"
                           "y = QuantizeLinear a s z\n"
                           "out y\n");
    ir_text_pass(m, "dce");
    ir_text_pass(m, "quantised");
    ck_assert_str_eq(ir_text_ops(m), "GRU Relu QuantizeLinear");
    ir_module_release(m);
}
END_TEST

START_TEST(conv_with_bias_and_relu)
{
    ir_text_check("in x f32 1,3,6,6\n" X_QUANTISED "const w i8 4,3,3,3" WEIGHTS "const b i32 4 100 -200 3 4\n"
                  "const bs f32 - 0.000244140625\n"
                  "wd = DequantizeLinear w ws wz\n"
                  "bd = DequantizeLinear b bs\n"
                  "c = Conv xd wd bd pads=1,1,1,1\n"
                  "r = Relu c\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear DequantizeLinear graphrt::QConv DequantizeLinear");
}
END_TEST

START_TEST(conv_with_scales_of_channels_and_clip)
{
    ir_text_check("in x f32 1,3,6,6\n" X_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "const cs f32 4 0.5 0.25 0.125 0.03125\n"
                  "const low f32 - 0\n"
                  "const high f32 - 6\n"
                  "const cz i8 4 0 0 0 0\n"
                  "wd = DequantizeLinear w cs cz axis=0\n"
                  "c = Conv xd wd\n"
                  "r = Clip c low high\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QConv DequantizeLinear");
}
END_TEST

START_TEST(conv_with_a_float_result)
{
    ir_text_check("in x f32 1,3,6,6\n" X_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "y = Conv xd wd\n"
                  "out y\n",
                  "quantised", "QuantizeLinear graphrt::QConv");
}
END_TEST

/* Filters of few bits, with scales and zero points of channels. */
START_TEST(conv_with_filters_of_4_bits)
{
    static const char *const filters[] = {"const w i4 4,3,3,3 3 -7 5 -8 7 1 0\nconst wc i4 4 1 -2 3 0\n",
                                          "const w u4 4,3,3,3 3 9 5 15 7 1 0\nconst wc u4 4 8 7 9 8\n",
                                          "const w i2 4,3,3,3 1 -2 0 -1 1\nconst wc i2 4 0\n"};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "in x f32 1,3,6,6\n" X_QUANTISED "%sconst cs f32 4 0.5 0.25 0.125 0.0625\n"
                 "wd = DequantizeLinear w cs wc axis=0\n"
                 "r = Conv xd wd pads=1,1,1,1\n" Y_QUANTISED,
                 filters[i]);
        ir_text_check(text, "quantised", "QuantizeLinear graphrt::QConv DequantizeLinear");
    }
}
END_TEST

START_TEST(residual_without_a_rounding_before_it)
{
    ir_text_check("in x f32 1,3,6,6\n"
                  "in u f32 1,4,6,6\n" X_QUANTISED RESIDUAL_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "c = Conv xd wd pads=1,1,1,1\n"
                  "a = Add ud c\n"
                  "r = Relu a\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QConv DequantizeLinear");
    ir_text_check("in x f32 2,5,16\n"
                  "in u f32 2,5,12\n" X_QUANTISED RESIDUAL_QUANTISED "const w i8 16,12" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "c = MatMul xd wd\n"
                  "y = Add c ud\n"
                  "out y\n",
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QMatMul");
}
END_TEST

START_TEST(residual_behind_a_rounding_stays_apart)
{
    ir_text_check("in x f32 1,3,6,6\n"
                  "in u f32 1,4,6,6\n" X_QUANTISED RESIDUAL_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "c = Conv xd wd pads=1,1,1,1\n"
                  "cq = QuantizeLinear c t z\n"
                  "cd = DequantizeLinear cq t z\n"
                  "r = Add ud cd\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QConv graphrt::QAdd DequantizeLinear");
}
END_TEST

START_TEST(matmul_with_bias)
{
    ir_text_check("in x f32 2,5,16\n" X_QUANTISED "const w i8 16,12" WEIGHTS "const b f32 12 1 2 -3 0.5\n"
                  "wd = DequantizeLinear w ws wz\n"
                  "c = MatMul xd wd\n"
                  "r = Add b c\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QMatMul DequantizeLinear");
}
END_TEST

START_TEST(matmul_with_a_quantised_bias)
{
    ir_text_check("in x f32 2,5,16\n" X_QUANTISED "const w i8 16,12" WEIGHTS "const bq i32 12 100 -200 3 4\n"
                  "const bs f32 - 0.000244140625\n"
                  "b = DequantizeLinear bq bs\n"
                  "wd = DequantizeLinear w ws wz\n"
                  "c = MatMul xd wd\n"
                  "r = Add b c\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear DequantizeLinear graphrt::QMatMul DequantizeLinear");
}
END_TEST

START_TEST(gemm_with_transposed_weights)
{
    ir_text_check("in x f32 5,16\n" X_QUANTISED "const w i8 12,16" WEIGHTS "const b f32 12 1 2 -3 0.5\n"
                  "wd = DequantizeLinear w ws wz\n"
                  "r = Gemm xd wd b transB=1\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QMatMul DequantizeLinear");
}
END_TEST

START_TEST(both_factors_are_activations)
{
    ir_text_check("in x f32 2,5,16\n" X_QUANTISED "xt = Transpose xd perm=0,2,1\n"
                  "r = MatMul xd xt\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear Transpose graphrt::QMatMul DequantizeLinear");
}
END_TEST

/* The Add between lies outside the integers: its QuantizeLinear is missing. */
START_TEST(a_product_with_two_users_keeps_its_float_result)
{
    ir_text_check("in x f32 1,3,6,6\n" X_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "c = Conv xd wd\n"
                  "e = Exp c\n"
                  "y = Add c e\n"
                  "out y\n",
                  "quantised", "QuantizeLinear graphrt::QConv Exp Add");
}
END_TEST

START_TEST(dynamic_quantisation)
{
    ir_text_check("in x f32 3,16\n"
                  "const w i8 16,12" WEIGHTS "const wz i8 - 3\n"
                  "const ws f32 - 0.03125\n"
                  "const b f32 12 1 2 -3 0.5\n"
                  "q,s,z = DynamicQuantizeLinear x\n"
                  "i = MatMulInteger q w z wz\n"
                  "c = Cast i to=1\n"
                  "f = Mul s ws\n"
                  "m = Mul c f\n"
                  "y = Add m b\n"
                  "out y\n",
                  "quantised", "DynamicQuantizeLinear graphrt::QMatMul");
}
END_TEST

START_TEST(integer_bias_and_quantised_result)
{
    ir_text_check("in x f32 3,16\n"
                  "const w i8 16,12" WEIGHTS "const s f32 - 0.0078125\n"
                  "const z u8 - 128\n"
                  "const t f32 - 0.5\n"
                  "const f f32 - 0.000244140625\n"
                  "const wz i8 - 3\n"
                  "const b i32 12 100 -200 300\n"
                  "xq = QuantizeLinear x s z\n"
                  "i = MatMulInteger xq w z wz\n"
                  "j = Add i b\n"
                  "c = Cast j to=1\n"
                  "r = Mul c f\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QMatMul DequantizeLinear");
}
END_TEST

START_TEST(qlinear_ops)
{
    ir_text_check("in x f32 1,3,6,6\n"
                  "const s f32 - 0.0078125\n"
                  "const z u8 - 128\n"
                  "const t f32 - 0.5\n"
                  "const ws f32 - 0.03125\n"
                  "const wz i8 - 0\n"
                  "const b i32 4 100 -200 3 4\n"
                  "const w i8 4,3,3,3" WEIGHTS "xq = QuantizeLinear x s z\n"
                  "yq = QLinearConv xq s z w ws wz t z b\n"
                  "y = DequantizeLinear yq t z\n"
                  "out y\n",
                  "quantised", "QuantizeLinear graphrt::QConv DequantizeLinear");
}
END_TEST

/* Their product is 1 in 64 bits. */
START_TEST(dims_that_overflow_are_not_one)
{
    ir_module *module =
        ir_text("in x u8 2,16\nin s f32 7,7905747460161236407\nconst t f32 - 0.5\n"
                "const z u8 - 3\nconst w u8 16,12\ny = QLinearMatMul x s z w t z t z\nout y\n");
    ir_text_pass(module, "quantised");
    ck_assert_str_eq(ir_text_ops(module), "QLinearMatMul");
    ir_module_release(module);
}
END_TEST

START_TEST(images_lie_channels_last)
{
    ir_module *module = ir_text("in x f32 1,3,8,8\n" X_QUANTISED "const w i8 8,3,3,3" WEIGHTS
                                "wd = DequantizeLinear w ws wz\n"
                                "c = Conv xd wd\n"
                                "cq = QuantizeLinear c t z\n"
                                "cd = DequantizeLinear cq t z\n"
                                "r = MaxPool cd kernel_shape=2,2\n" Y_QUANTISED);
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "QuantizeLinear Transpose graphrt::QConv graphrt::MaxPool "
                                          "DequantizeLinear Transpose");
    ir_module_release(module);
}
END_TEST

START_TEST(zero_points_may_be_omitted)
{
    ir_text_check("in x f32 2,16\n"
                  "const s f32 - 0.0078125\n"
                  "const w i8 16,12" WEIGHTS "const ws f32 - 0.03125\n"
                  "xq = QuantizeLinear x s\n"
                  "xd = DequantizeLinear xq s\n"
                  "wd = DequantizeLinear w ws\n"
                  "y = MatMul xd wd\n"
                  "out y\n",
                  "quantised", "QuantizeLinear graphrt::QMatMul");
}
END_TEST

#define FLOAT8_WEIGHTS           \
    "const w e4m3 16,16 1 2 3\n" \
    "const s f32 - 0.5\n"        \
    "wd = DequantizeLinear w s\n"
#define FLOAT8_MODEL(ZERO, ATTRIBUTES)                           \
    "in x f32 2,16\n" FLOAT8_WEIGHTS "const z e4m3 - " ZERO "\n" \
    "const b f32 16 1 2 -3 0.5\n"                                \
    "xq = QuantizeLinear x s z\n"                                \
    "xd = DequantizeLinear xq s z\n"                             \
    "c = MatMul xd wd\n"                                         \
    "d = Add c b\n"                                              \
    "r = Relu d\n"                                               \
    "yq = QuantizeLinear r s z" ATTRIBUTES "\n"                  \
    "y = DequantizeLinear yq s z\n"                              \
    "out y\n"

static grt_target plain_target;

static bool supports_float8(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                            int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    (void)target;
    if (grt_op_is(desc, "graphrt", "QMatMul") && grt_dtype_in(in[QP_X].dtype, GRT_SET_FLOAT8))
        return true;
    return plain_target.supports(&plain_target, desc, in, n_in, out, n_out, why);
}

/* For a target that has products of float8. */
static void check_float8(const char *graph, const char *expected)
{
    ir_module *module = ir_text(graph);
    plain_target = ir_text_target();
    grt_target target = plain_target;
    target.supports = supports_float8;
    pass_context context = {.module = module, .target = &target};
    ck_assert_int_eq(pass_quantised(&context), GRT_OK);
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
}

START_TEST(products_of_float8)
{
    check_float8(FLOAT8_MODEL("0", ""), "QuantizeLinear graphrt::QMatMul DequantizeLinear");
    /* Steps have no rounding but to what is largest. */
    check_float8(FLOAT8_MODEL("0", " saturate=0"),
                 "QuantizeLinear graphrt::QMatMul QuantizeLinear DequantizeLinear");
    /* A zero point that is none of float8: nothing is known of such models. */
    check_float8(FLOAT8_MODEL("1", ""), "QuantizeLinear DequantizeLinear graphrt::WMatMul Add Relu "
                                        "QuantizeLinear DequantizeLinear");
    /* Integers and float8 are no factors of one product. */
    check_float8("in x f32 2,16\n" X_QUANTISED FLOAT8_WEIGHTS "y = MatMul xd wd\nout y\n",
                 "QuantizeLinear DequantizeLinear graphrt::WMatMul");
}
END_TEST

static void keep_reasons(void *user, const grt_finding *finding)
{
    grt_text_add(user, "%s: %s; ", finding->op, finding->message);
}

static void check_reasons(const char *graph, const char *expected)
{
    grt_text found = {0};
    ir_module *module = ir_text(graph);
    const grt_target target = ir_text_target();
    pass_context context = {
        .module = module, .target = &target, .near_misses = {.tell = keep_reasons, .user = &found}};
    ck_assert_int_eq(pass_quantised(&context), GRT_OK);
    ck_assert_str_eq(grt_text_get(&found), expected);
    grt_text_release(&found);
    ir_module_release(module);
}

START_TEST(what_stays_in_float_says_why)
{
    check_reasons("in x f32 1,3,6,6\n" X_QUANTISED "const w i8 4,3,3,3" WEIGHTS
                  "wd = DequantizeLinear w ws wz\n"
                  "r = Conv xd wd\n" Y_QUANTISED,
                  "");
    check_reasons("in x f32 2,16\n"
                  "in w f32 16,4\n" X_QUANTISED "r = MatMul xd w\n" Y_QUANTISED,
                  "MatMul: stays in float32: its weights are not quantised; ");
    check_reasons("in x e4m3 2,16\n"
                  "in w f32 16,4\n"
                  "const s f32 - 0.5\n"
                  "xd = DequantizeLinear x s\n"
                  "y = MatMul xd w\n"
                  "out y\n",
                  "MatMul: stays in float32: its input is of float8, its weights are no constant of that; ");
    check_reasons("in x e4m3 2,16\n" FLOAT8_WEIGHTS "xd = DequantizeLinear x s\n"
                  "y = MatMul xd wd\n"
                  "out y\n",
                  "WMatMul: stays in float32: an input is not of 8 bits with one float32 scale; ");
    check_reasons("in x f32 2,16\n" X_QUANTISED "r = LogSoftmax xd\n" Y_QUANTISED,
                  "LogSoftmax: stays in float32: there is no step of 8-bit numbers for this op; ");
    check_reasons("in x f32 2,16\n" X_QUANTISED "y = Tanh xd\nout y\n",
                  "Tanh: stays in float32: its result is not quantised, or has several readers; ");
    check_reasons(
        "in x u8 1,3,6,6\nin s f32 -\nin t f32 -\nconst z u8 - 3\n"
        "xd = DequantizeLinear x s z\nr = GlobalAveragePool xd\nyq = QuantizeLinear r t z\nout yq\n",
        "GlobalAveragePool: stays in float32: the scale of an input is known only when the model "
        "runs; ");
    check_reasons("in x u8 2,16\nin t f32 -\nconst s f32 - 0.5\nconst z u8 - 3\n"
                  "xd = DequantizeLinear x s z\nr = Softmax xd\nyq = QuantizeLinear r t z\nout yq\n",
                  "Softmax: stays in float32: the scale of its result is known only when the model runs; ");
}
END_TEST

UNIT_SUITE(test_pass_quantised, NULL, NULL, activation_of_a_later_output, conv_with_bias_and_relu,
           conv_with_scales_of_channels_and_clip, conv_with_a_float_result, conv_with_filters_of_4_bits,
           residual_without_a_rounding_before_it, residual_behind_a_rounding_stays_apart, matmul_with_bias,
           matmul_with_a_quantised_bias, gemm_with_transposed_weights, both_factors_are_activations,
           a_product_with_two_users_keeps_its_float_result, dynamic_quantisation,
           integer_bias_and_quantised_result, qlinear_ops, dims_that_overflow_are_not_one,
           images_lie_channels_last, zero_points_may_be_omitted, products_of_float8,
           what_stays_in_float_says_why)
