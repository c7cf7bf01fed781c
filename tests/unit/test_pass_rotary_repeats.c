/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that are repeated and then rotated are rotated first. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

START_TEST(heads_behind_rows)
{
    ir_text_check("in x f32 2,3,2,1,4\nin c f32 2,3,2\nin s f32 2,3,2\nconst wide i64 5 2 3 2 3 4\n"
                  "const flat i64 3 2 3 24\n"
                  "e = Expand x wide\nf = Reshape e flat\ny = RotaryEmbedding f c s num_heads=6\nout y\n",
                  "rotary", "Expand Reshape Reshape RotaryEmbedding Reshape Expand Reshape");
}
END_TEST

START_TEST(heads_in_front)
{
    ir_text_check("in x f32 b,2,1,n,4\nin c f32 b,n,2\nin s f32 b,n,2\nconst some i64 5 1 1 3 1 1\n"
                  "const four i64 4 0 6 -1 4\n"
                  "e = Expand x some\nf = Reshape e four\ny = RotaryEmbedding f c s interleaved=1\nout y\n",
                  "rotary", NULL);
    ir_text_check("in x f32 2,2,1,3,4\nin c f32 2,3,2\nin s f32 2,3,2\nconst some i64 5 1 1 3 1 1\n"
                  "const four i64 4 2 6 3 4\n"
                  "e = Expand x some\nf = Reshape e four\ny = RotaryEmbedding f c s interleaved=1\nout y\n",
                  "rotary", "Expand Reshape Reshape RotaryEmbedding Reshape Expand Reshape");
}
END_TEST

static void repeats_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ir_text_pass(module, "rotary");
    ck_assert_str_eq(ir_text_ops(module), "Expand Reshape RotaryEmbedding");
    ir_module_release(module);
    ir_text_check(text, "rotary", NULL);
}

/* Groups of heads that are repeated as a whole, parts of heads, rows. */
START_TEST(other_repeats_stay)
{
    repeats_stay("in x f32 2,3,1,2,4\nin c f32 2,3,2\nin s f32 2,3,2\nconst wide i64 5 2 3 3 2 4\n"
                 "const flat i64 3 2 3 24\n"
                 "e = Expand x wide\nf = Reshape e flat\ny = RotaryEmbedding f c s num_heads=6\nout y\n");
    repeats_stay("in x f32 2,3,4,1,2\nin c f32 2,3,2\nin s f32 2,3,2\nconst wide i64 5 2 3 4 2 2\n"
                 "const flat i64 3 2 3 16\n"
                 "e = Expand x wide\nf = Reshape e flat\ny = RotaryEmbedding f c s num_heads=4\nout y\n");
    repeats_stay("in x f32 2,1,2,4\nin c f32 2,3,2\nin s f32 2,3,2\nconst wide i64 4 2 3 2 4\n"
                 "const flat i64 3 2 3 8\n"
                 "e = Expand x wide\nf = Reshape e flat\ny = RotaryEmbedding f c s num_heads=2\nout y\n");
}
END_TEST

UNIT_SUITE(test_pass_rotary_repeats, NULL, NULL, heads_behind_rows, heads_in_front, other_repeats_stay)
