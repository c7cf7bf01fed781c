/* SPDX-License-Identifier: Apache-2.0 */
/* Equal nodes and equal small constants become one. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <string.h>

START_TEST(equal_nodes)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Relu x\n"
                  "b = Relu x\n"
                  "c = Add a b\n"
                  "out c\n",
                  "cse", "Relu Add");
}
END_TEST

START_TEST(equal_constants)
{
    ir_text_check("in x f32 2,3\n"
                  "const p f32 3 1 2 3\n"
                  "const q f32 3 1 2 3\n"
                  "a = Add x p\n"
                  "b = Add x q\n"
                  "c = Mul a b\n"
                  "out c\n",
                  "cse", "Add Mul");
}
END_TEST

START_TEST(attributes_differ)
{
    ir_text_check("in x f32 2,3\n"
                  "a = LeakyRelu x alpha=0.1\n"
                  "b = LeakyRelu x alpha=0.2\n"
                  "c = Add a b\n"
                  "out c\n",
                  "cse", "LeakyRelu LeakyRelu Add");
}
END_TEST

START_TEST(zero_and_minus_zero_differ)
{
    ir_text_check("in x f32 2,3\n"
                  "const p f32 - 0\n"
                  "const q f32 - -0.0\n"
                  "a = Div x p\n"
                  "b = Div x q\n"
                  "out a\n"
                  "out b\n",
                  "cse", "Div Div");
}
END_TEST

START_TEST(equal_outputs_keep_their_names)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Relu x\n"
                  "b = Relu x\n"
                  "out a\n"
                  "out b\n",
                  "cse", "Relu Relu");
}
END_TEST

START_TEST(random_nodes_differ)
{
    ir_module *m = ir_text("in x f32 4\n"
                           "a = RandomNormalLike x\n"
                           "b = RandomNormalLike x\n"
                           "c = Sub a b\n"
                           "out c\n");
    ir_text_pass(m, "cse");
    ck_assert_str_eq(ir_text_ops(m), "RandomNormalLike RandomNormalLike Sub");
    ir_module_release(m);
}
END_TEST

/* The same dims, found in two ways: equal once nobody asks how. To other dims, another node. */
START_TEST(expands_are_told_by_their_dims)
{
    ir_module *m = ir_text("in x f32 1,4\n"
                           "in y f32 n,4\n"
                           "in z f32 n,6\n"
                           "const zero i64 1 0\n"
                           "const one i64 1 1\n"
                           "const four i64 1 4\n"
                           "a = Shape y\n"
                           "b = Shape z\n"
                           "c = Slice b zero one\n"
                           "d = Concat c four axis=0\n"
                           "p = Expand x a\n"
                           "q = Expand x d\n"
                           "r = Concat four four axis=0\n"
                           "s = Expand x r\n"
                           "o1 = Softmax p\n"
                           "o2 = Transpose q perm=1,0\n"
                           "o3 = Softmax s\n"
                           "out o1\n"
                           "out o2\n"
                           "out o3\n");
    ir_text_pass(m, "");
    ck_assert_str_eq(ir_text_ops(m), "Expand Expand Softmax Transpose Softmax");
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_cse, NULL, NULL, equal_nodes, equal_constants, attributes_differ,
           zero_and_minus_zero_differ, equal_outputs_keep_their_names, expands_are_told_by_their_dims,
           random_nodes_differ)
