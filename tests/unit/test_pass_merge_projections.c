/* SPDX-License-Identifier: Apache-2.0 */
/* The three projections in front of an attention become one. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

START_TEST(three_become_one)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const a f32 8,8\n"
                  "const b f32 8,8\n"
                  "const c f32 8,8\n"
                  "q = MatMul x a\n"
                  "k = MatMul x b\n"
                  "v = MatMul x c\n"
                  "y = Attention q k v q_num_heads=2 kv_num_heads=2\n"
                  "out y\n",
                  "merge_projections", "MatMul graphrt::Attention");
}
END_TEST

START_TEST(biases_and_groups_of_heads)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const a f32 8,16\n"
                  "const b f32 8,8\n"
                  "const c f32 8,8\n"
                  "const d f32 16\n"
                  "const e f32 8\n"
                  "const f f32 8\n"
                  "q = graphrt::MatMul x a d\n"
                  "k = graphrt::MatMul x b e\n"
                  "v = graphrt::MatMul x c f\n"
                  "y = Attention q k v q_num_heads=4 kv_num_heads=2 is_causal=1\n"
                  "out y\n",
                  "merge_projections", "graphrt::MatMul graphrt::Attention");
}
END_TEST

/* Whisper's keys have none: it would be the same for all weights of a query. */
START_TEST(a_bias_that_is_not_there)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const a f32 8,16\n"
                  "const b f32 8,8\n"
                  "const c f32 8,8\n"
                  "const d f32 16\n"
                  "const f f32 8\n"
                  "q = graphrt::MatMul x a d\n"
                  "k = MatMul x b\n"
                  "v = graphrt::MatMul x c f\n"
                  "y = Attention q k v q_num_heads=4 kv_num_heads=2\n"
                  "out y\n",
                  "merge_projections", "graphrt::MatMul graphrt::Attention");
    ir_text_check("in f f32 2,3,8\n"
                  "const s f32 - 0.0625\n"
                  "const z u8 - 128\n"
                  "const a i8 8,8 3 -7 100 -128 127 5\n"
                  "const b i8 8,8 33 18 -2 77 -60\n"
                  "const one f32 - 0.03125\n"
                  "const n i8 - 0\n"
                  "const d f32 8\n"
                  "x = QuantizeLinear f s z\n"
                  "q = graphrt::QMatMul x s z a one n\n"
                  "k = graphrt::QMatMul x s z b one n\n"
                  "v = graphrt::QMatMul x s z a one n _ _ d\n"
                  "y = Attention q k v q_num_heads=2 kv_num_heads=2\n"
                  "out y\n",
                  "merge_projections", "QuantizeLinear graphrt::QMatMul graphrt::Attention");
}
END_TEST

START_TEST(products_of_8_bit_numbers)
{
    ir_text_check("in f f32 2,3,8\n"
                  "const s f32 - 0.0625\n"
                  "const z u8 - 128\n"
                  "const a i8 8,8 3 -7 100 -128 127 5\n"
                  "const b i8 8,8 33 18 -2 77 -60\n"
                  "const c i8 8,8 1 2 -100 64\n"
                  "const one f32 - 0.03125\n"
                  "const n i8 - 0\n"
                  "const m i8 8 0 1 -2 3\n"
                  "const each f32 8 0.5 0.25 0.125\n"
                  "const d f32 8\n"
                  "x = QuantizeLinear f s z\n"
                  "q = graphrt::QMatMul x s z a one n _ _ d\n"
                  "k = graphrt::QMatMul x s z b each m _ _ d\n"
                  "v = graphrt::QMatMul x s z c one n _ _ d\n"
                  "y = Attention q k v q_num_heads=2 kv_num_heads=2\n"
                  "out y\n",
                  "merge_projections", "QuantizeLinear graphrt::QMatMul graphrt::Attention");
}
END_TEST

START_TEST(what_others_use_stays)
{
    ir_text_check("in x f32 2,3,8\n"
                  "in z f32 2,3,8\n"
                  "const a f32 8,8\n"
                  "q = MatMul x a\n"
                  "k = MatMul z a\n"
                  "v = MatMul z a\n"
                  "y = Attention q k v q_num_heads=2 kv_num_heads=2\n"
                  "out y\n",
                  "merge_projections", "MatMul MatMul MatMul Attention");
    ir_text_check("in x f32 2,3,8\n"
                  "const a f32 8,8\n"
                  "q = MatMul x a\n"
                  "k = MatMul x a\n"
                  "v = MatMul x a\n"
                  "y = Attention q k v q_num_heads=2 kv_num_heads=2\n"
                  "out y\n"
                  "out k\n",
                  "merge_projections", "MatMul MatMul MatMul Attention");
}
END_TEST

UNIT_SUITE(test_pass_merge_projections, NULL, NULL, three_become_one, biases_and_groups_of_heads,
           a_bias_that_is_not_there, products_of_8_bit_numbers, what_others_use_stays)
