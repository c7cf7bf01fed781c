/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of equal rows become masks of one row. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define INPUTS                  \
    "in q f32 2,2,3,4\n"        \
    "in k f32 2,2,5,4\n"        \
    "in v f32 2,2,5,4\n"        \
    "const zero f32 - 0\n"      \
    "const low f32 - -1e4\n"    \
    "const all i64 4 2 1 3 5\n" \
    "in given f32 2,1,1,5\n"    \
    "keys = Less given zero\n"
#define REST "y = Attention q k v m\nout y\n"

/* The mask's rows afterwards; how many attentions were changed. */
static void check(const char *text, const char *ops, int64_t rows, int changed)
{
    ir_text_check(text, "mask_rows", ops);
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "mask_rows"), changed);
    const ir_type *mask = &ir_in(ir_text_node(module, "Attention", 0), 3)->type;
    int64_t found;
    ck_assert(grt_dim_is_const(module->dims, mask->dims[mask->rank - 2], &found));
    ck_assert_int_eq(found, rows);
    ir_module_release(module);
}

START_TEST(padding_that_is_expanded)
{
    check(INPUTS "const true bool 1,1,3,1 1\n"
                 "both = And true keys\n"
                 "each = Expand both all\n"
                 "m = Where each zero low\n" REST,
          "Less And And Expand Where Where Attention", 1, 1);
}
END_TEST

START_TEST(all_that_share_it)
{
    check(INPUTS "each = Expand keys all\n"
                 "m = Where each zero low\n"
                 "x = Attention q k v m\n"
                 "out x\n" REST,
          "Less Expand Where Where Attention Attention", 1, 2);
}
END_TEST

START_TEST(constants)
{
    check(INPUTS "const m f32 2,1,3,5 0 -1 0 2 3 0 -1 0 2 3 0 -1 0 2 3 7 -1 0 2 3 7 -1 0 2 3 7 -1 0 2 3\nout "
                 "keys\n" REST,
          "Less Attention", 1, 1);
}
END_TEST

START_TEST(rows_that_differ_stay)
{
    check(INPUTS "const some bool 1,1,3,1 1 0 1\n"
                 "both = And some keys\n"
                 "m = Where both zero low\n" REST,
          "Less And Where Attention", 3, 0);
    check(INPUTS "in m f32 3,5\nout keys\n" REST, "Less Attention", 3, 0);
}
END_TEST

START_TEST(fewer_columns_stay)
{
    check(INPUTS "const one f32 2,1,3,1 1\n"
                 "m = Expand one all\nout keys\n" REST,
          "Less Expand Attention", 3, 0);
}
END_TEST

UNIT_SUITE(test_pass_mask_rows, NULL, NULL, padding_that_is_expanded, all_that_share_it, constants,
           rows_that_differ_stay, fewer_columns_stay)
