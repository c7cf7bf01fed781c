/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that a Concat joins again become one move. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(roll)
{
    ir_text_check("in x f32 2,5,3\n"
                  "const a i64 1 2\n"
                  "const z i64 1 0\n"
                  "const end i64 1 9223372036854775807\n"
                  "const axis i64 1 1\n"
                  "p = Slice x a end axis\n"
                  "q = Slice x z a axis\n"
                  "y = Concat p q axis=1\n"
                  "out y\n",
                  "joined_slices", "Slice Slice graphrt::Roll");
}
END_TEST

/* As Swin writes the shift of its windows. */
static const char two_axes[] = "in x f32 2,7,6,8\n"
                               "const a i64 1 3\n"
                               "const back i64 1 -2\n"
                               "const z i64 1 0\n"
                               "const end i64 1 9223372036854775807\n"
                               "const rows i64 1 1\n"
                               "const columns i64 1 2\n"
                               "p = Slice x a end rows\n"
                               "q = Slice x z a rows\n"
                               "r = Concat p q axis=1\n"
                               "s = Slice r back end columns\n"
                               "t = Slice r z back columns\n"
                               "y = Concat s t axis=2\n"
                               "out y\n";

START_TEST(roll_along_two_axes)
{
    ir_text_check(two_axes, "", "graphrt::Roll");
    ir_module *module = ir_text(two_axes);
    ir_text_pass(module, "");
    size_t n;
    const int64_t *shifts = grt_attr_ints(&ir_text_node(module, "Roll", 0)->desc, "shifts", &n);
    ck_assert_uint_eq(n, 4);
    ck_assert(shifts[0] == 0 && shifts[1] == 3 && shifts[2] == 4 && shifts[3] == 0);
    ir_module_release(module);
}
END_TEST

/* As Swin merges patches: rows change faster. */
START_TEST(merged_patches)
{
    ir_text_check("in x f32 2,4,6,3\n"
                  "const z i64 1 0\n"
                  "const o i64 1 1\n"
                  "const end i64 1 9223372036854775807\n"
                  "const rows i64 1 1\n"
                  "const columns i64 1 2\n"
                  "const two i64 1 2\n"
                  "e = Slice x z end rows two\n"
                  "f = Slice x o end rows two\n"
                  "a = Slice e z end columns two\n"
                  "b = Slice f z end columns two\n"
                  "c = Slice e o end columns two\n"
                  "d = Slice f o end columns two\n"
                  "y = Concat a b c d axis=3\n"
                  "out y\n",
                  "", "Reshape Transpose Reshape");
}
END_TEST

/* An image in phases, channels first, by steps of 3 and 2. */
START_TEST(phases_of_an_image)
{
    char text[2000] = "in x f32 1,2,6,4\n"
                      "const end i64 2 9223372036854775807\n"
                      "const axes i64 2 2 3\n"
                      "const steps i64 2 3 2\n";
    for (int i = 0; i < 6; i++)
        sprintf(text + strlen(text), "const s%d i64 2 %d %d\np%d = Slice x s%d end axes steps\n", i, i / 2,
                i % 2, i, i);
    strcat(text, "y = Concat p0 p1 p2 p3 p4 p5 axis=1\nout y\n");
    ir_text_check(text, "", "Reshape Transpose Reshape");
}
END_TEST

static void slices_stay(const char *parts)
{
    char text[1000];
    snprintf(text, sizeof text,
             "in x f32 2,6,3\n"
             "const z i64 1 0\n"
             "const o i64 1 1\n"
             "const t i64 1 2\n"
             "const end i64 1 9223372036854775807\n"
             "const axis i64 1 1\n%sout y\n",
             parts);
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "joined_slices"), 0);
    ir_module_release(module);
}

START_TEST(others_stay)
{
    slices_stay("p = Slice x t end axis\n" /* one row is left out */
                "q = Slice x z o axis\n"
                "y = Concat p q axis=1\n");
    slices_stay("p = Slice x t end axis\n" /* one comes twice */
                "q = Slice x z t axis\n"
                "r = Slice x z o axis\n"
                "y = Concat p q r axis=1\n");
    slices_stay("p = Slice x z end axis t\n" /* along the axis that is cut */
                "q = Slice x o end axis t\n"
                "y = Concat p q axis=1\n");
    slices_stay("p = Slice x z end axis t\n" /* the same phase twice */
                "q = Slice x z end axis t\n"
                "y = Concat p q axis=2\n");
}
END_TEST

UNIT_SUITE(test_pass_joined_slices, NULL, NULL, roll, roll_along_two_axes, merged_patches, phases_of_an_image,
           others_stay)
