/* SPDX-License-Identifier: Apache-2.0 */
/* Constant matrices that mix tokens multiply from the left. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

#define TOKENS "in x f32 b,5,7\nconst w f32 5,6\nconst c f32 6\n"

/* As gMLP has it: nothing is left to move. */
START_TEST(one_product)
{
    ir_text_check(TOKENS "r = Relu x\nt = Transpose r perm=0,2,1\nm = MatMul t w\ns = Add m c\n"
                         "y = Transpose s perm=0,2,1\nout y\n",
                  "left_products", "Relu Transpose MatMul Add MatMul Add");
    ir_text_check(TOKENS
                  "r = Tanh x\nt = Transpose r perm=0,2,1\nm = MatMul t w\ny = Transpose m perm=0,2,1\n"
                  "out y\n",
                  "", "Tanh graphrt::MatMul");
}
END_TEST

/* As MLP-Mixer has it: the first product's columns are tokens, the second one reads them transposed. */
START_TEST(two_products)
{
    ir_text_check(TOKENS "const v f32 6,5\nconst d f32 5\nr = Softmax x\nt = Transpose r perm=0,2,1\n"
                         "m = MatMul t w\ns = Add m c\ng = Gelu s\nn = MatMul g v\no = Add d n\n"
                         "u = Transpose o perm=0,2,1\ny = Add x u\nout y\n",
                  "", "Softmax graphrt::MatMul graphrt::MatMul graphrt::Pointwise");
}
END_TEST

static void left_products_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "left_products"), 0);
    ir_module_release(module);
}

START_TEST(what_stays)
{
    /* rows that were rows before, as in front of an image */
    left_products_stay(TOKENS
                       "a = Relu x\nconst v f32 7,6\nm = MatMul a v\ny = Transpose m perm=0,2,1\nout y\n");
    /* pixels of an image, and what becomes one */
    left_products_stay("in i f32 2,5,3,7\nconst w f32 5,6\nconst d i64 3 2 5 21\nx = Reshape i d\n"
                       "t = Transpose x perm=0,2,1\nm = MatMul t w\ny = Transpose m perm=0,2,1\nout y\n");
    left_products_stay("in x f32 2,5,21\nconst w f32 5,6\nconst d i64 4 2 6 3 7\nt = Transpose x perm=0,2,1\n"
                       "m = MatMul t w\nu = Transpose m perm=0,2,1\ny = Reshape u d\nout y\n");
    left_products_stay("in x f32 2,3,5,7\nconst w f32 5,6\nt = Transpose x perm=0,1,3,2\nm = MatMul t w\n"
                       "y = Transpose m perm=0,1,3,2\nout y\n");
    /* a product or matrix that is read elsewhere */
    left_products_stay(TOKENS "r = Relu x\nt = Transpose r perm=0,2,1\nm = MatMul t w\n"
                              "y = Transpose m perm=0,2,1\nout y\nout m\n");
    left_products_stay(TOKENS "r = Relu x\nt = Transpose r perm=0,2,1\nm = MatMul t w\n"
                              "y = Transpose m perm=0,2,1\nz = Exp w\nout y\nout z\n");
    /* computed matrices */
    left_products_stay(
        "in x f32 b,5,7\nin w f32 5,6\nr = Relu x\nt = Transpose r perm=0,2,1\nm = MatMul t w\n"
        "y = Transpose m perm=0,2,1\nout y\n");
}
END_TEST

UNIT_SUITE(test_pass_left_products, NULL, NULL, one_product, two_products, what_stays)
