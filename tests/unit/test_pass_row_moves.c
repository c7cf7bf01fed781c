/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of rows that cancel around products are dropped. */
#include "tests/unit/ir_text.h"

#include <check.h>

START_TEST(transposes_around_a_product)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const w f32 8,4\n"
                  "const b f32 4\n"
                  "a = Transpose x perm=1,0,2\n"
                  "p = MatMul a w\n"
                  "s = Add b p\n"
                  "r = Relu s\n"
                  "y = Transpose r perm=1,0,2\n"
                  "out y\n",
                  "row_moves", "MatMul Add Relu");
}
END_TEST

START_TEST(matrix_around_a_gemm)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const w f32 4,8\n"
                  "const b f32 4\n"
                  "const f i64 2 -1 8\n"
                  "const g i64 3 2 3 4\n"
                  "a = Reshape x f\n"
                  "p = Gemm a w b transB=1\n"
                  "y = Reshape p g\n"
                  "out y\n",
                  "row_moves", "Transpose MatMul Add");
}
END_TEST

/* The first output of a node may be left out: what reads another one has no chain behind it. */
START_TEST(a_later_output)
{
    ir_module *m = ir_text("in x f32 5,3,4\n"
                           "const w f32 1,18,4\n"
                           "const r f32 1,18,6\n"
                           "const f i64 2 -1 6\n"
                           "n,h = GRU x w r hidden_size=6\n"
                           "a = Relu h\n"
                           "y = Reshape a f\n"
                           "out y\n");
    ir_text_pass(m, "dce");
    ck_assert_ptr_null(ir_text_node(m, "GRU", 0)->out[0]);
    ir_text_pass(m, "row_moves");
    ck_assert_str_eq(ir_text_ops(m), "GRU Relu Reshape");
    ir_module_release(m);
}
END_TEST

/* Sequence first, joined to a matrix, split and put back. */
START_TEST(both)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const w f32 4,8\n"
                  "const f i64 2 -1 8\n"
                  "const g i64 3 3 2 4\n"
                  "const n f32 4\n"
                  "t = Transpose x perm=1,0,2\n"
                  "a = Reshape t f\n"
                  "p = Gemm a w transB=1\n"
                  "l = LayerNormalization p n axis=1\n"
                  "r = Reshape l g\n"
                  "y = Transpose r perm=1,0,2\n"
                  "out y\n",
                  "", "graphrt::MatMul LayerNormalization");
}
END_TEST

/* Rounding to 8 bits with one scale and products of such numbers, where nothing is rounded between the moves.
 */
#define QUANTISED_PRODUCT          \
    "in x f32 2,3,16\n"            \
    "const w i8 16,12\n"           \
    "const s f32 - 0.5\n"          \
    "const z i8 - 3\n"             \
    "a = Transpose x perm=1,0,2\n" \
    "q = QuantizeLinear a s z\n"   \
    "d = DequantizeLinear q s z\n" \
    "v = DequantizeLinear w s\n"   \
    "p = MatMul d v\n"
START_TEST(around_quantised_products)
{
    ir_text_check(QUANTISED_PRODUCT "y = Transpose p perm=1,0,2\n"
                                    "out y\n",
                  "", "QuantizeLinear graphrt::QMatMul");
    ir_text_check(QUANTISED_PRODUCT "c = Cast p to=10\n"
                                    "y = Transpose c perm=2,0,1\n"
                                    "out y\n",
                  "", "QuantizeLinear Transpose graphrt::QMatMul Cast Transpose");
}
END_TEST

/* Moves on both sides of a product of 8-bit numbers are one. */
START_TEST(that_meet_behind_quantised_products)
{
    ir_text_check(QUANTISED_PRODUCT "y = Transpose p perm=2,0,1\n"
                                    "out y\n",
                  "", "QuantizeLinear graphrt::QMatMul Transpose");
    ir_text_check("in x f32 3,16,2\n"
                  "const w i8 16,12\n"
                  "const s f32 - 0.5\n"
                  "const z i8 - 3\n"
                  "a = Transpose x perm=2,0,1\n"
                  "q = QuantizeLinear a s z\n"
                  "d = DequantizeLinear q s z\n"
                  "v = DequantizeLinear w s\n"
                  "p = MatMul d v\n"
                  "y = Transpose p perm=1,0,2\n"
                  "out y\n",
                  "", "QuantizeLinear Transpose graphrt::QMatMul");
}
END_TEST

/* Rows that land elsewhere stay where they were moved. */
START_TEST(what_does_not_cancel)
{
    ir_text_check("in x f32 3,3,8\n"
                  "const w f32 8,4\n"
                  "const f i64 2 9 4\n"
                  "a = Transpose x perm=1,0,2\n"
                  "p = MatMul a w\n"
                  "y = Reshape p f\n"
                  "out y\n",
                  "row_moves", "Transpose MatMul Reshape");
}
END_TEST

/* The product's other readers want it as it was. */
START_TEST(with_another_reader)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const w f32 8,4\n"
                  "a = Transpose x perm=1,0,2\n"
                  "p = MatMul a w\n"
                  "y = Transpose p perm=1,0,2\n"
                  "out y\n"
                  "out p\n",
                  "row_moves", "Transpose MatMul Transpose");
}
END_TEST

/* A vector of another dim is not the same for all rows. */
START_TEST(terms_per_row)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const c f32 3,1,1\n"
                  "a = Transpose x perm=1,0,2\n"
                  "s = Add a c\n"
                  "y = Transpose s perm=1,0,2\n"
                  "out y\n",
                  "row_moves", "Transpose Add Transpose");
}
END_TEST

Suite *suite_test_pass_row_moves(void)
{
    Suite *suite = suite_create("pass_row_moves");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, transposes_around_a_product);
    tcase_add_test(tc, matrix_around_a_gemm);
    tcase_add_test(tc, a_later_output);
    tcase_add_test(tc, both);
    tcase_add_test(tc, around_quantised_products);
    tcase_add_test(tc, what_does_not_cancel);
    tcase_add_test(tc, with_another_reader);
    tcase_add_test(tc, that_meet_behind_quantised_products);
    tcase_add_test(tc, terms_per_row);
    suite_add_tcase(suite, tc);
    return suite;
}
