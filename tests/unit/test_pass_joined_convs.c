/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of convolutions of one input become one convolution. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels of 3 x 3 and 1 x 1, and the input by channel. */
#define BRANCHES                     \
    "in x f32 2,4,6,5\n"             \
    "const w f32 4,4,3,3\n"          \
    "const b f32 4 1 -2 3 0.5\n"     \
    "const v f32 4,4,1,1 0.5 2 -1\n" \
    "const d f32 4 3 1 -1 2\n"       \
    "const s f32 4,1,1 2 3 -1 0.5\n" \
    "const t f32 4,1,1 1 2 3 4\n"

static void joins(const char *rest, const char *expected)
{
    char text[2048];
    snprintf(text, sizeof text, BRANCHES "%s", rest);
    ir_text_check(text, "joined_convs", NULL);
    ir_module *module = ir_text(text);
    ir_text_pass(module, "joined_convs");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
}

#define P "p = Conv x w b pads=1,1,1,1\n"
#define Q "q = Conv x v d\n"
#define I "m = Mul x s\ni = Add m t\n"

START_TEST(kernels_within_each_other)
{
    joins(P Q "y = Add p q\nout y\n", "Conv");
    joins(P Q "y = Add q p\nz = Relu y\nout z\n", "Conv Relu");
    joins(P Q "y = Sub q p\nout y\n", "Conv");
    joins(P Q "y = Sub p q\nout y\n", "Conv");
    joins("p = Conv x w pads=1,1,1,1\nq = Conv x v\ny = Add p q\nout y\n", "Conv");
    joins("p = Conv x w pads=1,1,1,1\n" Q "y = Add p q\nout y\n", "Conv");
    joins(P "const u f32 4,4,3,3\nq = Conv x u pads=1,1,1,1\ny = Add p q\nout y\n", "Conv");
    joins(P "const u f32 4,4,3,1\nq = Conv x u pads=1,0,1,0\ny = Add p q\nout y\n", "Conv");
    joins(P "const u f32 4,4,7,5\nq = Conv x u pads=3,2,3,2\ny = Add p q\nout y\n", "Conv");
}
END_TEST

START_TEST(strides_and_dilations)
{
    joins("p = Conv x w b pads=1,1,1,1 strides=2,2\nq = Conv x v d strides=2,2\ny = Add p q\nout y\n",
          "Conv");
    joins("p = Conv x w b pads=2,2,2,2 dilations=2,2\n" Q "y = Add p q\nout y\n", "Conv");
    joins("const u f32 4,4,3,5\np = Conv x w b pads=2,3,2,3 dilations=2,3\n"
          "q = Conv x u pads=2,6,2,6 dilations=2,3\ny = Add p q\nout y\n",
          "Conv");
    /* a place that no tap of the larger kernel has */
    joins("p = Conv x w b pads=1,2,3,2 dilations=2,2\n" Q "y = Add p q\nout y\n", "Conv Conv Add");
    joins("p = Conv x w b pads=1,1,1,1 dilations=1,1\nconst u f32 4,4,3,3\n"
          "q = Conv x u d pads=2,2,2,2 dilations=2,2\ny = Add p q\nout y\n",
          "Conv Conv Add");
}
END_TEST

START_TEST(windows_that_are_not_in_the_middle)
{
    joins("p = Conv x w b pads=0,2,2,0\n" Q "y = Add p q\nout y\n", "Conv");
    joins("p = Conv x w b auto_pad=SAME_UPPER\n" Q "y = Add p q\nout y\n", "Conv");
    joins("const u f32 4,4,2,2\np = Conv x w b auto_pad=SAME_LOWER\nq = Conv x u auto_pad=SAME_LOWER\n"
          "y = Add p q\nout y\n",
          "Conv");
    /* of images that are cut off, or moved, other than in the larger kernel's */
    joins("p = Conv x w b\nq = Conv x v d pads=-1,-1,-1,-1\ny = Add p q\nout y\n", "Conv");
    joins("p = Conv x w b pads=3,1,-1,1\n" Q "y = Add p q\nout y\n", "Conv Conv Add");
    /* neither is a part of the other */
    joins("const u f32 4,4,1,3\nconst k f32 4,4,3,1\np = Conv x u pads=0,1,0,1\nq = Conv x k pads=1,0,1,0\n"
          "y = Add p q\nout y\n",
          "Conv Conv Add");
}
END_TEST

START_TEST(inputs_by_channel)
{
    joins(P I "y = Add p i\nout y\n", "Conv");
    joins(P I "y = Sub i p\nout y\n", "Conv");
    joins(P "m = Mul s x\ny = Sub p m\nout y\n", "Conv");
    joins(P "const h f32 - 0.5\nm = Div x h\nk = Sub m h\ny = Add p k\nout y\n", "Conv");
    joins(Q I "y = Add q i\nout y\n", "Conv");
    joins(P "const f f32 4 1 2 0.5 3\nconst e f32 4 2\nn = BatchNormalization x f b d e\n"
            "y = Add n p\nout y\n",
          "Conv");
    /* others may read them, too */
    joins(P I "y = Add p i\nz = Sub y m\nout z\n", "Conv");
    joins(P I "y = Add p i\nz = Relu m\nout y\nout z\n", "Conv Mul Relu");
    /* not by channel; a node too many; moved windows */
    joins(P "const l f32 6,5\nm = Mul x l\ny = Add p m\nout y\n", "Conv Mul Add");
    joins(P I "j = Mul i s\ny = Add p j\nout y\n", "Conv Mul Add Mul Add");
    joins("p = Conv x w b pads=2,0,0,2\n" I "y = Add p i\nout y\n", "Conv");
    joins("p = Conv x w b pads=3,1,-1,1\n" I "y = Add p i\nout y\n", "Conv Mul Add Add");
}
END_TEST

START_TEST(groups)
{
    joins("const k f32 4,1,3,3\nconst u f32 4,1,1,1\np = Conv x k b pads=1,1,1,1 group=4\n"
          "q = Conv x u group=4\nr = Add p q\n" I "y = Add r i\nout y\n",
          "Conv");
    joins("const k f32 4,1,3,3\np = Conv x w b pads=1,1,1,1\nq = Conv x k pads=1,1,1,1 group=4\n"
          "y = Add p q\nout y\n",
          "Conv");
    joins("const k f32 8,2,3,3\nconst u f32 8,1,1,1\np = Conv x k pads=1,1,1,1 group=2\n"
          "q = Conv x u group=4\ny = Add p q\nout y\n",
          "Conv");
    joins("const k f32 4,2,3,3\np = Conv x k b pads=1,1,1,1 group=2\n" I "y = Add p i\nout y\n", "Conv");
    joins("const k f32 4,2,3,3\nconst u f32 4,4,1,1 1 2 0 0 3 4 0 0 0 0 5 6 0 0 7 8\n"
          "p = Conv x k b pads=1,1,1,1 group=2\nq = Conv x u d\ny = Add p q\nout y\n",
          "Conv");
    /* all channels among those of groups */
    joins("const k f32 4,1,3,3\np = Conv x k b pads=1,1,1,1 group=4\n" Q "y = Add p q\nout y\n",
          "Conv Conv Add");
    /* a residual is read along with what many channels make, and is a weight of single ones */
    joins(P "y = Add p x\nout y\n", "Conv Add");
    joins("const k f32 4,1,3,3\np = Conv x k b pads=1,1,1,1 group=4\ny = Add x p\nout y\n", "Conv");
}
END_TEST

#define R "in r f32 2,4,6,5\n"

START_TEST(what_else_is_added_stays)
{
    joins(R P Q I "a = Add p r\nc = Add i a\ny = Add c q\nout y\n", "Conv Add");
    joins(R P Q "a = Add r p\ny = Add q a\nout y\n", "Conv Add");
    joins(R P Q "a = Add r q\ny = Add p a\nout y\n", "Conv Add");
    joins(R P Q "a = Sub r q\ny = Sub p a\nout y\n", "Conv Sub");
    joins(R P Q "a = Sub r p\ny = Sub a q\nout y\n", "Conv Sub");
    joins(R P Q "in e f32 2,4,6,5\na = Add r p\nc = Sub e q\ny = Add a c\nout y\n", "Conv Add Add");
    /* what would remain has another sign, or another shape */
    joins(R P Q "a = Sub q r\ny = Add p a\nout y\n", "Conv Conv Sub Add");
    joins("in e f32 4,1,1\n" P Q "a = Add q e\ny = Add p a\nout y\n", "Conv Conv Add Add");
}
END_TEST

START_TEST(results_that_others_read)
{
    joins(P Q "y = Add p q\nz = Relu q\nout y\nout z\n", "Conv Conv Add Relu");
    joins(P Q "y = Add p q\nout y\nout p\n", "Conv Conv Add");
    joins(R P Q "a = Add p r\ny = Add a q\nout y\nout a\n", "Conv Conv Add Add");
    joins(P "q = Conv x w d pads=1,1,1,1\ny = Add p q\nout y\n", "Conv Conv Add");
    joins("in z f32 2,4,6,5\n" P "q = Conv z v d\ny = Add p q\nout y\n", "Conv Conv Add");
    joins("in g f32 4,4,1,1\n" P "q = Conv x g\ny = Add p q\nout y\n", "Conv Conv Add");
    joins("in g f32 4\n" P "q = Conv x v g\ny = Add p q\nout y\n", "Conv Conv Add");
}
END_TEST

/* A number for each pixel is one for each image that is added to all pixels. */
START_TEST(other_shapes)
{
    joins("p = Conv x w b strides=6,5 pads=1,1,1,1\n" Q "y = Add p q\nout y\n", "Conv Conv Add");
    ir_module *module = ir_text("in x f32 n,4,h,k\nconst w f32 4,4,3,3\nconst v f32 4,4,1,1\n"
                                "const s f32 4,1,1\np = Conv x w pads=1,1,1,1\nq = Conv x v\nm = Mul x s\n"
                                "a = Add p q\ny = Add a m\nout y\n");
    ck_assert_int_eq(ir_text_pass(module, "joined_convs"), 2);
    ir_module_release(module);
    ir_text_check(
        "in x f32 1,4,9\nconst w f32 4,4,5\nconst v f32 4,4,1\np = Conv x w pads=2,2\nq = Conv x v\n"
        "y = Add p q\nout y\n",
        "joined_convs", NULL);
}
END_TEST

/* Each costs what it is made of, not what the weights have that it becomes a part of: these would take more
 * than a compile's budget. */
START_TEST(many_inputs_by_channel)
{
    enum { N = 120, LINE = 40 };
    char *text = malloc((N + 8) * LINE), *at = text;
    ck_assert_ptr_nonnull(text);
    at += sprintf(at, "in x f32 1,384,2,2\nconst w f32 384,384,3,3\nconst s f32 384,1,1\n"
                      "y0 = Conv x w pads=1,1,1,1\n");
    for (int i = 0; i < N; i++)
        at += sprintf(at, "m%d = Mul x s\ny%d = Add y%d m%d\n", i, i + 1, i, i);
    sprintf(at, "out y%d\n", N);
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "joined_convs"), N);
    ir_module_release(module);
    free(text);
}
END_TEST

/* Sums that float16 has no number for. */
START_TEST(weights_stay_finite)
{
    static const char *const text = "in x f16 1,2,4,4\nconst w f16 2,2,3,3 %s\nconst v f16 2,2,1,1 40000\n"
                                    "p = Conv x w pads=1,1,1,1\nq = Conv x v\ny = Add p q\nout y\n";
    for (int i = 0; i < 2; i++) {
        char filled[256];
        snprintf(filled, sizeof filled, text, i ? "40000" : "20000");
        ir_module *module = ir_text(filled);
        ck_assert_int_eq(ir_text_pass(module, "joined_convs"), !i);
        ir_module_release(module);
    }
}
END_TEST

/* A block of MobileOne, whose norms are folded first, and of FastViT, where one stands behind the sum. */
START_TEST(blocks_as_they_are_trained)
{
    static const char *const block = "in x f32 1,4,6,5\nconst w f32 4,1,3,3\nconst v f32 4,1,1,1\n"
                                     "const f f32 4 1 2 0.5 3\nconst b f32 4 1 -1\nconst d f32 4 0.5\n"
                                     "const e f32 4 2 1\nconst l f32 4,1,1 0.5 2\n"
                                     "p = Conv x w pads=1,1,1,1 group=4\nq = Conv x v group=4\n"
                                     "k = BatchNormalization p f b d e\no = BatchNormalization q b f d e\n"
                                     "i = BatchNormalization x d f b e\na = Add o i\nc = Add k a\n%s";
    static const char *const rest[] = {
        "r = Relu c\nout r\n",
        "j = BatchNormalization x f f b e\ng = Sub c j\nh = Mul g l\ny = Add x h\nout y\n"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        char text[1024];
        snprintf(text, sizeof text, block, rest[i]);
        ir_text_check(text, "", "Transpose graphrt::Conv Transpose");
    }
}
END_TEST

UNIT_SUITE(test_pass_joined_convs, NULL, NULL, kernels_within_each_other, strides_and_dilations,
           windows_that_are_not_in_the_middle, inputs_by_channel, groups, what_else_is_added_stays,
           results_that_others_read, other_shapes, many_inputs_by_channel, weights_stay_finite,
           blocks_as_they_are_trained)
