/* SPDX-License-Identifier: Apache-2.0 */
/* A Concat moves the parts that a Transpose made for it. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

/* The same result by these ops, without what is dead. */
static void moved_parts_check(const char *text, const char *ops)
{
    ir_module *plain = ir_text(text), *rewritten = ir_text(text);
    ir_text_pass(rewritten, "moved_parts");
    ir_text_pass(rewritten, "dce");
    ck_assert_str_eq(ir_text_ops(rewritten), ops);
    ir_text_compare(plain, rewritten);
    ir_module_release(plain);
    ir_module_release(rewritten);
}

static void moved_parts_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "moved_parts"), 0);
    ir_module_release(module);
}

#define WOVEN                            \
    "in x f32 2,3,4,20\n"                \
    "in skip f32 2,6,8,3\n"              \
    "const phases i64 6 2 3 4 2 2 5\n"   \
    "const pixels i64 4 2 6 8 5\n"       \
    "p = Reshape x phases\n"             \
    "t = Transpose p perm=0,1,3,2,4,5\n" \
    "up = Reshape t pixels\n"

/* As a transposed convolution whose windows do not overlap leaves it beside a skip connection. */
START_TEST(woven_pixels)
{
    moved_parts_check(WOVEN "y = Concat up skip axis=-1\n"
                            "out y\n",
                      "Reshape Reshape graphrt::Concat Reshape");
    moved_parts_check(WOVEN "y = Concat skip up axis=3\n"
                            "out y\n",
                      "Reshape Reshape graphrt::Concat Reshape");
    ir_module *m = ir_text(WOVEN "y = Concat up skip axis=-1\n"
                                 "out y\n");
    ck_assert_int_eq(ir_text_pass(m, "moved_parts"), 1);
    const ir_node *made = ir_text_node(m, "Concat", 0);
    size_t n;
    const int64_t *perms = grt_attr_ints(&made->desc, "perms", &n);
    const int64_t want[] = {0, 2, 1, 3, 4, 0, 1, 2, 3, 4};
    ck_assert_uint_eq(n, sizeof want / sizeof *want);
    ck_assert_mem_eq(perms, want, sizeof want);
    ck_assert_int_eq(grt_attr_int(&made->desc, "axis", 0), 4);
    ir_module_release(m);
}
END_TEST

/* Moved by fewer axes, the other part stays. */
START_TEST(the_part_with_most_axes)
{
    moved_parts_check("in x f32 2,3,4,20\n"
                      "in image f32 2,3,6,8\n"
                      "const phases i64 6 2 3 4 2 2 5\n"
                      "const pixels i64 4 2 6 8 5\n"
                      "skip = Transpose image perm=0,2,3,1\n"
                      "p = Reshape x phases\n"
                      "t = Transpose p perm=0,1,3,2,4,5\n"
                      "up = Reshape t pixels\n"
                      "y = Concat skip up axis=-1\n"
                      "out y\n",
                      "Transpose Reshape Reshape graphrt::Concat Reshape");
}
END_TEST

/* New entries behind those of a cache, also where one run has one of them, and along every axis. */
START_TEST(keys_behind_a_cache)
{
    moved_parts_check("in past f32 1,3,7,4\n"
                      "in x f32 1,2,3,4\n"
                      "k = Transpose x perm=0,2,1,3\n"
                      "y = Concat past k axis=2\n"
                      "out y\n",
                      "Reshape Reshape graphrt::Concat Reshape");
    moved_parts_check("in past f32 2,3,4,7\n"
                      "in x f32 2,1,3,4\n"
                      "k = Transpose x perm=0,2,3,1\n"
                      "y = Concat past k axis=-1\n"
                      "out y\n",
                      "Reshape Reshape graphrt::Concat Reshape");
    moved_parts_check("in a f32 5,4\n"
                      "in b f32 6,4\n"
                      "s = Transpose a perm=1,0\n"
                      "t = Transpose b perm=1,0\n"
                      "y = Concat s t axis=1\n"
                      "z = Concat t s axis=1\n"
                      "u = Transpose a perm=1,0\n"
                      "v = Transpose b perm=1,0\n"
                      "w = Concat v u axis=1\n"
                      "out y\n"
                      "out z\n"
                      "out w\n",
                      "Transpose Transpose Concat Concat graphrt::Concat");
}
END_TEST

/* Dims that only a run knows. */
START_TEST(open_sizes)
{
    ir_module *m = ir_text("in past f32 b,3,p,4\n"
                           "in x f32 b,s,3,4\n"
                           "k = Transpose x perm=0,2,1,3\n"
                           "y = Concat past k axis=2\n"
                           "out y\n");
    ck_assert_int_eq(ir_text_pass(m, "moved_parts"), 1);
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), "graphrt::Concat");
    ck_assert_str_eq(ir_text_node(m, "Concat", 0)->out[0]->name, "y");
    ir_module_release(m);
}
END_TEST

START_TEST(read_by_others_too)
{
    moved_parts_stay(WOVEN "y = Concat up skip axis=-1\n"
                           "z = Relu up\n"
                           "out y\n"
                           "out z\n");
    moved_parts_stay(WOVEN "y = Concat up skip axis=-1\n"
                           "out y\n"
                           "out up\n");
    moved_parts_stay(WOVEN "y = Concat up up axis=-1\n"
                           "out y\n");
    moved_parts_stay(WOVEN "y = Concat up skip axis=-1\n"
                           "z = Relu t\n"
                           "out y\n"
                           "out z\n");
}
END_TEST

/* Each part is a kernel: a single one for all others is better. */
START_TEST(beside_several_that_are_not_moved)
{
    moved_parts_stay(WOVEN "y = Concat skip up skip axis=-1\n"
                           "out y\n");
}
END_TEST

/* What is cut out, repeated, or moved along other axes than the first part. */
START_TEST(other_moves_stay)
{
    moved_parts_stay("in x f32 4,6\n"
                     "in y f32 6,4\n"
                     "const from i64 1 1\n"
                     "const to i64 1 4\n"
                     "const axis i64 1 1\n"
                     "c = Slice x from to axis\n"
                     "t = Transpose c perm=1,0\n"
                     "const three i64 2 3 4\n"
                     "s = Slice y from to\n"
                     "z = Concat s t axis=1\n"
                     "out z\n");
    moved_parts_stay("in x f32 4,6\n"
                     "v = Transpose x perm=1,0\n"
                     "const flat i64 1 24\n"
                     "f = Reshape v flat\n"
                     "in y f32 3\n"
                     "z = Concat y f axis=0\n"
                     "out z\n");
}
END_TEST

UNIT_SUITE(test_pass_moved_parts, NULL, NULL, woven_pixels, the_part_with_most_axes, keys_behind_a_cache,
           open_sizes, read_by_others_too, beside_several_that_are_not_moved, other_moves_stay)
