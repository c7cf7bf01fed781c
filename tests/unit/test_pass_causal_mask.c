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

START_TEST(computed_masks_stay)
{
    check(INPUTS(3) "in m f32 3,3\n" REST, 4, 0);
}
END_TEST

UNIT_SUITE(test_pass_causal_mask, NULL, NULL, later_keys_are_hidden, nothing_is_hidden, other_masks_stay,
           computed_masks_stay)
