/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise groups read parts of other values where they lie. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* What is copied for the group is gone once dead nodes are. */
static void check_ops(const char *text, const char *expected)
{
    ir_module *module = ir_text(text);
    ir_text_pass(module, "pointwise");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
}

static void check_parts(const char *text, const char *expected)
{
    ir_text_check(text, "pointwise", NULL);
    check_ops(text, expected);
}

static int64_t number_of_part(const ir_module *module, size_t at)
{
    size_t n;
    const int64_t *parts = grt_attr_ints(&ir_text_node(module, "PointwiseParts", 0)->desc, "parts", &n);
    ck_assert_uint_lt(at, n);
    return parts[at];
}

START_TEST(halves_of_rows)
{
    const char *text = "in x f32 2,3,32\n"
                       "a,b = Split x axis=-1 num_outputs=2\n"
                       "s = Swish a\n"
                       "y = Mul s b\n"
                       "out y\n";
    check_parts(text, "graphrt::PointwiseParts");
    ir_module *module = ir_text(text);
    ir_text_pass(module, "pointwise");
    const ir_node *node = ir_text_node(module, "PointwiseParts", 0);
    ck_assert_int_eq(node->n_in, 2);
    ck_assert_ptr_eq(ir_in(node, 0), ir_in(node, 1)); /* both are parts of x */
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(number_of_part(module, 3 * i), 1);
        ck_assert_int_eq(number_of_part(module, 3 * i + 2), 16);
    }
    ck_assert_int_eq(number_of_part(module, 1) + number_of_part(module, 4), 16);
    ir_module_release(module);
}
END_TEST

START_TEST(symbolic_rows)
{
    check_parts("in x f32 n,s,32\n"
                "a,b = Split x axis=2 num_outputs=2\n"
                "s = Gelu a\n"
                "y = Mul s b\n"
                "out y\n",
                "graphrt::PointwiseParts");
}
END_TEST

START_TEST(channels_that_come_first)
{
    check_parts("in x f32 2,4,3,8\n"
                "in w f32 2,1,1\n"
                "a,b = Split x axis=1 num_outputs=2\n"
                "t = Tanh a\n"
                "s = Sigmoid b\n"
                "m = Mul t s\n"
                "y = Mul m w\n"
                "out y\n",
                "graphrt::PointwiseParts");
}
END_TEST

START_TEST(slices_behind_a_reshape)
{
    check_parts("in x f32 2,3,64\n"
                "in z f32 2,3,4,8\n"
                "const h i64 4 2 3 4 16\n"
                "const from i64 1 8\n"
                "const to i64 1 16\n"
                "const ax i64 1 3\n"
                "r = Reshape x h\n"
                "a = Slice r from to ax\n"
                "n = Neg a\n"
                "y = Add n z\n"
                "out y\n",
                "Reshape graphrt::PointwiseParts");
}
END_TEST

START_TEST(single_nodes)
{
    check_parts("in x f32 2,3,32\n"
                "a,b = Split x axis=-1 num_outputs=2\n"
                "y = Mul a b\n"
                "out y\n",
                "graphrt::PointwiseParts");
}
END_TEST

START_TEST(several_groups)
{
    check_parts("in x f32 2,3,32\n"
                "in w f32 16,16\n"
                "a,b = Split x axis=-1 num_outputs=2\n"
                "s = Swish a\n"
                "m = Mul s b\n"
                "p = MatMul m w\n"
                "y = Add p b\n"
                "out y\n",
                "graphrt::PointwiseParts MatMul graphrt::PointwiseParts");
}
END_TEST

/* Of each row along a batch, as shifts and scales of an image's layers have it. */
START_TEST(parts_that_are_repeated)
{
    check_parts("in x f32 2,1,24\n"
                "in z f32 2,5,8\n"
                "a,b,c = Split x axis=-1 num_outputs=3\n"
                "m = Mul z a\n"
                "n = Add m b\n"
                "y = Mul n c\n"
                "out y\n",
                "graphrt::PointwiseParts");
}
END_TEST

START_TEST(parts_of_a_concat)
{
    const char *text = "in x f32 n,3,16\n"
                       "in z f32 n,3,8\n"
                       "const w f32 32\n"
                       "c = Concat x z z axis=-1\n"
                       "m = Mul w c\n"
                       "y = Relu m\n"
                       "out y\n";
    check_parts(text, "graphrt::PointwiseConcat");
    ir_module *module = ir_text(text);
    ir_text_pass(module, "pointwise");
    const ir_node *node = ir_text_node(module, "PointwiseConcat", 0);
    ck_assert_int_eq(node->n_in, 4);
    ck_assert_int_eq(grt_attr_int(&node->desc, "joined", 0), 3);
    ck_assert_ptr_eq(ir_in(node, 1), ir_in(node, 2));
    ir_module_release(module);
}
END_TEST

START_TEST(a_concat_behind_others)
{
    check_parts("in x f32 2,16\n"
                "in z f32 2,24\n"
                "in u f32 2,40\n"
                "c = Concat x z axis=1\n"
                "y = Sub u c\n"
                "out y\n",
                "graphrt::PointwiseConcat");
}
END_TEST

static void parts_stay(const char *text, const char *expected)
{
    check_parts(text, expected);
}

START_TEST(what_others_read_stays)
{
    parts_stay("in x f32 2,3,32\n"
               "in w f32 16,16\n"
               "a,b = Split x axis=-1 num_outputs=2\n"
               "s = Swish a\n"
               "n = Neg s\n"
               "p = MatMul a w\n"
               "out n\n"
               "out p\n",
               "Split graphrt::Pointwise MatMul");
}
END_TEST

START_TEST(outputs_stay)
{
    parts_stay("in x f32 2,3,32\n"
               "a,b = Split x axis=-1 num_outputs=2\n"
               "s = Swish a\n"
               "n = Neg s\n"
               "out a\n"
               "out n\n",
               "Split graphrt::Pointwise");
}
END_TEST

/* A Cast alone, as of what is computed in 16 bits and given out in 32. */
START_TEST(casts_of_parts)
{
    check_parts("in x f16 2,3,32\n"
                "a,b = Split x axis=-1 num_outputs=2\n"
                "y = Cast a to=1\n"
                "z = Cast b to=16\n"
                "out y\n"
                "out z\n",
                "graphrt::PointwiseParts graphrt::PointwiseParts");
    check_parts("in x f32 n,3,16\n"
                "in z f32 n,3,8\n"
                "c = Concat x z axis=-1\n"
                "y = Cast c to=10\n"
                "out y\n",
                "graphrt::PointwiseConcat");
    check_parts("in x f16 2,3,32\n"
                "y = Cast x to=1\n"
                "out y\n",
                "Cast");
}
END_TEST

/* Rows of a vocabulary, whose zeros are cut off. */
START_TEST(long_parts_that_begin_anywhere)
{
    check_parts("in x f16 n,3,264\n"
                "const from i64 1 3\n"
                "const to i64 1 260\n"
                "const ax i64 1 2\n"
                "a = Slice x from to ax\n"
                "y = Cast a to=1\n"
                "out y\n",
                "graphrt::PointwiseParts");
    check_parts("in x f16 2,3,64\n"
                "const from i64 1 3\n"
                "const to i64 1 60\n"
                "const ax i64 1 2\n"
                "a = Slice x from to ax\n"
                "y = Cast a to=1\n"
                "out y\n",
                "Slice Cast");
}
END_TEST

/* No whole vectors; steps; other ops than moves in order; what is a view already. */
START_TEST(other_parts_stay)
{
    parts_stay("in x f32 2,3,24\n"
               "a,b = Split x axis=-1 num_outputs=2\n"
               "s = Swish a\n"
               "y = Mul s b\n"
               "out y\n",
               "Split graphrt::Pointwise");
    parts_stay("in x f32 2,3,32\n"
               "const from i64 1 0\n"
               "const to i64 1 32\n"
               "const ax i64 1 2\n"
               "const step i64 1 2\n"
               "a = Slice x from to ax step\n"
               "s = Swish a\n"
               "y = Neg s\n"
               "out y\n",
               "Slice graphrt::Pointwise");
    parts_stay("in x f32 2,16,32\n"
               "a,b = Split x axis=-1 num_outputs=2\n"
               "t = Transpose a perm=0,2,1\n"
               "s = Swish t\n"
               "y = Neg s\n"
               "out y\n",
               "Split Transpose graphrt::Pointwise");
    parts_stay("in x f32 1,2,32\n"
               "a,b = Split x axis=1 num_outputs=2\n"
               "s = Swish a\n"
               "y = Mul s b\n"
               "out y\n",
               "Split graphrt::Pointwise");
}
END_TEST

/* Along another axis, no whole vectors, read by others, an output, repeated along rows. */
START_TEST(other_concats_stay)
{
    parts_stay("in x f32 2,16\n"
               "in z f32 2,16\n"
               "c = Concat x z axis=0\n"
               "n = Neg c\n"
               "y = Exp n\n"
               "out y\n",
               "Concat graphrt::Pointwise");
    parts_stay("in x f32 2,12\n"
               "in z f32 2,4\n"
               "c = Concat x z axis=1\n"
               "n = Neg c\n"
               "y = Exp n\n"
               "out y\n",
               "Concat graphrt::Pointwise");
    parts_stay("in x f32 2,16\n"
               "in z f32 2,16\n"
               "in w f32 32,4\n"
               "c = Concat x z axis=1\n"
               "n = Neg c\n"
               "y = Exp n\n"
               "p = MatMul c w\n"
               "out y\n"
               "out p\n",
               "Concat graphrt::Pointwise MatMul");
    parts_stay("in x f32 2,16\n"
               "in z f32 2,16\n"
               "c = Concat x z axis=1\n"
               "n = Neg c\n"
               "y = Exp n\n"
               "out c\n"
               "out y\n",
               "Concat graphrt::Pointwise");
    parts_stay("in x f32 1,16\n"
               "in z f32 1,16\n"
               "in u f32 3,32\n"
               "c = Concat x z axis=1\n"
               "n = Add c u\n"
               "y = Exp n\n"
               "out y\n",
               "Concat graphrt::Pointwise");
}
END_TEST

/* Memory is read by 32 bytes. A group rounds less than its nodes, so that results are not compared. */
START_TEST(few_bytes_at_a_time_stay)
{
    check_ops("in x f16 2,3,16\n"
              "a,b = Split x axis=-1 num_outputs=2\n"
              "s = Swish a\n"
              "y = Mul s b\n"
              "out y\n",
              "Split graphrt::Pointwise");
    check_ops("in x f16 2,3,32\n"
              "a,b = Split x axis=-1 num_outputs=2\n"
              "s = Swish a\n"
              "y = Mul s b\n"
              "out y\n",
              "graphrt::PointwiseParts");
}
END_TEST

/* Readers are looked at once for each of them, so of very many a copy is what they read. */
START_TEST(what_very_many_read_stays)
{
    enum { FEW = 60, MANY = 80, LINE = 48 };
    static const int readers[] = {FEW, MANY};
    for (size_t i = 0; i < 2; i++) {
        static char text[2 * LINE * (MANY + 1)];
        size_t n = (size_t)sprintf(text, "in x f32 2,3,32\na,b = Split x axis=-1 num_outputs=2\n");
        for (int k = 0; k < readers[i]; k++)
            n += (size_t)sprintf(text + n, "r%d = Tanh a\nout r%d\n", k, k);
        ir_module *module = ir_text(text);
        ir_text_pass(module, "pointwise");
        ck_assert_int_eq(strstr(ir_text_ops(module), "PointwiseParts") != NULL, readers[i] == FEW);
        ir_module_release(module);
    }
}
END_TEST

START_TEST(integers_are_copied)
{
    parts_stay("in x i64 2,32\n"
               "a,b = Split x axis=-1 num_outputs=2\n"
               "y = Mul a b\n"
               "out y\n",
               "Split Mul");
}
END_TEST

UNIT_SUITE(test_pass_pointwise_parts, NULL, NULL, halves_of_rows, symbolic_rows, channels_that_come_first,
           slices_behind_a_reshape, single_nodes, several_groups, parts_that_are_repeated, parts_of_a_concat,
           casts_of_parts, long_parts_that_begin_anywhere, a_concat_behind_others, other_concats_stay,
           what_others_read_stays, outputs_stay, other_parts_stay, few_bytes_at_a_time_stay,
           what_very_many_read_stays, integers_are_copied)
