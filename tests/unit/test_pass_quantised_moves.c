/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: moves, means and element-wise steps between roundings are of bytes. */
#include "tests/unit/ir_text.h"
#include "tests/unit/quantised_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

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

/* What was dequantised is no NaN. */
START_TEST(numbers_are_chosen_at_once)
{
    ir_text_check("in x f32 3,50\n" X_QUANTISED "const none f32 - 0\n"
                  "n = IsNaN xd\n"
                  "r = Where n none xd\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear graphrt::QTable DequantizeLinear");
    ir_text_check("in x f32 3,50\n"
                  "in u f32 3,50\n" X_QUANTISED "const none f32 - 0\n"
                  "n = IsNaN u\n"
                  "r = Where n none xd\n" Y_QUANTISED,
                  "quantised", "QuantizeLinear DequantizeLinear IsNaN Where QuantizeLinear DequantizeLinear");
}
END_TEST

/* A product by a constant whose result has the scale of that: the same levels. */
START_TEST(tables_that_change_nothing_vanish)
{
    ir_text_check("in x f32 3,50\n" X_QUANTISED "const two f32 - 2\n"
                  "const twice f32 - 0.015625\n"
                  "r = Mul xd two\n"
                  "yq = QuantizeLinear r twice z\n"
                  "y = DequantizeLinear yq twice z\n"
                  "out y\n",
                  "quantised", "QuantizeLinear DequantizeLinear");
    ir_text_check("in x f32 3,50\n" X_QUANTISED
                  "const two u8 - 255\n" /* of 128: 127 of the constant's scale */
                  "const one f32 - 0.015748031496062992\n"
                  "const twice f32 - 0.015625\n"
                  "c = DequantizeLinear two one z\n"
                  "r = Mul xd c\n"
                  "yq = QuantizeLinear r twice z\n"
                  "y = DequantizeLinear yq twice z\n"
                  "out y\n",
                  "quantised", "QuantizeLinear DequantizeLinear");
}
END_TEST

/* Keys of an attention are read as rows, whether they are scaled before or not. */
START_TEST(turned_factors_are_rows)
{
    static const char *const scaled[] = {"", "kd = Mul ku half\nkq = QuantizeLinear kd t z\n"
                                             "k = DequantizeLinear kq t z\n"};
    for (size_t i = 0; i < 2; i++) {
        grt_text text = {0}, expected = {0};
        grt_text_add(&text,
                     "in x f32 2,5,16\nin u f32 2,7,16\n" X_QUANTISED RESIDUAL_QUANTISED
                     "const half f32 - 0.125\n%s = Transpose ud perm=0,2,1\n%sr = MatMul xd k\n" Y_QUANTISED,
                     i ? "ku" : "k", scaled[i]);
        grt_text_add(&expected, "QuantizeLinear QuantizeLinear %sgraphrt::QMatMul DequantizeLinear",
                     i ? "graphrt::QTable " : "");
        ir_text_check(grt_text_get(&text), "", grt_text_get(&expected));
        grt_text_release(&text);
        grt_text_release(&expected);
    }
}
END_TEST

UNIT_SUITE(test_pass_quantised_moves, NULL, NULL, moves_are_of_bytes, concat_of_one_scale_and_of_two,
           element_wise_chains_are_tables, means_are_of_bytes, softmax_is_of_bytes,
           products_repeat_the_smaller_factor, further_moves_are_of_bytes, quantisation_rises_above_moves,
           sums_of_two, functions_of_one_tensor_are_one_table, functions_of_two_tensors_stay_steps,
           quantisation_stays_behind_float_products, numbers_are_chosen_at_once,
           tables_that_change_nothing_vanish, turned_factors_are_rows)
