/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one left factor that are joined are one. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

START_TEST(heads_one_by_one)
{
    ir_text_check("in x f32 n,5,4\nconst v f32 4,3\nconst w f32 4,2\nconst u f32 4,3\n"
                  "a = MatMul x v\nb = MatMul x w\nc = MatMul x u\ny = Concat a b c axis=-1\nout y\n",
                  "joined_products", "MatMul MatMul MatMul MatMul"); /* the others are dead */
    ir_text_check("in x f32 n,5,4\nconst v f32 4,3\nconst w f32 4,2\nconst d f32 3\nconst e f32 2\n"
                  "a = MatMul x v\nb = MatMul x w\np = Add a d\nq = Add e b\ny = Concat p q axis=2\nout y\n",
                  "joined_products", "MatMul MatMul Add Add MatMul Add");
}
END_TEST

/* Values in two parts are those of one attention. */
START_TEST(values_in_parts)
{
    const char *const text = "in q f32 2,3,6,4\nin k f32 2,3,4,6\nin v f32 2,3,6,4\nin w f32 2,3,6,4\n"
                             "s = MatMul q k\np = Softmax s axis=-1\n"
                             "a = MatMul p v\nb = MatMul p w\ny = Concat a b axis=3\nout y\n";
    ir_text_check(text, "joined_products", "MatMul Softmax MatMul MatMul Concat MatMul");
    ir_text_check(text, "", "Concat Transpose Attention");
    ir_text_check("in p f32 b,m,n\nin v f32 b,n,4\nin w f32 b,n,2\na = MatMul p v\nb = MatMul p w\n"
                  "y = Concat a b axis=2\nout y\n",
                  "joined_products", "MatMul MatMul Concat");
}
END_TEST

static void joined_products_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "joined_products"), 0);
    ir_module_release(module);
}

/* Another axis; other left factors; a result that is read elsewhere; weights that others read; a bias of one
 * alone; right factors that are larger than the results. */
START_TEST(products_that_stay)
{
    joined_products_stay("in x f32 2,5,4\nconst v f32 4,3\nconst w f32 4,3\na = MatMul x v\nb = MatMul x w\n"
                         "y = Concat a b axis=1\nout y\n");
    joined_products_stay("in x f32 2,5,4\nin z f32 2,5,4\nconst v f32 4,3\nconst w f32 4,3\na = MatMul x v\n"
                         "b = MatMul z w\ny = Concat a b axis=2\nout y\n");
    joined_products_stay("in x f32 2,5,4\nconst v f32 4,3\nconst w f32 4,3\na = MatMul x v\nb = MatMul x w\n"
                         "y = Concat a b axis=2\nout y\nout a\n");
    joined_products_stay("in x f32 2,5,4\nconst v f32 4,3\na = MatMul x v\nb = MatMul x v\n"
                         "y = Concat a b axis=2\nout y\n");
    joined_products_stay("in x f32 2,5,4\nconst v f32 4,3\nconst w f32 4,3\nconst d f32 3\na = MatMul x v\n"
                         "b = MatMul x w\np = Add a d\ny = Concat p b axis=2\nout y\n");
    joined_products_stay("in x f32 2,5,9\nin v f32 2,9,4\nin w f32 2,9,4\na = MatMul x v\nb = MatMul x w\n"
                         "y = Concat a b axis=2\nout y\n");
}
END_TEST

UNIT_SUITE(test_pass_joined_products, NULL, NULL, heads_one_by_one, values_in_parts, products_that_stay)
