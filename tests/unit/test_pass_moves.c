/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of moves become one. */
#include "tests/unit/ir_text.h"

#include <check.h>

START_TEST(two_transposes_with_a_reshape_between)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const h i64 4 2 3 2 4\n"
                  "const f i64 3 4 3 4\n"
                  "a = Reshape x h\n"
                  "b = Transpose a perm=0,2,1,3\n"
                  "c = Reshape b f\n"
                  "y = Transpose c perm=1,0,2\n"
                  "z = Relu y\n"
                  "out z\n",
                  "moves", "Reshape Transpose Reshape Transpose Reshape Relu");
}
END_TEST

START_TEST(what_moves_nothing_is_a_reshape)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const h i64 4 2 3 2 4\n"
                  "const f i64 3 2 3 8\n"
                  "a = Reshape x h\n"
                  "b = Transpose a perm=0,2,1,3\n"
                  "c = Transpose b perm=0,2,1,3\n"
                  "y = Reshape c f\n"
                  "z = Relu y\n"
                  "out z\n",
                  "", "Relu");
}
END_TEST

/* One transpose is as good as another. */
START_TEST(one_transpose_stays)
{
    ir_text_check("in x f32 2,3,8\n"
                  "const f i64 2 3 16\n"
                  "a = Transpose x perm=1,0,2\n"
                  "y = Reshape a f\n"
                  "z = Relu y\n"
                  "out z\n",
                  "moves", "Transpose Reshape Relu");
}
END_TEST

START_TEST(with_symbolic_dims)
{
    ir_text_check("in x f32 b,s,8\n"
                  "const h i64 4 0 0 2 4\n"
                  "const f i64 3 0 0 8\n"
                  "a = Reshape x h\n"
                  "b = Transpose a perm=0,2,1,3\n"
                  "c = Transpose b perm=2,0,1,3\n"
                  "y = Reshape c f\n"
                  "z = Relu y\n"
                  "out z\n",
                  "moves", "Reshape Transpose Transpose Transpose Relu");
}
END_TEST

Suite *suite_test_pass_moves(void)
{
    Suite *suite = suite_create("pass_moves");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, two_transposes_with_a_reshape_between);
    tcase_add_test(tc, what_moves_nothing_is_a_reshape);
    tcase_add_test(tc, one_transpose_stays);
    tcase_add_test(tc, with_symbolic_dims);
    suite_add_tcase(suite, tc);
    return suite;
}
