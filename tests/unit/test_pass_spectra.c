/* SPDX-License-Identifier: Apache-2.0 */
/* Long convolutions by products of spectra become one op. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define SPECTRUM                               \
    "in x f32 2,3,16,1\n"                      \
    "const n i64 - 16\n"                       \
    "const axis i64 - -2\n"                    \
    "const zero i64 1 0\nconst one i64 1 1\n"  \
    "const two i64 1 2\nconst last i64 1 -1\n" \
    "s = DFT x n axis onesided=1\n"            \
    "a = Slice s zero one last\n"              \
    "b = Slice s one two last\n"

#define BACK "z = Concat re im axis=-1\ny = DFT z n axis onesided=1 inverse=1\nout y\n"

START_TEST(known_filters)
{
    ir_text_check(SPECTRUM "const c f32 3,9,1\nconst d f32 3,9,1\n"
                           "ac = Mul a c\nbd = Mul b d\nad = Mul a d\nbc = Mul b c\n"
                           "re = Sub ac bd\nim = Add ad bc\n" BACK,
                  "spectra", "DFT Slice Slice Mul Mul Mul Mul Sub Add Concat graphrt::SpectralConv");
}
END_TEST

START_TEST(computed_filters)
{
    ir_text_check(SPECTRUM "in f f32 3,16,1\nk = DFT f n axis onesided=1\n"
                           "c,d = Split k axis=-1 num_outputs=2\n"
                           "ac = Mul c a\nbd = Mul b d\nad = Mul d a\nbc = Mul b c\n"
                           "re = Sub ac bd\nim = Add bc ad\n" BACK,
                  "spectra", NULL);
    ir_module *module = ir_text(SPECTRUM "in f f32 9,2\n"
                                         "c,d = Split f axis=-1 num_outputs=2\n"
                                         "ac = Mul c a\nbd = Mul b d\nad = Mul d a\nbc = Mul b c\n"
                                         "re = Sub ac bd\nim = Add bc ad\n" BACK);
    ck_assert_int_eq(ir_text_pass(module, "spectra"), 1);
    ck_assert_int_eq(grt_attr_int(&ir_text_node(module, "SpectralConv", 0)->desc, "length", 0), 16);
    ir_module_release(module);
}
END_TEST

/* A product with the conjugate, which correlates; parts of different spectra; a shorter inverse. */
START_TEST(other_products_stay)
{
    static const char *const texts[] = {
        SPECTRUM "const c f32 3,9,1\nconst d f32 3,9,1\n"
                 "ac = Mul a c\nbd = Mul b d\nad = Mul a d\nbc = Mul b c\n"
                 "re = Add ac bd\nim = Sub bc ad\n" BACK,
        SPECTRUM "const c f32 3,9,1\nconst d f32 3,9,1\nconst e f32 3,9,1\n"
                 "ac = Mul a c\nbd = Mul b d\nad = Mul a e\nbc = Mul b c\n"
                 "re = Sub ac bd\nim = Add ad bc\n" BACK,
        SPECTRUM "const c f32 3,9,1\nconst d f32 3,9,1\nconst short i64 - 14\n"
                 "ac = Mul a c\nbd = Mul b d\nad = Mul a d\nbc = Mul b c\n"
                 "re = Sub ac bd\nim = Add ad bc\n"
                 "z = Concat re im axis=-1\ny = DFT z short axis onesided=1 inverse=1\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *module = ir_text(texts[i]);
        ck_assert_int_eq(ir_text_pass(module, "spectra"), 0);
        ir_module_release(module);
    }
}
END_TEST

UNIT_SUITE(test_pass_spectra, NULL, NULL, known_filters, computed_filters, other_products_stay)
