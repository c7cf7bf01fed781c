/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embeddings of queries and keys become one step. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

START_TEST(queries_and_keys)
{
    ir_module *m = ir_text("in q f16 1,n,8\n"
                           "in k f16 1,n,4\n"
                           "in ids i64 1,n\n"
                           "const cos f16 9,2\n"
                           "const sin f16 9,2\n"
                           "a = RotaryEmbedding q cos sin ids num_heads=2\n"
                           "b = RotaryEmbedding k cos sin ids num_heads=1\n"
                           "out b\n"
                           "out a\n");
    ck_assert_int_eq(ir_text_pass(m, "rotary_pairs"), 2);
    const ir_node *made = ir_text_node(m, "RotaryEmbeddings", 0);
    ck_assert_str_eq(made->desc.name, "a+b");
    ck_assert_str_eq(made->out[0]->name, "a");
    ck_assert_str_eq(made->out[1]->name, "b");
    ck_assert_int_eq(grt_attr_int(&made->desc, "q_num_heads", 0), 2);
    ck_assert_int_eq(grt_attr_int(&made->desc, "kv_num_heads", 0), 1);
    ck_assert_int_eq(made->out[1]->type.rank, 3);
    ir_module_release(m);
}
END_TEST

START_TEST(other_angles_stay)
{
    ir_text_check("in q f32 1,2,3,4\n"
                  "in k f32 1,2,3,4\n"
                  "in cos f32 1,3,2\n"
                  "in sin f32 1,3,2\n"
                  "a = RotaryEmbedding q cos sin\n"
                  "b = RotaryEmbedding k sin cos\n"
                  "c = RotaryEmbedding k cos sin interleaved=1\n"
                  "out a\n"
                  "out b\n"
                  "out c\n",
                  "rotary_pairs", "RotaryEmbedding RotaryEmbedding RotaryEmbedding");
}
END_TEST

START_TEST(one_that_waits_for_the_other_stays)
{
    ir_text_check("in q f32 1,2,3,4\n"
                  "in cos f32 1,3,2\n"
                  "in sin f32 1,3,2\n"
                  "a = RotaryEmbedding q cos sin\n"
                  "b = RotaryEmbedding a cos sin\n"
                  "out b\n",
                  "rotary_pairs", "RotaryEmbedding RotaryEmbedding");
}
END_TEST

UNIT_SUITE(test_pass_rotary_pairs, NULL, NULL, queries_and_keys, other_angles_stay,
           one_that_waits_for_the_other_stays)
