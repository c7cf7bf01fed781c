/* SPDX-License-Identifier: Apache-2.0 */
/* Products between transposes exchange their factors. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

/* Channels that attend to channels: 4 of each of 3 heads, 9 tokens. */
#define OVER_CHANNELS(BATCH, TOKENS)      \
    "in p f32 " BATCH ",3,4,4\n"          \
    "in x f32 " BATCH "," TOKENS ",3,4\n" \
    "v = Transpose x perm=0,2,3,1\n"      \
    "y = MatMul p v\n"                    \
    "z = Transpose y perm=0,3,1,2\n"      \
    "out z\n"

START_TEST(channels_of_heads)
{
    const char *const made = "Transpose MatMul Transpose Transpose MatMul Transpose";
    ir_text_check(OVER_CHANNELS("2", "9"), "turned_products", made);
    ir_text_check(OVER_CHANNELS("b", "n"), "turned_products", made);
}
END_TEST

/* Without heads nothing is left to move. */
START_TEST(one_head)
{
    ir_text_check("in p f32 2,4,4\n"
                  "in x f32 2,9,4\n"
                  "v = Transpose x perm=0,2,1\n"
                  "y = MatMul p v\n"
                  "z = Transpose y perm=0,2,1\n"
                  "out z\n",
                  "", "graphrt::MatMul");
}
END_TEST

static void turned_products_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "turned_products"), 0);
    ir_module_release(module);
}

/* Attention over tokens; a result that is read as it is; more rows than columns. */
START_TEST(products_that_stay)
{
    turned_products_stay("in p f32 2,3,9,9\nin x f32 2,9,3,4\nv = Transpose x perm=0,2,1,3\ny = MatMul p v\n"
                         "z = Transpose y perm=0,2,1,3\nout z\n");
    turned_products_stay(OVER_CHANNELS("2", "9") "r = Relu y\nout r\n");
    turned_products_stay(OVER_CHANNELS("2", "9") "r = Relu v\nout r\n");
    turned_products_stay(OVER_CHANNELS("2", "3"));
}
END_TEST

UNIT_SUITE(test_pass_turned_products, NULL, NULL, channels_of_heads, one_head, products_that_stay)
