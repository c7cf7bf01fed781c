/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by filters for each pixel that are written out become one op. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

/* Images of 2 x 6 x 5 x 6, padded by 1, windows of 3 x 2: rows of 5, columns of 7. */
#define WINDOWS                                           \
    "in x f32 2,6,5,6\n"                                  \
    "in w f32 2,12,5,7\n"                                 \
    "const pads i64 8 0 0 1 1 0 0 1 1\n"                  \
    "const rows i64 3,5 0 1 2 3 4 1 2 3 4 5 2 3 4 5 6\n"  \
    "const columns i64 2,7 0 1 2 3 4 5 6 1 2 3 4 5 6 7\n" \
    "const axis i64 1 3\n"                                \
    "const many i64 6 2 2 3 6 5 7\n"                      \
    "const few i64 6 2 2 1 6 5 7\n"                       \
    "p = Pad x pads\n"                                    \
    "r = Gather p rows axis=2\n"                          \
    "c = Gather r columns axis=4\n"                       \
    "t = Transpose c perm=0,1,2,4,3,5\n"                  \
    "u = Reshape t many\n"                                \
    "f = Reshape w few\n"

START_TEST(involution)
{
    ir_text_check(WINDOWS "m = Mul u f\ny = ReduceSum m axis keepdims=0\nout y\n", "pixel_filters",
                  "Pad Gather Gather Transpose Reshape Reshape Mul graphrt::PixelFilter Reshape");
    ir_text_check(WINDOWS "m = Mul f u\ny = ReduceSum m axis keepdims=1\nout y\n", "pixel_filters", NULL);
    ir_module *module = ir_text(WINDOWS "m = Mul u f\ny = ReduceSum m axis keepdims=0\nout y\n");
    ck_assert_int_eq(ir_text_pass(module, "pixel_filters"), 1);
    const ir_node *made = ir_text_node(module, "PixelFilter", 0);
    size_t n;
    const int64_t *pads = grt_attr_ints(&made->desc, "pads", &n);
    ck_assert(n == 4 && pads[0] == 1 && pads[3] == 1);
    ir_module_release(module);
}
END_TEST

/* Strides and dilations are read from the positions; nothing is padded. */
START_TEST(strides_and_dilations)
{
    ir_text_check("in x f32 1,2,7,8\n"
                  "in w f32 1,1,4,3,3\n"
                  "const rows i64 2,3 0 2 4 2 4 6\n"
                  "const columns i64 2,3 0 2 4 3 5 7\n"
                  "const axis i64 1 2\n"
                  "const many i64 5 1 2 4 3 3\n"
                  "r = Gather x rows axis=2\n"
                  "c = Gather r columns axis=4\n"
                  "t = Transpose c perm=0,1,2,4,3,5\n"
                  "u = Reshape t many\n"
                  "m = Mul u w\n"
                  "y = ReduceSum m axis keepdims=0\n"
                  "out y\n",
                  "pixel_filters", NULL);
    ir_module *module = ir_text(WINDOWS "m = Mul u f\ny = ReduceSum m axis keepdims=0\nout y\nout m\n");
    ck_assert_int_eq(ir_text_pass(module, "pixel_filters"), 0); /* the product is used itself */
    ir_module_release(module);
}
END_TEST

/* Another axis is summed; positions that are no windows; filters of another batch. */
START_TEST(other_sums_stay)
{
    static const char *const texts[] = {
        WINDOWS "const other i64 1 2\nm = Mul u f\ny = ReduceSum m other keepdims=0\nout y\n",
        "in x f32 1,2,5,5\nin w f32 1,2,4,9\nconst at i64 2,3 0 1 2 2 1 3\nconst axis i64 1 2\n"
        "const many i64 4 1 2 4 9\nr = Gather x at axis=2\nc = Gather r at axis=4\n"
        "t = Transpose c perm=0,1,2,4,3,5\nu = Reshape t many\nm = Mul u w\n"
        "y = ReduceSum m axis keepdims=0\nout y\n",
        "in x f32 2,2,4,4\nin w f32 1,2,4,9\nconst at i64 2,3 0 1 2 1 2 3\nconst axis i64 1 2\n"
        "const many i64 4 2 2 4 9\nr = Gather x at axis=2\nc = Gather r at axis=4\n"
        "t = Transpose c perm=0,1,2,4,3,5\nu = Reshape t many\nm = Mul u w\n"
        "y = ReduceSum m axis keepdims=0\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *module = ir_text(texts[i]);
        ck_assert_int_eq(ir_text_pass(module, "pixel_filters"), 0);
        ir_module_release(module);
    }
}
END_TEST

UNIT_SUITE(test_pass_pixel_filters, NULL, NULL, involution, strides_and_dilations, other_sums_stay)
