/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that only hide later keys become an attribute. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define INPUTS(keys)             \
    "in q f32 1,2,3,4\n"         \
    "in k f32 1,2," #keys ",4\n" \
    "in v f32 1,2," #keys ",4\n"
#define REST "y = Attention q k v m\nout y\n"

static void check(const char *text, int n_in, int is_causal)
{
    ir_text_check(text, "causal_mask", "Attention");
    ir_module *module = ir_text(text);
    ir_text_pass(module, "causal_mask");
    const ir_node *node = ir_text_node(module, "Attention", 0);
    ck_assert_int_eq(node->n_in, n_in);
    ck_assert_int_eq(grt_attr_int(&node->desc, "is_causal", 0), is_causal);
    ir_module_release(module);
}

START_TEST(later_keys_are_hidden)
{
    check(INPUTS(3) "const m f32 1,1,3,3 0 -65504 -1e30 0 0 -1e5 0 0 0\n" REST, 3, 1);
    check(INPUTS(3) "const m f32 3,3 0 -65504 -1e30 0 0 -1e5 0 0 0\n" REST, 3, 1);
}
END_TEST

START_TEST(nothing_is_hidden)
{
    check(INPUTS(5) "const m f32 1,5 0\n" REST, 3, 0);
    check(INPUTS(5) "const m f32 1,1,3,5 0\n" REST, 3, 0);
}
END_TEST

START_TEST(other_masks_stay)
{
    check(INPUTS(3) "const m f32 3,3 0 -65504 -65504 0 0 -65504 0 0 -1\n" REST, 4, 0); /* a bias */
    check(INPUTS(3) "const m f32 3,3 0 -65504 0 0 0 -65504 0 0 0\n" REST, 4, 0);       /* a hole */
    check(INPUTS(3) "const m f32 3,3 -65504 0 0 0 0 0 0 0 0\n" REST, 4, 0);            /* an earlier key */
    check(INPUTS(5) "const m f32 3,5 0 0 0 -65504 -65504 0 0 0 0 -65504 0 0 0 0 0\n" REST, 4, 0); /* a past */
    check(INPUTS(5) "const m f32 3,3 0\n" REST, 4, 0);     /* hides the keys that it does not speak of */
    check(INPUTS(3) "const m f32 1,2,3,3 0\n" REST, 4, 0); /* of each head; not looked at */
}
END_TEST

/* The text's nodes but for dead ones, and whether its first attention is causal. */
static void check_choice(const char *text, const char *ops, int is_causal)
{
    ir_text_check(text, "causal_mask", NULL);
    ir_module *module = ir_text(text);
    ir_text_pass(module, "causal_mask");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), ops);
    ck_assert_int_eq(grt_attr_int(&ir_text_node(module, "Attention", 0)->desc, "is_causal", 0), is_causal);
    ir_module_release(module);
}

#define HEADS                   \
    "in q f32 2,2,3,4\n"        \
    "in k f32 2,2,3,4\n"        \
    "in v f32 2,2,3,4\n"        \
    "in p bool 2,1,1,3\n"       \
    "in p2 bool 1,1,3,3\n"      \
    "const zero f32 - 0\n"      \
    "const hidden f32 - -inf\n" \
    "const low f32 - -1e30\n"
#define EARLIER "const c bool 1,1,3,3 1 0 0 1 1 0 1 1 1\n"
#define LATER   "const c bool 3,3 0 1 1 0 0 1 0 0 0\n"

START_TEST(conditions_beside_it_are_left)
{
    check_choice(HEADS EARLIER "m = And c p\n" REST, "Attention", 1);
    check_choice(HEADS EARLIER "a = And c p\nm = Where a zero hidden\n" REST, "Where Attention", 1);
    check_choice(HEADS EARLIER "b = And c p2\na = And p b\nm = Where a zero hidden\n" REST,
                 "And Where Attention", 1);
    check_choice(HEADS LATER "a = Or p c\nm = Where a hidden zero\n" REST, "Where Attention", 1);
    check_choice(HEADS EARLIER "m = And c p\nx = Attention q k v m\n"
                               "y = Attention x k v m\nout y\n",
                 "Attention Attention", 1);
}
END_TEST

/* A finite number that hides all keys of a query leaves all of them equal, later ones too; other joins; other
 * constants. */
START_TEST(other_choices_stay)
{
    check_choice(HEADS EARLIER "a = And c p\nm = Where a zero low\n" REST, "And Where Attention", 0);
    check_choice(HEADS EARLIER "a = Or c p\nm = Where a zero hidden\n" REST, "Or Where Attention", 0);
    check_choice(HEADS LATER "m = And c p\n" REST, "And Attention", 0);
    check_choice(HEADS "const c bool 3,3 1 0 0 1 0 0 1 1 1\nm = And c p\n" REST, "And Attention", 0);
}
END_TEST

START_TEST(computed_masks_stay)
{
    check(INPUTS(3) "in m f32 3,3\n" REST, 4, 0);
}
END_TEST

/* Masks are read as far as the compile's budget goes: many nodes may share a large one. */
START_TEST(reading_takes_of_the_budget)
{
    static const char *const texts[] = {INPUTS(3) "const m f32 3,3 0 -65504 -1e30 0 0 -1e5 0 0 0\n" REST,
                                        HEADS EARLIER "m = And c p\n" REST};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int32_t enough = 0; enough < 2; enough++) {
            ir_module *module = ir_text(texts[i]);
            module->budget.operations = enough ? 9 : 8;
            ck_assert_int_eq(ir_text_pass(module, "causal_mask"), enough);
            ck_assert_int_eq((int)module->budget.operations, enough ? 0 : 8);
            ir_module_release(module);
        }
}
END_TEST

UNIT_SUITE(test_pass_causal_mask, NULL, NULL, later_keys_are_hidden, nothing_is_hidden, other_masks_stay,
           conditions_beside_it_are_left, other_choices_stay, computed_masks_stay,
           reading_takes_of_the_budget)
