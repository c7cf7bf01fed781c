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

/* Queries that are cut out of queries, keys and values, all of which were turned for it. */
#define TURNED_QUERIES(BETWEEN, READERS)            \
    "in x f32 2,9,96\n"                             \
    "const h i64 5 2 9 3 4 8\n"                     \
    "const m i64 4 3 8 9 8\n"                       \
    "const f i64 4 8 3 3 8\n"                       \
    "const o i64 1 1\n"                             \
    "const e i64 1 2\n"                             \
    "const ax i64 1 0\n"                            \
    "r = Reshape x h\n"                             \
    "t = Transpose r perm=2,0,3,1,4\n"              \
    "j = Reshape t m\n" BETWEEN "q = Reshape c f\n" \
    "u = Transpose q perm=1,0,2,3\n"                \
    "v = Transpose q perm=2,0,1,3\n"                \
    "y = Relu u\n"                                  \
    "z = Relu v\n"                                  \
    "out y\n"                                       \
    "out z\n" READERS

START_TEST(columns_are_cut_out_before_they_are_moved)
{
    static const char *const cuts[] = {
        TURNED_QUERIES("c = Slice j o e ax\n", ""),
        TURNED_QUERIES("b,c,d = Split j axis=0 num_outputs=3\n", ""),
    };
    for (int i = 0; i < 2; i++) {
        ir_text_check(cuts[i], "", "Slice Reshape Transpose Reshape Transpose Reshape Relu Relu");
        ir_module *module = ir_text(cuts[i]);
        ck_assert_int_eq(ir_text_pass(module, "moves"), 2);
        ir_text_pass(module, "dce");
        ck_assert_str_eq(ir_text_ops(module),
                         "Slice Reshape Transpose Reshape Slice Reshape Transpose Reshape Relu Relu");
        ir_module_release(module);
    }
}
END_TEST

/* Moves behind a cut are joined where those from the source cannot be. */
START_TEST(moves_behind_a_cut)
{
    ir_text_check("in x f32 2,9,8\n"
                  "const b i64 1 2\n"
                  "const e i64 1 5\n"
                  "const ax i64 1 1\n"
                  "const f i64 4 1 2 8 3\n"
                  "s = Slice x b e ax\n"
                  "t = Transpose s perm=0,2,1\n"
                  "r = Reshape t f\n"
                  "u = Transpose r perm=0,1,3,2\n"
                  "y = Relu u\n"
                  "out y\n",
                  "moves", "Slice Transpose Reshape Reshape Relu");
}
END_TEST

/* All parts are read: one Transpose is least. */
START_TEST(what_was_moved_for_more_stays)
{
    ir_module *module =
        ir_text(TURNED_QUERIES("b,c,d = Split j axis=0 num_outputs=3\n", "w = Exp d\nout w\n"));
    ck_assert_int_eq(ir_text_pass(module, "moves"), 0);
    ir_module_release(module);
    module = ir_text(TURNED_QUERIES("c = Slice j o e ax\n", "w = Exp j\nout w\n"));
    ck_assert_int_eq(ir_text_pass(module, "moves"), 0);
    ir_module_release(module);
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
    tcase_add_test(tc, columns_are_cut_out_before_they_are_moved);
    tcase_add_test(tc, moves_behind_a_cut);
    tcase_add_test(tc, what_was_moved_for_more_stays);
    tcase_add_test(tc, one_transpose_stays);
    tcase_add_test(tc, with_symbolic_dims);
    suite_add_tcase(suite, tc);
    return suite;
}
