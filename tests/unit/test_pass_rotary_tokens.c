/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations of some tokens, joined with the others. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>

/* Two heads of four elements, five tokens; the last three are rotated. */
#define TABLES                                            \
    "const c f32 2,3,2 1 0.5 0.9 0.4 0.8 0.3 1 0.5 0.9\n" \
    "const s f32 2,3,2 0 0.5 0.1 0.6 0.2 0.7 0 0.5 0.1\n"
#define CUT    "const a0 i64 1 0\nconst a2 i64 1 2\nconst a5 i64 1 5\nconst one i64 1 1\nconst two i64 1 2\n"
#define SHAPES "const flat i64 3 0 0 8\nconst heads i64 4 0 0 2 4\n"

START_TEST(heads_in_front)
{
    ir_text_check("in x f32 2,2,5,4\n" TABLES CUT
                  "p = Slice x a0 a2 two\nq = Slice x a2 a5 two\nr = RotaryEmbedding q c s\n"
                  "y = Concat p r axis=2\nout y\n",
                  "rotary_tokens", "Slice Slice RotaryEmbedding Cast Pad Cast Pad RotaryEmbedding");
}
END_TEST

/* Cut before heads are moved, rotated with heads side by side, and joined behind the move. */
START_TEST(heads_are_moved_between)
{
    ir_text_check(
        "in x f32 2,5,2,4\n" TABLES CUT SHAPES
        "p = Slice x a0 a2 one\nq = Slice x a2 a5 one\nf = Reshape q flat\n"
        "r = RotaryEmbedding f c s num_heads=2\nu = Reshape r heads\n"
        "t = Transpose u perm=0,2,1,3\nv = Transpose p perm=0,2,1,3\ny = Concat v t axis=2\nout y\n",
        "rotary_tokens",
        "Slice Slice Reshape RotaryEmbedding Reshape Transpose Transpose Cast Pad Cast Pad Reshape "
        "RotaryEmbedding Reshape Transpose");
}
END_TEST

/* Tokens in front of what is rotated and behind it, parts of one Split. */
START_TEST(tokens_on_both_sides)
{
    ir_text_check("in x f32 2,2,6,4\nconst n i64 3 1 3 2\n" TABLES
                  "a,b,d = Split x n axis=2\nr = RotaryEmbedding b c s interleaved=1\n"
                  "y = Concat a r d axis=2\nout y\n",
                  "rotary_tokens", "Split RotaryEmbedding Cast Pad Cast Pad RotaryEmbedding");
}
END_TEST

/* Nothing has heads yet; the batch is known in the run alone. */
START_TEST(heads_side_by_side)
{
    ir_text_check("in x f32 b,5,8\nin c f32 b,3,2\nin s f32 b,3,2\n" CUT
                  "p = Slice x a0 a2 one\nq = Slice x a2 a5 one\nr = RotaryEmbedding q c s num_heads=2\n"
                  "y = Concat p r axis=1\nout y\n",
                  "rotary_tokens", "Slice Slice RotaryEmbedding Cast Pad Cast Pad RotaryEmbedding");
}
END_TEST

/* One row of angles for a batch that only the run knows: the row is extended, and repeated for the batch of
 * what is rotated now. */
START_TEST(one_row_for_a_batch)
{
    ir_text_check("in x f32 b,2,5,4\nin c f32 1,3,2\nin s f32 1,3,2\nconst ones i64 2 1 1\n" CUT
                  "p = Slice x a0 a2 two\nq = Slice x a2 a5 two\nz = Shape q start=0 end=1\n"
                  "e = Concat z ones axis=0\nce = Expand c e\nse = Expand s e\nr = RotaryEmbedding q ce se\n"
                  "y = Concat p r axis=2\nout y\n",
                  "rotary_tokens",
                  "Slice Slice Shape Concat Expand Expand RotaryEmbedding Cast Pad Cast Pad Shape Concat "
                  "Expand Shape Concat Expand RotaryEmbedding");
}
END_TEST

/* Rotated side by side, joined with heads in front of tokens, and the other way round. */
START_TEST(joined_otherwise)
{
    ir_text_check(
        "in x f32 2,5,8\n" TABLES CUT SHAPES
        "p = Slice x a0 a2 one\nq = Slice x a2 a5 one\nr = RotaryEmbedding q c s num_heads=2\n"
        "u = Reshape r heads\nt = Transpose u perm=0,2,1,3\nw = Reshape p heads\n"
        "v = Transpose w perm=0,2,1,3\ny = Concat v t axis=2\nout y\n",
        "rotary_tokens",
        "Slice Slice RotaryEmbedding Reshape Transpose Reshape Transpose Cast Pad Cast Pad RotaryEmbedding "
        "Reshape Transpose");
    ir_text_check("in x f32 2,2,5,4\n" TABLES CUT SHAPES
                  "p = Slice x a0 a2 two\nq = Slice x a2 a5 two\nr = RotaryEmbedding q c s\n"
                  "t = Transpose r perm=0,2,1,3\nu = Reshape t flat\nv = Transpose p perm=0,2,1,3\n"
                  "w = Reshape v flat\ny = Concat w u axis=1\nout y\n",
                  "rotary_tokens",
                  "Slice Slice RotaryEmbedding Transpose Reshape Transpose Reshape Cast Pad Cast Pad "
                  "RotaryEmbedding Transpose Reshape");
}
END_TEST

/* Not all of one value, or not in order. */
START_TEST(others_stay)
{
    static const char *const cases[][2] = {
        {"p = Slice x a0 a2 two\n", "r p"}, /* behind what they were in front of */
        {"p = Slice x a0 one two\n", "p r"}, {"p = Slice x a2 a5 two\n", "p r"},
        {"p = Slice z a0 a2 two\n", "p r"},  {"w = Transpose x perm=1,0,2,3\np = Slice w a0 a2 two\n", "p r"},
    };
    char text[900];
    snprintf(text, sizeof text,
             "in x f32 2,2,5,4\nin z f32 2,2,5,4\n" TABLES CUT
             "%sq = Slice x a2 a5 two\nr = RotaryEmbedding q c s\ny = Concat %s axis=2\nout y\n",
             cases[_i][0], cases[_i][1]);
    ir_text_check(text, "rotary_tokens",
                  _i == 4 ? "Transpose Slice Slice RotaryEmbedding Concat"
                          : "Slice Slice RotaryEmbedding Concat");
}
END_TEST

/* What is rotated is read elsewhere, or by positions of its own. */
START_TEST(two_readers_stay)
{
    ir_text_check("in x f32 2,2,5,4\n" TABLES CUT
                  "p = Slice x a0 a2 two\nq = Slice x a2 a5 two\nr = RotaryEmbedding q c s\n"
                  "y = Concat p r axis=2\nout y\nout r\n",
                  "rotary_tokens", "Slice Slice RotaryEmbedding Concat");
    ir_text_check("in x f32 2,2,5,4\nconst c f32 3,2\nconst s f32 3,2\nin i i64 2,3\n" CUT
                  "p = Slice x a0 a2 two\nq = Slice x a2 a5 two\nr = RotaryEmbedding q c s i\n"
                  "y = Concat p r axis=2\nout y\n",
                  "rotary_tokens", "Slice Slice RotaryEmbedding Concat");
}
END_TEST

Suite *suite_test_pass_rotary_tokens(void);
Suite *suite_test_pass_rotary_tokens(void)
{
    Suite *suite = suite_create("pass_rotary_tokens");
    TCase *tests = tcase_create("pass_rotary_tokens");
    tcase_add_test(tests, heads_in_front);
    tcase_add_test(tests, heads_are_moved_between);
    tcase_add_test(tests, tokens_on_both_sides);
    tcase_add_test(tests, heads_side_by_side);
    tcase_add_test(tests, one_row_for_a_batch);
    tcase_add_test(tests, joined_otherwise);
    tcase_add_loop_test(tests, others_stay, 0, 5);
    tcase_add_test(tests, two_readers_stay);
    suite_add_tcase(suite, tests);
    return suite;
}
