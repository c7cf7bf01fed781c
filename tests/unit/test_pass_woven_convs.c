/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions store pixels that their channels are. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

/* As passes `phases`, `layout` and `moves` leave a transposed convolution. */
#define PHASES                                              \
    "in x f32 2,3,4,6\n"                                    \
    "in skip f32 2,6,8,3\n"                                 \
    "const w f32 20,6,1,1\n"                                \
    "const b f32 20\n"                                      \
    "const phases i64 6 2 3 4 2 2 5\n"                      \
    "const pixels i64 4 2 6 8 5\n"                          \
    "c = graphrt::Conv x w b layout=NHWC activation=Relu\n" \
    "p = Reshape c phases\n"                                \
    "t = Transpose p perm=0,1,3,2,4,5\n"                    \
    "up = Reshape t pixels\n"

static ir_module *woven_module(const char *text, int64_t woven)
{
    ir_module *m = ir_text(text);
    ir_text_pass(m, "moved_parts");
    ir_text_pass(m, "dce");
    ck_assert_int_eq(ir_text_pass(m, "woven_convs"), woven);
    ir_text_pass(m, "dce");
    return m;
}

static void woven_convs_check(const char *text, const char *ops)
{
    ir_module *plain = ir_text(text), *rewritten = woven_module(text, 1);
    ck_assert_str_eq(ir_text_ops(rewritten), ops);
    ir_text_compare(plain, rewritten);
    ir_module_release(plain);
    ir_module_release(rewritten);
}

START_TEST(beside_a_skip_connection)
{
    woven_convs_check(PHASES "y = Concat up skip axis=-1\n"
                             "out y\n",
                      "graphrt::WovenConv");
    woven_convs_check(PHASES "y = Concat skip up axis=3\n"
                             "z = Relu y\n"
                             "out z\n",
                      "graphrt::WovenConv Relu");
    ir_module *m = woven_module(PHASES "y = Concat skip up axis=3\n"
                                       "out y\n",
                                1);
    const ir_node *made = ir_text_node(m, "WovenConv", 0);
    size_t n;
    const int64_t *block = grt_attr_ints(&made->desc, "block", &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(block[0], 2);
    ck_assert_int_eq(block[1], 2);
    ck_assert_int_eq(grt_attr_int(&made->desc, "place", 0), 1);
    ck_assert_str_eq(grt_attr_string(&made->desc, "activation", ""), "Relu");
    ck_assert_str_eq(made->out[0]->name, "y");
    ir_module_release(m);
}
END_TEST

/* Blocks that are no squares, of windows that overlap; batches of any size. */
START_TEST(other_blocks)
{
    woven_convs_check("in x f32 n,3,4,6\n"
                      "in skip f32 n,9,8,3\n"
                      "const w f32 24,6,3,3\n"
                      "const phases i64 6 0 3 4 3 2 4\n"
                      "const pixels i64 4 0 9 8 4\n"
                      "c = graphrt::Conv x w layout=NHWC pads=1,1,1,1\n"
                      "p = Reshape c phases\n"
                      "t = Transpose p perm=0,1,3,2,4,5\n"
                      "up = Reshape t pixels\n"
                      "y = Concat up skip axis=-1\n"
                      "out y\n",
                      "graphrt::WovenConv");
}
END_TEST

START_TEST(alone)
{
    woven_convs_check(PHASES "y = Exp up\n"
                             "out y\n",
                      "graphrt::WovenConv Exp");
    woven_convs_check("in x f32 n,3,4,6\n"
                      "const w f32 24,6,1,1\n"
                      "const phases i64 6 0 3 4 3 2 4\n"
                      "const pixels i64 4 0 9 8 4\n"
                      "c = graphrt::Conv x w layout=NHWC\n"
                      "p = Reshape c phases\n"
                      "t = Transpose p perm=0,1,3,2,4,5\n"
                      "up = Reshape t pixels\n"
                      "out up\n",
                      "graphrt::WovenConv");
}
END_TEST

static void woven_convs_stay(const char *text)
{
    ir_module_release(woven_module(text, 0));
}

/* Results that something else reads, and other orders of pixels. */
START_TEST(what_is_no_weave_stays)
{
    woven_convs_stay(PHASES "y = Concat up skip axis=-1\n"
                            "z = Exp c\n"
                            "out y\n"
                            "out z\n");
    woven_convs_stay("in x f32 2,3,4,6\n" /* channels are the outermost part of a pixel's */
                     "const w f32 20,6,1,1\n"
                     "const phases i64 6 2 3 4 5 2 2\n"
                     "const pixels i64 4 2 6 8 5\n"
                     "c = graphrt::Conv x w layout=NHWC\n"
                     "p = Reshape c phases\n"
                     "t = Transpose p perm=0,1,4,2,5,3\n"
                     "up = Reshape t pixels\n"
                     "out up\n");
    woven_convs_stay("in x f32 2,3,4,6\n" /* columns in front of rows */
                     "const w f32 20,6,1,1\n"
                     "const phases i64 6 2 3 4 2 2 5\n"
                     "const pixels i64 4 2 6 8 5\n"
                     "c = graphrt::Conv x w layout=NHWC\n"
                     "p = Reshape c phases\n"
                     "t = Transpose p perm=0,1,4,2,3,5\n"
                     "up = Reshape t pixels\n"
                     "out up\n");
    woven_convs_stay("in x f32 2,3,4,6\n"
                     "in skip f32 2,3,4,6\n"
                     "const w f32 6,6,1,1\n"
                     "c = graphrt::Conv x w layout=NHWC\n"
                     "t = Transpose c perm=0,2,1,3\n"
                     "s = Transpose skip perm=0,2,1,3\n"
                     "y = Concat t s axis=-1\n"
                     "out y\n");
}
END_TEST

/* From the model's nodes on, by all passes. */
START_TEST(transposed_convolution)
{
    const char *text = "in x f32 1,16,5,6\n"
                       "in skip f32 1,16,10,12\n"
                       "const w f32 16,8,2,2\n"
                       "const b f32 8\n"
                       "const v f32 16,16,1,1\n"
                       "const u f32 8,24,1,1\n"
                       "a = Conv x v\n"
                       "s = Conv skip v\n"
                       "c = ConvTranspose a w b strides=2,2\n"
                       "j = Concat c s axis=1\n"
                       "y = Conv j u\n"
                       "out y\n";
    ir_module *m = ir_text(text);
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.channels_last = true;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_run_enabled(&context), GRT_OK);
    ck_assert_ptr_nonnull(strstr(ir_text_ops(m), "graphrt::WovenConv"));
    ck_assert_ptr_null(strstr(ir_text_ops(m), "Concat"));
    ir_module *plain = ir_text(text);
    ir_text_compare(plain, m);
    ir_module_release(plain);
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_woven_convs, NULL, NULL, beside_a_skip_connection, other_blocks, alone,
           what_is_no_weave_stays, transposed_convolution)
