/* SPDX-License-Identifier: Apache-2.0 */
/* What was transposed is sliced instead of taken apart. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

/* Queries, keys and values of 2 heads, 5 tokens. */
#define UNBOUND                              \
    "in x f32 2,5,3,2,4\n"                   \
    "const a i64 1 0\n"                      \
    "t = Transpose x perm=2,0,3,1,4\n"       \
    "q,k,v = Split t axis=0 num_outputs=3\n" \
    "p = Squeeze q a\n"                      \
    "l = Squeeze k a\n"

START_TEST(parts_of_what_was_transposed)
{
    ir_text_check(UNBOUND "y = Sub p l\nr = Relu p\nz = Squeeze v a\nout y\nout z\nout r\n", "single_parts",
                  "Transpose Slice Slice Slice Squeeze Squeeze Sub Relu Squeeze");
    ir_text_check(UNBOUND "y = Sub p l\nr = Relu k\nout y\nout r\n", "single_parts",
                  "Transpose Slice Slice Squeeze Squeeze Sub Relu");
}
END_TEST

static void single_parts_stay(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "single_parts"), 0);
    ir_module_release(module);
}

/* Parts with one reader each; wider parts; another reader of what was transposed; parts of an input, which
 * are views. */
START_TEST(parts_that_stay)
{
    single_parts_stay(UNBOUND "y = Sub p l\nout y\n");
    single_parts_stay("in x f32 2,5,6,4\nt = Transpose x perm=2,0,1,3\n"
                      "q,k = Split t axis=0 num_outputs=2\ny = Sub q k\nr = Relu q\nout y\nout r\n");
    single_parts_stay(UNBOUND "y = Sub p l\nr = Relu p\nout r\nz = Relu t\nout y\nout z\n");
    single_parts_stay(
        "in x f32 2,5,4\nq,k = Split x axis=0 num_outputs=2\ny = Sub q k\nr = Relu q\nout y\nout r\n");
}
END_TEST

UNIT_SUITE(test_pass_single_parts, NULL, NULL, parts_of_what_was_transposed, parts_that_stay)
