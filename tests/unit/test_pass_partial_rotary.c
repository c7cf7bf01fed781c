/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations of a part of each head. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>

/* Three heads of eight elements from `first` on, of which the leading four are rotated. */
static void write_model(char *text, size_t size, int first, const char *rest)
{
    snprintf(text, size,
             "in x f32 2,5,3,12\nconst c f32 2,5,2\nconst s f32 2,5,2\nconst a0 i64 1 %d\nconst a1 i64 1 %d\n"
             "const a2 i64 1 %d\nconst last i64 1 3\nconst flat i64 3 0 0 12\nconst heads i64 4 0 0 3 4\n"
             "p = Slice x a0 a1 last\nf = Reshape p flat\nr = RotaryEmbedding f c s num_heads=3\n"
             "u = Reshape r heads\nt = Transpose u perm=0,2,1,3\nq = Slice x %s last\n"
             "v = Transpose q perm=0,2,1,3\ny = Concat t v axis=3\nout y\n",
             first, first + 4, first + 8, rest);
}

START_TEST(a_leading_part)
{
    char text[600];
    write_model(text, sizeof text, 4 * _i, "a1 a2");
    ir_text_check(
        text, "partial_rotary",
        "Slice Reshape RotaryEmbedding Reshape Transpose Slice Transpose Slice Reshape RotaryEmbedding "
        "Reshape Transpose");
}
END_TEST

/* What is joined is not the rest. */
START_TEST(another_part_stays)
{
    char text[600];
    write_model(text, sizeof text, 0, "a0 a1");
    ir_text_check(text, "partial_rotary",
                  "Slice Reshape RotaryEmbedding Reshape Transpose Slice Transpose Concat");
}
END_TEST

/* One token: heads are in front already. */
START_TEST(heads_in_front)
{
    const char text[] =
        "in x f32 2,3,1,12\nconst c f32 2,1,2\nconst s f32 2,1,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 12\nconst last i64 1 3\np = Slice x a0 a1 last\nr = RotaryEmbedding p c s\n"
        "q = Slice x a1 a2 last\ny = Concat r q axis=3\nout y\n";
    ir_text_check(text, "partial_rotary", "Slice RotaryEmbedding Slice RotaryEmbedding");
}
END_TEST

/* Nothing is exchanged, or only later: heads lie behind positions as they are rotated. */
START_TEST(heads_behind)
{
    ir_text_check(
        "in x f32 2,5,3,8\nconst c f32 2,5,2\nconst s f32 2,5,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 8\nconst last i64 1 3\nconst flat i64 3 0 0 12\nconst heads i64 4 0 0 3 4\n"
        "p = Slice x a0 a1 last\nf = Reshape p flat\nr = RotaryEmbedding f c s num_heads=3 interleaved=1\n"
        "u = Reshape r heads\nq = Slice x a1 a2 last\ny = Concat u q axis=3\nout y\n",
        "partial_rotary", "Slice Reshape RotaryEmbedding Reshape Slice Reshape RotaryEmbedding Reshape");
}
END_TEST

/* Tables are repeated for a batch of unknown size: its dims are read from what is rotated. */
START_TEST(dims_are_read)
{
    ir_text_check(
        "in x f32 b,s,3,8\nin c f32 1,s,2\nin d f32 1,s,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 8\nconst last i64 1 3\nconst flat i64 3 0 0 12\nconst heads i64 4 0 0 3 4\n"
        "const ones i64 2 1 1\np = Slice x a0 a1 last\nf = Reshape p flat\nz = Shape f start=0 end=1\n"
        "e = Concat z ones axis=0\nce = Expand c e\nde = Expand d e\n"
        "r = RotaryEmbedding f ce de num_heads=3\nu = Reshape r heads\nq = Slice x a1 a2 last\n"
        "y = Concat u q axis=3\nout y\n",
        "partial_rotary",
        "Slice Reshape Shape Concat Expand Expand RotaryEmbedding Reshape Slice Reshape RotaryEmbedding "
        "Reshape");
    /* the same, of the part before its heads are joined */
    ir_text_check(
        "in x f32 b,s,3,8\nin c f32 1,s,2\nin d f32 1,s,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 8\nconst last i64 1 3\nconst flat i64 3 0 0 12\nconst heads i64 4 0 0 3 4\n"
        "const ones i64 2 1 1\np = Slice x a0 a1 last\nz = Shape p start=0 end=1\nf = Reshape p flat\n"
        "e = Concat z ones axis=0\nce = Expand c e\nde = Expand d e\n"
        "r = RotaryEmbedding f ce de num_heads=3\nu = Reshape r heads\nq = Slice x a1 a2 last\n"
        "y = Concat u q axis=3\nout y\n",
        "partial_rotary",
        "Slice Shape Reshape Concat Expand Expand RotaryEmbedding Reshape Slice Reshape RotaryEmbedding "
        "Reshape");
}
END_TEST

/* What is rotated is exchanged in front of that and behind it: its source is not as what is rotated, although
 * it has the same dims. */
START_TEST(exchanged_twice)
{
    ir_text_check(
        "in x f32 2,3,3,8\nconst c f32 2,3,2\nconst s f32 2,3,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 8\nconst last i64 1 3\nconst flat i64 3 0 0 12\nconst heads i64 4 0 0 3 4\n"
        "e = Slice x a0 a1 last\np = Transpose e perm=0,2,1,3\nf = Reshape p flat\n"
        "r = RotaryEmbedding f c s num_heads=3\nu = Reshape r heads\nt = Transpose u perm=0,2,1,3\n"
        "q = Slice x a1 a2 last\ny = Concat t q axis=3\nout y\n",
        "partial_rotary", "Slice Transpose Reshape RotaryEmbedding Reshape Transpose Slice Concat");
    /* heads in front as they are rotated, exchanged behind that */
    ir_text_check(
        "in x f32 2,3,3,8\nconst c f32 2,3,2\nconst s f32 2,3,2\nconst a0 i64 1 0\nconst a1 i64 1 4\n"
        "const a2 i64 1 8\nconst last i64 1 3\ne = Slice x a0 a1 last\n"
        "r = RotaryEmbedding e c s\nt = Transpose r perm=0,2,1,3\n"
        "q = Slice x a1 a2 last\nv = Transpose q perm=0,2,1,3\ny = Concat t v axis=3\nout y\n",
        "partial_rotary", "Slice RotaryEmbedding Transpose Slice Transpose Concat");
}
END_TEST

Suite *suite_test_pass_partial_rotary(void);
Suite *suite_test_pass_partial_rotary(void)
{
    Suite *suite = suite_create("pass_partial_rotary");
    TCase *tests = tcase_create("pass_partial_rotary");
    tcase_add_loop_test(tests, a_leading_part, 0, 2);
    tcase_add_test(tests, another_part_stays);
    tcase_add_test(tests, heads_in_front);
    tcase_add_test(tests, heads_behind);
    tcase_add_test(tests, exchanged_twice);
    tcase_add_test(tests, dims_are_read);
    suite_add_tcase(suite, tests);
    return suite;
}
