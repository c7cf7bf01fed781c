/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised models become integer steps. Scales are powers of two, so that both ways give the same numbers.
 */
#include "graph/passes/quantised.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#include <stdio.h>
#include <string.h>

#define X_QUANTISED               \
    "const s f32 - 0.0078125\n"   \
    "const z u8 - 128\n"          \
    "const t f32 - 0.5\n"         \
    "const ws f32 - 0.03125\n"    \
    "const wz i8 - 0\n"           \
    "xq = QuantizeLinear x s z\n" \
    "xd = DequantizeLinear xq s z\n"
#define Y_QUANTISED                 \
    "yq = QuantizeLinear r t z\n"   \
    "y = DequantizeLinear yq t z\n" \
    "out y\n"
#define WEIGHTS " 3 -7 100 -128 127 5 -60 33 18 -2 77\n"

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

#define RESIDUAL_QUANTISED        \
    "uq = QuantizeLinear u t z\n" \
    "ud = DequantizeLinear uq t z\n"

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

START_TEST(moves_are_of_bytes)
{
    ir_text_check("in x f32 1,4,6,6\n" X_QUANTISED "p = MaxPool xd kernel_shape=2,2 strides=2,2\n"
                  "r = Transpose p perm=0,2,3,1\n"
                  "yq = QuantizeLinear r s z\n"
                  "y = DequantizeLinear yq s z\n"
                  "out y\n",
                  "quantised", "QuantizeLinear MaxPool Transpose DequantizeLinear");
}
END_TEST

START_TEST(concat_of_one_scale_and_of_two)
{
    ir_text_check("in x f32 1,4,6,6\n"
                  "in u f32 1,4,6,6\n" X_QUANTISED "uq = QuantizeLinear u s z\n"
                  "ud = DequantizeLinear uq s z\n"
                  "r = Concat xd ud axis=1\n"
                  "yq = QuantizeLinear r s z\n"
                  "y = DequantizeLinear yq s z\n"
                  "out y\n",
                  "quantised", "QuantizeLinear QuantizeLinear Concat DequantizeLinear");
    ir_text_check("in x f32 1,4,6,6\n"
                  "in u f32 1,4,6,6\n" X_QUANTISED "uq = QuantizeLinear u t z\n"
                  "ud = DequantizeLinear uq t z\n"
                  "r = Concat xd ud axis=1\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QTable Concat DequantizeLinear");
}
END_TEST

START_TEST(element_wise_chains_are_tables)
{
    ir_text_check("in x f32 3,50\n" X_QUANTISED "const two f32 - 2\n"
                  "a = Sigmoid xd\n"
                  "r = Mul a two\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QTable DequantizeLinear");
}
END_TEST

START_TEST(means_are_of_bytes)
{
    static const char image[] = "in x f32 2,4,6,6\n", rows[] = "in x f32 2,7,5\n",
                      axes[] = "const first i64 2 2 3\nconst rows i64 1 1\nconst width i64 1 3\n";
    static const char *const means[] = {"r = GlobalAveragePool xd\n", "r = ReduceMean xd first\n",
                                        "r = ReduceMean xd first keepdims=0\n"};
    static const char *const ops[] = {"", "", "Reshape "};
    for (size_t i = 0; i < 3; i++) {
        grt_text text = {0}, expected = {0};
        grt_text_add(&text, "%s%s%s%s%s", image, axes, X_QUANTISED, means[i], Y_QUANTISED);
        grt_text_add(&expected, "QuantizeLinear graphrt::QGlobalAveragePool %sDequantizeLinear", ops[i]);
        ir_text_check(grt_text_get(&text), "quantised", grt_text_get(&expected));
        grt_text_release(&text);
        grt_text_release(&expected);
    }
    grt_text text = {0};
    grt_text_add(&text, "%s%s%sr = ReduceMean xd rows keepdims=0\n%s", rows, axes, X_QUANTISED, Y_QUANTISED);
    ir_text_check(grt_text_get(&text), "quantised",
                  "QuantizeLinear graphrt::QGlobalAveragePool Reshape DequantizeLinear");
    grt_text_release(&text);
    grt_text_add(&text, "%s%s%sr = ReduceMean xd width\n%s", image, axes, X_QUANTISED, Y_QUANTISED);
    ir_text_check(grt_text_get(&text), "quantised",
                  "QuantizeLinear DequantizeLinear ReduceMean QuantizeLinear DequantizeLinear");
    grt_text_release(&text);
}
END_TEST

START_TEST(softmax_is_of_bytes)
{
    ir_text_check("in x f32 3,50\n" X_QUANTISED "r = Softmax xd\n" Y_QUANTISED, "quantised",
                  "QuantizeLinear graphrt::QSoftmax DequantizeLinear");
    ir_text_check("in x f32 2,5,4,3\n" X_QUANTISED "r = Softmax xd axis=1\n" Y_QUANTISED, "quantised",
                  "QuantizeLinear graphrt::QSoftmax DequantizeLinear");
}
END_TEST

/* Channels of an image are weighted by a number each. */
START_TEST(products_repeat_the_smaller_factor)
{
    ir_text_check("in x f32 2,4,6,6\n"
                  "in u f32 2,4,1,1\n" X_QUANTISED "uq = QuantizeLinear u t z\n"
                  "ud = DequantizeLinear uq t z\n"
                  "r = Mul ud xd\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QMul DequantizeLinear");
    ir_text_check("in x f32 2,4,6,6\n"
                  "in u f32 2,1,6,1\n" X_QUANTISED "uq = QuantizeLinear u t z\n"
                  "ud = DequantizeLinear uq t z\n"
                  "r = Mul ud xd\n" Y_QUANTISED,
                  "quantised",
                  "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Mul QuantizeLinear "
                  "DequantizeLinear");
}
END_TEST

START_TEST(further_moves_are_of_bytes)
{
    static const char *const moves[] = {"r = Pad xd pads\n", "r = Pad xd pads none\n",
                                        "r = Pad xd pads mode=reflect\n",
                                        "r = Resize xd _ scales mode=nearest\n", "r = Tile xd repeats\n"};
    static const char *const ops[] = {"Pad", "Pad", "Pad", "Resize", "Tile"};
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        grt_text text = {0}, expected = {0};
        grt_text_add(&text,
                     "in x f32 1,4,6,6\nconst pads i64 8 0 0 1 1 0 0 1 2\nconst none f32 - 0\n"
                     "const scales f32 4 1 1 2 2\nconst repeats i64 4 1 2 1 2\n%s%s"
                     "yq = QuantizeLinear r s z\ny = DequantizeLinear yq s z\nout y\n",
                     X_QUANTISED, moves[i]);
        grt_text_add(&expected, "QuantizeLinear %s DequantizeLinear", ops[i]);
        ir_text_check(grt_text_get(&text), "quantised", grt_text_get(&expected));
        grt_text_release(&text);
        grt_text_release(&expected);
    }
    ir_text_check("in x f32 1,4,6,6\n" X_QUANTISED "a,b = Split xd axis=1 num_outputs=2\n"
                  "r = Add a b\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear Split graphrt::QAdd DequantizeLinear");
    ir_text_check("in x f32 1,4,6,6\nconst pads i64 8 0 0 1 1 0 0 1 2\nconst half f32 - 0.5\n" X_QUANTISED
                  "r = Pad xd pads half\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear DequantizeLinear Pad QuantizeLinear DequantizeLinear");
}
END_TEST

/* So that the products behind take bytes, and an activation in front becomes a table. */
START_TEST(quantisation_rises_above_moves)
{
    ir_text_check("in x f32 1,4,6,6\n" X_QUANTISED "const shape i64 2 4 36\n"
                  "e = Sigmoid xd\n"
                  "m = Reshape e shape\n"
                  "r = Transpose m perm=1,0\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QTable Reshape Transpose DequantizeLinear");
}
END_TEST

START_TEST(sums_of_two)
{
    ir_text_check("in x f32 3,50\n"
                  "in u f32 3,50\n" X_QUANTISED "uq = QuantizeLinear u t z\n"
                  "ud = DequantizeLinear uq t z\n"
                  "a = Add xd ud\n"
                  "r = Relu a\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear QuantizeLinear graphrt::QAdd DequantizeLinear");
}
END_TEST

/* GELU, rounded between all of its nodes. */
START_TEST(functions_of_one_tensor_are_one_table)
{
    ir_text_check("in x f32 3,50\n" X_QUANTISED "const oq u8 - 255\n"
                  "od = DequantizeLinear oq s z\n"
                  "e = Erf xd\n"
                  "eq = QuantizeLinear e s z\n"
                  "ed = DequantizeLinear eq s z\n"
                  "p = Add ed od\n"
                  "pq = QuantizeLinear p ws z\n"
                  "pd = DequantizeLinear pq ws z\n"
                  "m = Mul xd pd\n"
                  "mq = QuantizeLinear m s z\n"
                  "md = DequantizeLinear mq s z\n"
                  "r = Mul md od\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QTable DequantizeLinear");
}
END_TEST

START_TEST(functions_of_two_tensors_stay_steps)
{
    ir_text_check("in x f32 3,50\n"
                  "in u f32 3,50\n" X_QUANTISED RESIDUAL_QUANTISED "e = Erf ud\n"
                  "eq = QuantizeLinear e s z\n"
                  "ed = DequantizeLinear eq s z\n"
                  "r = Mul xd ed\n" Y_QUANTISED,
                  "quantised",
                  "QuantizeLinear QuantizeLinear graphrt::QTable graphrt::QMul DequantizeLinear");
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

/* Large ones would be widened in every run. */
START_TEST(large_weights_of_float_products_stay_small)
{
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 - 0.03125\n"
                  "wd = DequantizeLinear w ws\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f32 2,512\n"
                  "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                  "const wz u8 600,16 7 200\n"
                  "const b f32 600 1 2 3\n"
                  "wd = DequantizeLinear w ws wz axis=1 block_size=32\n"
                  "y = Gemm x wd b transB=1\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f16 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f16 16,600 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=0 block_size=32\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x i64 2,3\n"
                  "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32\n"
                  "y = Gather wd x\n"
                  "out y\n",
                  "quantised", "graphrt::WGather");
}
END_TEST

/* float8, and scales for rows of the summed dim: neither is widened when the model runs. */
START_TEST(other_forms_of_large_weights_stay_small)
{
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 512 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=0\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f32 2,512\n"
                  "const w e4m3 512,600 56 184 64 3 100 0 201\nconst ws f32 600 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=1\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
}
END_TEST

/* Scales that are powers of two, in 8 bits, as the microscaling formats have them. */
START_TEST(weights_with_scales_of_e8m0_stay_small)
{
    ir_text_check("in x f32 2,64\n"
                  "const w e2m1 70,64 3 1 7 12 0 5\nconst ws e8m0 70,2 127 126 128\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32 output_dtype=1\n"
                  "wt = Transpose wd perm=1,0\n"
                  "y = MatMul x wt\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x i64 3\n"
                  "const w e2m1 70,64 3 1 7 12 0 5\nconst ws e8m0 70,2 127 126 128\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32 output_dtype=1\n"
                  "y = Gather wd x\n"
                  "out y\n",
                  "quantised", "graphrt::WGather");
}
END_TEST

/* As many as there are scales would be 3 % of the weights. */
START_TEST(equal_zero_points_are_one)
{
    ir_module *module = ir_text("in x f32 2,512\n"
                                "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                                "const wz u8 600,16 128\n"
                                "wd = DequantizeLinear w ws wz axis=1 block_size=32\n"
                                "wt = Transpose wd perm=1,0\n"
                                "y = MatMul x wt\n"
                                "out y\n");
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "graphrt::WMatMul");
    const ir_value *zero = ir_in(module->main->first, 3);
    ck_assert(zero && zero->type.data);
    ck_assert_int_eq(grt_tensor_elements(zero->type.data), 1);
    ck_assert_int_eq(*(const uint8_t *)zero->type.data->data, 128);
    ir_module_release(module);
}
END_TEST

/* ---- drawn forms of weights ---- */

typedef struct weight_form {
    const char *dtype, *scale_dims, *x_dtype;
    int axis, block, zeros; /* zeros: 0 none, 1 all equal, 2 not */
    enum { BY_MATMUL, BY_TRANSPOSED, BY_GEMM, BY_TURNED_GEMM, BY_GATHER, N_USES } use;
} weight_form;

static uint32_t draw_below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 10) % n;
}

/* w has 64 rows of k and 70 columns, or the other way round; a table 70 rows of 64. Small models count, too.
 */
static weight_form draw_form(uint32_t *seed, char dims[32])
{
    static const char *const dtypes[] = {"u4",   "i4",   "u8",    "i8",    "u2",  "i2",
                                         "e4m3", "e5m2", "e4m3z", "e5m2z", "e2m1"};
    static const int blocks[] = {16, 32, 64, 8, 20};
    weight_form f = {.dtype = dtypes[draw_below(seed, sizeof dtypes / sizeof *dtypes)],
                     .x_dtype = draw_below(seed, 2) ? "f32" : "f16",
                     .scale_dims = dims,
                     .use = draw_below(seed, N_USES)};
    const bool turned = f.use == BY_TRANSPOSED || f.use == BY_TURNED_GEMM || f.use == BY_GATHER;
    const int along_k = turned ? 1 : 0, kind = (int)draw_below(seed, 4);
    f.axis = along_k;
    f.zeros = *f.dtype == 'e' ? 0 : (int)draw_below(seed, 3);
    if (kind == 0) {
        snprintf(dims, 32, "-");
    } else if (kind == 1) {
        f.axis = 1 - along_k;
        snprintf(dims, 32, "70");
    } else if (kind == 2) {
        snprintf(dims, 32, "64");
    } else {
        f.block = blocks[draw_below(seed, 5)];
        const int n = (64 - 1) / f.block + 1;
        snprintf(dims, 32, turned ? "70,%d" : "%d,70", n);
    }
    return f;
}

static void write_form(const weight_form *f, char *text, size_t size)
{
    static const char *const uses[] = {"y = MatMul x wd\n", "wt = Transpose wd perm=1,0\ny = MatMul x wt\n",
                                       "y = Gemm x wd\n", "y = Gemm x wd transB=1\n", "y = Gather wd x\n"};
    static const char *const zeros[] = {"", " 3", " 3 -2 1 3"};
    const bool gathers = f->use == BY_GATHER, by_k = f->use == BY_MATMUL || f->use == BY_GEMM;
    char zero[128] = "", block[32] = "";
    if (f->zeros)
        snprintf(zero, sizeof zero, "const wz %s %s%s\n", f->dtype, f->scale_dims, zeros[f->zeros]);
    if (f->block)
        snprintf(block, sizeof block, " block_size=%d", f->block);
    snprintf(text, size,
             "in x %s %s\nconst w %s %s 3 7 100 120 5 -60 33 18 2 77\nconst ws %s %s 0.03125 0.5 0.25\n%s"
             "wd = DequantizeLinear w ws%s axis=%d%s\n%sout y\n",
             gathers ? "i64" : f->x_dtype, gathers ? "5" : "2,64", f->dtype, by_k ? "64,70" : "70,64",
             f->x_dtype, f->scale_dims, zero, f->zeros ? " wz" : "", f->axis, block, uses[f->use]);
}

static size_t bytes_of_constants(const ir_module *module)
{
    size_t bytes = 0;
    IR_FOR_EACH_NODE (node, module->main)
        for (int32_t i = 0; i < node->n_in; i++)
            if (ir_in(node, i) && ir_in(node, i)->type.data)
                bytes += grt_tensor_bytes(ir_in(node, i)->type.data);
    return bytes;
}

/* One step reads the weights as they are; of rows with one scale, they may be taken before. */
static bool reads_packed(const weight_form *f, const char *ops)
{
    if (f->use != BY_GATHER)
        return !strcmp(ops, "graphrt::WMatMul");
    return !strcmp(ops, "graphrt::WGather") ||
           (*f->scale_dims == '-' && !strcmp(ops, "Gather DequantizeLinear"));
}

/* Nothing is widened when the model runs, and nothing was before. */
START_TEST(drawn_weights_are_never_widened)
{
    enum { FORMS = 60 };
    uint32_t seed = 7;
    for (int i = 0; i < FORMS; i++) {
        char dims[32], text[1024];
        const weight_form f = draw_form(&seed, dims);
        write_form(&f, text, sizeof text);
        ir_module *module = ir_text(text);
        const size_t before = bytes_of_constants(module);
        ir_text_pass(module, "");
        ck_assert_msg(reads_packed(&f, ir_text_ops(module)), "form %d became %s:\n%s", i, ir_text_ops(module),
                      text);
        ck_assert_msg(bytes_of_constants(module) <= before, "form %d has larger constants:\n%s", i, text);
        const bool moved = f.use == BY_GATHER && strcmp(ir_text_ops(module), "graphrt::WGather") != 0;
        ir_module_release(module);
        if (i % 4 == 0 && !moved)
            ir_text_check(text, "quantised", f.use == BY_GATHER ? "graphrt::WGather" : "graphrt::WMatMul");
    }
}
END_TEST

/* Weights that no step reads as they are would be widened in every run, however large they are. */
START_TEST(weights_of_float_steps_are_folded)
{
    ir_module *module = ir_text("in x f32 1500,600\n"
                                "const w i8 1500,600" WEIGHTS "const ws f32 - 0.03125\n"
                                "wd = DequantizeLinear w ws\n"
                                "y = Mul x wd\n"
                                "out y\n");
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "Mul");
    ir_module_release(module);
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

/* A target with steps that the CPU has not: residuals, rounding behind any activation, quantised norms. */
static bool takes_products(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                           int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    const grt_target plain = ir_text_target();
    (void)target;
    return grt_op_is(desc, "graphrt", "QConv") || grt_op_is(desc, "graphrt", "QMatMul") ||
           grt_op_is(desc, "graphrt", "QLayerNormalization") ||
           plain.supports(&plain, desc, in, n_in, out, n_out, why);
}

static ir_module *compile_for_other(const char *text, grt_precision precision)
{
    ir_module *module = ir_text(text);
    grt_target target = ir_text_target();
    target.supports = target.runs = takes_products;
    pass_context context = {.module = module, .target = &target, .level = 2, .precision = precision};
    ck_assert_msg(pass_run_enabled(&context) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

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

START_TEST(sums_join_products_that_are_rounded)
{
    ir_module *module =
        compile_for_other("in x f32 1,4,6,6\n" X_QUANTISED "const w i8 4,4,1,1" WEIGHTS "const u f32 - 0.25\n"
                          "wd = DequantizeLinear w ws wz\n"
                          "c = Conv xd wd\n"
                          "cq = QuantizeLinear c u z\n"
                          "cd = DequantizeLinear cq u z\n"
                          "a = Add cd xd\n"
                          "r = Relu a\n" Y_QUANTISED,
                          GRT_PRECISION_MODEL);
    const ir_node *conv = ir_text_node(module, "QConv", 0);
    double scale;
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAdd"));
    ck_assert_str_eq(grt_attr_string(&conv->desc, "sum_activation", ""), "Relu");
    ck_assert_str_eq(grt_attr_string(&conv->desc, "activation", ""), "");
    ck_assert(ir_const_float(ir_in(conv, QP_Y_SCALE), &scale) && scale == 0.25);
    ck_assert(ir_const_float(ir_in(conv, QP_SUM_SCALE), &scale) && scale == 0.5);
    ck_assert(ir_const_float(ir_in(conv, QP_R_SCALE), &scale) && scale == 0.0078125);
    ir_module_release(module);
}
END_TEST

START_TEST(activations_join_what_is_rounded_behind_them)
{
    const char *text =
        "in x f32 2,16\n" X_QUANTISED "const w i8 16,12" WEIGHTS "wd = DequantizeLinear w ws wz\n"
        "m = MatMul xd wd\n"
        "r = Gelu m\n" Y_QUANTISED;
    ir_module *module = compile_for_other(text, GRT_PRECISION_MODEL);
    ck_assert_str_eq(ir_text_ops(module), "QuantizeLinear graphrt::QMatMul DequantizeLinear");
    ck_assert_str_eq(grt_attr_string(&ir_text_node(module, "QMatMul", 0)->desc, "activation", ""), "Gelu");
    ir_module_release(module);
    /* The CPU's step does not round behind it. */
    module = ir_text(text);
    ir_text_pass(module, "");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "Gelu"));
    ir_module_release(module);
}
END_TEST

START_TEST(float_products_add_residuals_and_are_narrow)
{
    ir_module *module = compile_for_other("in x f32 2,16\n"
                                          "in o f32 2,12\n" X_QUANTISED "const w i8 16,12" WEIGHTS
                                          "wd = DequantizeLinear w ws wz\n"
                                          "e = Relu o\n"
                                          "m = MatMul xd wd\n"
                                          "y = Add e m\n"
                                          "out y\n",
                                          GRT_PRECISION_FLOAT16);
    const ir_node *product = ir_text_node(module, "QMatMul", 0);
    ck_assert_int_eq(product->out[0]->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(ir_in(product, QP_RESIDUAL)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "Add"));
    ir_module_release(module);
}
END_TEST

START_TEST(norms_quantise_their_results)
{
#define NORM                 \
    "in x f32 2,16\n"        \
    "const t f32 - 0.5\n"    \
    "const z u8 - 128\n"     \
    "const g f32 16 1 2 3\n" \
    "const b f32 16 5 4\n"   \
    "e = Relu x\n"           \
    "r = LayerNormalization e g b\n" Y_QUANTISED
    ir_module *module = compile_for_other(NORM, GRT_PRECISION_FLOAT16);
    const ir_node *norm = ir_text_node(module, "QLayerNormalization", 0);
    ck_assert_int_eq(norm->n_out, 1);
    ck_assert_int_eq(ir_in(norm, 0)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QuantizeLinear"));
    ir_module_release(module);
    /* Others read the float result. */
    module = compile_for_other(NORM "o = Tanh r\nout o\n", GRT_PRECISION_MODEL);
    ck_assert_int_eq(ir_text_node(module, "QLayerNormalization", 0)->n_out, 2);
    ir_module_release(module);
    /* The CPU's step does not quantise. */
    module = ir_text(NORM);
    ir_text_pass(module, "");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "QuantizeLinear"));
    ir_module_release(module);
#undef NORM
}
END_TEST

START_TEST(quantisation_stays_behind_float_products)
{
    ir_text_check("in x f32 2,3,4,8\n"
                  "in v f32 2,3,8,8\n"
                  "const t f32 - 0.5\n"
                  "const z u8 - 128\n"
                  "m = MatMul x v\n"
                  "r = Transpose m perm=0,2,1,3\n" Y_QUANTISED,
                  "quantised", "MatMul Transpose QuantizeLinear DequantizeLinear");
}
END_TEST

UNIT_SUITE(test_pass_quantised, NULL, NULL, conv_with_bias_and_relu, conv_with_scales_of_channels_and_clip,
           conv_with_a_float_result, conv_with_filters_of_4_bits, residual_without_a_rounding_before_it,
           residual_behind_a_rounding_stays_apart, matmul_with_bias, matmul_with_a_quantised_bias,
           gemm_with_transposed_weights, both_factors_are_activations,
           a_product_with_two_users_keeps_its_float_result, moves_are_of_bytes, means_are_of_bytes,
           softmax_is_of_bytes, products_repeat_the_smaller_factor, further_moves_are_of_bytes,
           concat_of_one_scale_and_of_two, element_wise_chains_are_tables, quantisation_rises_above_moves,
           sums_of_two, functions_of_one_tensor_are_one_table, functions_of_two_tensors_stay_steps,
           dynamic_quantisation, integer_bias_and_quantised_result, qlinear_ops, images_lie_channels_last,
           large_weights_of_float_products_stay_small, other_forms_of_large_weights_stay_small,
           weights_with_scales_of_e8m0_stay_small, equal_zero_points_are_one, drawn_weights_are_never_widened,
           weights_of_float_steps_are_folded, products_of_float8, what_stays_in_float_says_why,
           sums_join_products_that_are_rounded, activations_join_what_is_rounded_behind_them,
           float_products_add_residuals_and_are_narrow, norms_quantise_their_results,
           quantisation_stays_behind_float_products, zero_points_may_be_omitted)
