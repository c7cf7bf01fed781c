/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of scores that are mixed with each other. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

#define SCORES "in s f32 b,4,q,k\nconst u f32 4,6\nconst v f32 6,3\nconst c f32 6\nconst d f32 3\n"
#define IN_FRONT                     \
    "a = Transpose s perm=0,2,3,1\n" \
    "m = MatMul a u\n"               \
    "n = Add m c\n"                  \
    "t = Transpose n perm=0,3,1,2\n"
#define BEHIND                       \
    "e = Transpose p perm=0,2,3,1\n" \
    "f = MatMul e v\n"               \
    "g = Add d f\n"                  \
    "y = Transpose g perm=0,3,1,2\n"

/* What the whole compiler leaves of a graph. */
static void leaves(const char *text, const char *ops)
{
    ir_text_check(text, "", ops);
}

START_TEST(one_step)
{
    leaves(SCORES IN_FRONT "p = Softmax t\n" BEHIND "out y\n", "graphrt::HeadMix");
    leaves(SCORES IN_FRONT "p = Softmax t axis=3\nout p\n", "graphrt::HeadMix");
    leaves("in s f32 2,6,5,7\nconst v f32 6,3\nconst d f32 3\np = Softmax s\n" BEHIND "out y\n",
           "graphrt::HeadMix");
}
END_TEST

/* A mask between them is added to what the first mixture makes. */
START_TEST(beside_a_mask)
{
    leaves(SCORES "in z f32 q,k\n" IN_FRONT "w = Add t z\np = Softmax w\n" BEHIND "out y\n",
           "graphrt::HeadMix Add graphrt::HeadMix");
}
END_TEST

#define CONVOLUTIONS "in s f32 2,4,5,7\nconst u f32 6,4,1,1\nconst c f32 6\nconst v f32 3,6,1,1\n"

START_TEST(convolutions)
{
    leaves(CONVOLUTIONS "t = Conv s u c\np = Softmax t\ny = Conv p v\nout y\n", "graphrt::HeadMix");
    leaves(CONVOLUTIONS "t = Conv s u c\np = Softmax t\nout p\n", "graphrt::HeadMix");
}
END_TEST

START_TEST(matrices_of_an_image)
{
    leaves("in s f32 2,4,5,7\nconst u f32 6,4\nconst d1 i64 3 2 4 35\nconst d2 i64 4 2 6 5 7\n"
           "a = Reshape s d1\nm = MatMul u a\nt = Reshape m d2\np = Softmax t\nout p\n",
           "graphrt::HeadMix");
}
END_TEST

static void stays(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "mixed_heads"), 0);
    ir_module_release(module);
}

START_TEST(what_stays)
{
    stays(SCORES "a = Transpose s perm=0,3,2,1\nm = MatMul a u\nt = Transpose m perm=0,3,1,2\nout t\n");
    stays(SCORES "a = Transpose s perm=0,2,3,1\nm = MatMul a u\nt = Transpose m perm=0,3,2,1\nout t\n");
    stays(SCORES
          "a = Transpose s perm=0,2,3,1\nm = MatMul a u\nt = Transpose m perm=0,3,1,2\nout t\nout m\n");
    stays("in s f32 2,64,5,7\nconst u f32 64,64\na = Transpose s perm=0,2,3,1\nm = MatMul a u\n"
          "t = Transpose m perm=0,3,1,2\nout t\n");                      /* channels */
    stays(CONVOLUTIONS "t = Conv s u c\nout t\n");                       /* of an image */
    stays(CONVOLUTIONS "t = Conv s u c\np = Softmax t axis=1\nout p\n"); /* classes of pixels */
    stays(CONVOLUTIONS "t = Conv s u c pads=1,0,1,0\np = Softmax t\nout p\n");
    stays(CONVOLUTIONS "t = Conv s u c strides=2,1\np = Softmax t\nout p\n");
}
END_TEST

/* A bias cancels in a softmax, unless it makes NaN of it. */
START_TEST(infinite_bias)
{
    ir_module *module =
        ir_text("in s f32 2,4,5,7\nconst u f32 4,4\nconst c f32 4 inf 0\n" IN_FRONT "p = Softmax t\nout p\n");
    ir_text_pass(module, "mixed_heads");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), "graphrt::HeadMix Softmax");
    ir_module_release(module);
}
END_TEST

UNIT_SUITE(test_pass_mixed_heads, NULL, NULL, one_step, beside_a_mask, convolutions, matrices_of_an_image,
           what_stays, infinite_bias)
