/* SPDX-License-Identifier: Apache-2.0 */
/* What reports say of a node's arithmetic. */
#include "graph/ir/flops.h"

#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>

static void check_flops(const char *text, const char *op, double expected)
{
    ir_module *module = ir_text(text);
    ck_assert_double_eq(op_flops(ir_text_node(module, op, 0)), expected);
    ir_module_release(module);
}

/* 2 * batch * heads * queries * keys * (size + size of a value). */
START_TEST(attention)
{
    check_flops("in q f32 2,4,5,8\nin k f32 2,4,7,8\nin v f32 2,4,7,6\ny = Attention q k v\nout y\n",
                "Attention", 2.0 * 2 * 4 * 5 * 7 * (8 + 6));
    /* groups of heads, side by side; every key of a causal one counts */
    check_flops("in q f32 2,5,32\nin k f32 2,7,16\nin v f32 2,7,12\n"
                "y = Attention q k v q_num_heads=4 kv_num_heads=2 is_causal=1\nout y\n",
                "Attention", 2.0 * 2 * 4 * 5 * 7 * (8 + 6));
}
END_TEST

START_TEST(attention_with_a_past)
{
    check_flops("in q f32 2,4,1,8\nin k f32 2,4,1,8\nin v f32 2,4,1,8\nin pk f32 2,4,9,8\nin pv f32 2,4,9,8\n"
                "y,nk,nv = Attention q k v _ pk pv\nout y\nout nk\nout nv\n",
                "Attention", 2.0 * 2 * 4 * 1 * 10 * (8 + 8));
}
END_TEST

/* A symbol is taken as 1. */
START_TEST(attention_of_any_batch)
{
    check_flops("in q f32 n,4,5,8\nin k f32 n,4,7,8\nin v f32 n,4,7,8\ny = Attention q k v\nout y\n",
                "Attention", 2.0 * 4 * 5 * 7 * (8 + 8));
}
END_TEST

/* Queries, keys and values in one tensor, as passes leave it. */
START_TEST(attention_of_one_tensor)
{
    check_flops("in x f32 2,5,64\ny = graphrt::Attention x q_num_heads=4 kv_num_heads=2\nout y\n",
                "Attention", 2.0 * 2 * 4 * 5 * 5 * (8 + 8));
    check_flops("in x f32 2,1,64\nin pk f32 2,2,9,8\nin pv f32 2,2,9,8\n"
                "y = graphrt::Attention x _ _ _ pk pv q_num_heads=4 kv_num_heads=2\nout y\n",
                "Attention", 2.0 * 2 * 4 * 1 * 10 * (8 + 8));
}
END_TEST

START_TEST(attention_of_eight_bits)
{
    check_flops("in q f32 2,4,5,8\nin k f32 2,4,7,8\nin v f32 2,4,7,6\nconst s f32 - 0.5\nconst z u8 - 3\n"
                "y = graphrt::QAttention q k v _ _ _ _ s z\nout y\n",
                "QAttention", 2.0 * 2 * 4 * 5 * 7 * (8 + 6));
}
END_TEST

START_TEST(attention_that_is_rounded)
{
    static const char levels[] = "const s f32 - 0.5\nconst z u8 - 3\n";
    char text[512];
    snprintf(text, sizeof text,
             "in q u8 2,5,4,8\nin k u8 2,7,4,8\n%sy = graphrt::QRoundedAttention q s z k s z s z _ _ _ _ _ s "
             "z _ s z "
             "k s z s z q_tokens=1 k_tokens=1 v_tokens=1\nout y\n",
             levels);
    check_flops(text, "QRoundedAttention", 2.0 * 2 * 4 * 5 * 7 * (8 + 8));
    snprintf(
        text, sizeof text,
        "in x u8 2,5,3,4,8\n%sy = graphrt::QRoundedAttention x s z x s z s z _ _ _ _ _ s z _ s z x s z s z "
        "k_part=1 v_part=2 y_tokens=1\nout y\n",
        levels);
    check_flops(text, "QRoundedAttention", 2.0 * 2 * 4 * 5 * 5 * (8 + 8));
}
END_TEST

/* Weights are another input of these. */
START_TEST(products)
{
    check_flops("in x f32 2,3,4\nconst w f32 4,5\ny = MatMul x w\nout y\n", "MatMul", 2.0 * 2 * 3 * 4 * 5);
    check_flops("in x f32 2,3\ny = Relu x\nout y\n", "Relu", 0);
}
END_TEST

UNIT_SUITE(test_flops, NULL, NULL, attention, attention_with_a_past, attention_of_any_batch,
           attention_of_one_tensor, attention_of_eight_bits, attention_that_is_rounded, products)
