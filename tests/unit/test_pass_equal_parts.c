/* SPDX-License-Identifier: Apache-2.0 */
/* Equal parts that are moved alike are moved at once. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

/* Queries, keys and values within each head's channels, of an image with channels last. */
START_TEST(parts_of_each_head)
{
    ir_text_check("in x f32 2,5,96\n"
                  "const h i64 4 2 2 48 5\n"
                  "const a0 i64 1 0\n"
                  "const a1 i64 1 16\n"
                  "const a2 i64 1 32\n"
                  "const a3 i64 1 48\n"
                  "const ax i64 1 2\n"
                  "t = Transpose x perm=0,2,1\n"
                  "r = Reshape t h\n"
                  "a = Slice r a0 a1 ax\n"
                  "b = Slice r a1 a2 ax\n"
                  "c = Slice r a2 a3 ax\n"
                  "q = Transpose a perm=0,1,3,2\n"
                  "k = Transpose b perm=0,1,3,2\n"
                  "v = Transpose c perm=0,1,3,2\n"
                  "l = Relu q\n"
                  "m = Relu k\n"
                  "n = Relu v\n"
                  "out l\n"
                  "out m\n"
                  "out n\n",
                  "equal_parts",
                  "Reshape Transpose Split Reshape Reshape Reshape Transpose Reshape Slice Slice Slice "
                  "Transpose Transpose Transpose Relu Relu Relu");
}
END_TEST

/* Queries that are pooled have other dims than keys, in the same order. */
START_TEST(parts_under_other_dims)
{
    ir_module *module = ir_text("in x f32 2,20,32\n"
                                "const h i64 6 2 5 4 2 1 16\n"
                                "const g i64 6 2 4 1 5 2 8\n"
                                "const a0 i64 1 0\n"
                                "const a1 i64 1 1\n"
                                "const a2 i64 1 2\n"
                                "const ax i64 1 3\n"
                                "r = Reshape x h\n"
                                "a = Slice r a0 a1 ax\n"
                                "b = Slice r a1 a2 ax\n"
                                "q = Transpose a perm=0,2,3,4,1,5\n"
                                "s = Reshape q g\n"
                                "k = Transpose b perm=0,2,3,4,1,5\n"
                                "l = Relu s\n"
                                "m = Exp k\n"
                                "out l\n"
                                "out m\n");
    ck_assert_int_eq(ir_text_pass(module, "equal_parts"), 2);
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), "Reshape Transpose Reshape Split Reshape Reshape Relu Exp");
    ir_module_release(module);
}
END_TEST

/* What was cut off in front needs no kernel at all. */
START_TEST(rows_that_follow_each_other)
{
    ir_module *module = ir_text("in x f32 2,4,16\n"
                                "const i i64 - 0\n"
                                "const j i64 - 1\n"
                                "a = Gather x i axis=0\n"
                                "b = Gather x j axis=0\n"
                                "l = Relu a\n"
                                "m = Exp b\n"
                                "out l\n"
                                "out m\n");
    ck_assert_int_eq(ir_text_pass(module, "equal_parts"), 2);
    ck_assert_int_eq(ir_text_pass(module, "dce"), 2);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "Transpose"));
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "Split"));
    ir_module_release(module);
}
END_TEST

static void equal_parts_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "equal_parts"), 0);
    ir_module_release(module);
}

/* The first two parts of so many columns. */
#define TWO_SLICES(SECOND, END)   \
    "const a0 i64 1 0\n"          \
    "const a1 i64 1 " SECOND "\n" \
    "const a2 i64 1 " END "\n"    \
    "const ax i64 1 1\n"          \
    "a = Slice x a0 a1 ax\n"      \
    "b = Slice x a1 a2 ax\n"

START_TEST(a_part_that_nobody_reads_stops_it)
{
    equal_parts_stay("in x f32 4,48\n" TWO_SLICES("16", "32") "l = Relu a\n"
                                                              "m = Relu b\n"
                                                              "out l\n"
                                                              "out m\n");
}
END_TEST

START_TEST(parts_that_are_moved_differently_stay)
{
    equal_parts_stay("in x f32 16,32\n" TWO_SLICES("16", "32") "t = Transpose b perm=1,0\n"
                                                               "l = Relu a\n"
                                                               "m = Relu t\n"
                                                               "out l\n"
                                                               "out m\n");
}
END_TEST

/* Five numbers of float32: the second part would begin where no kernel may read. */
START_TEST(parts_that_begin_anywhere_stay)
{
    equal_parts_stay("in x f32 1,10\n" TWO_SLICES("5", "10") "l = Relu a\n"
                                                             "m = Relu b\n"
                                                             "out l\n"
                                                             "out m\n");
}
END_TEST

/* One transpose, and a Split that is a view already. */
START_TEST(parts_that_cost_nothing_stay)
{
    equal_parts_stay("in x f32 4,2,16\n"
                     "t = Transpose x perm=1,0,2\n"
                     "a,b = Split t axis=0 num_outputs=2\n"
                     "l = Relu a\n"
                     "m = Relu b\n"
                     "out l\n"
                     "out m\n");
}
END_TEST

UNIT_SUITE(test_pass_equal_parts, NULL, NULL, parts_of_each_head, parts_under_other_dims,
           rows_that_follow_each_other, a_part_that_nobody_reads_stops_it,
           parts_that_are_moved_differently_stay, parts_that_begin_anywhere_stay,
           parts_that_cost_nothing_stay)
