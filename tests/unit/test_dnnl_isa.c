/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions take oneDNN's kernels for AVX2 on machines whose AVX-512 works by halves. */
#include "backends/cpu/dnnl.h"
#include "backends/cpu/dnnl_isa.h"
#include "backends/cpu/isa.h"
#include "tests/unit/suite.h"

#include <string.h>

static grt_dnnl_conv image(int64_t in, int64_t out, int64_t groups, int64_t side, grt_act_kind act)
{
    return (grt_dnnl_conv){.spatial = 2,
                           .src_layout = GRT_DNNL_CHANNELS_LAST,
                           .dst_layout = GRT_DNNL_CHANNELS_LAST,
                           .batch = 1,
                           .groups = groups,
                           .in_channels = in,
                           .out_channels = out,
                           .in = {side, side},
                           .out = {side, side},
                           .kernel = {1, 1},
                           .stride = {1, 1},
                           .dilation = {1, 1},
                           .post_count = act != GRT_ACT_NONE,
                           .post = {{.kind = GRT_DNNL_POST_ACT, .act = {.kind = act, .a = 1.0f}}}};
}

START_TEST(empty_lanes_decide)
{
    static const struct {
        int64_t in, out, groups, side;
        grt_act_kind act;
        bool avx2;
    } cases[] = {
        {16, 8, 1, 48, GRT_ACT_NONE, true},
        {16, 24, 1, 24, GRT_ACT_RELU, true},
        {144, 40, 1, 6, GRT_ACT_NONE, true},
        {32, 64, 1, 56, GRT_ACT_RELU, false},
        {192, 56, 1, 3, GRT_ACT_NONE, false},
        {24, 24, 1, 80, GRT_ACT_SILU, true},
        {24, 72, 1, 80, GRT_ACT_SILU, false},
        {512, 1000, 1, 13, GRT_ACT_RELU, false},
        {240, 240, 240, 6, GRT_ACT_RELU, true},
        {240, 240, 240, 6, GRT_ACT_SILU, false},
        {192, 192, 192, 28, GRT_ACT_CLIP, false},
        {24, 24, 24, 112, GRT_ACT_RELU, true},
        {32, INT64_MAX, 1, INT32_MAX, GRT_ACT_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grt_dnnl_conv c = image(cases[i].in, cases[i].out, cases[i].groups, cases[i].side, cases[i].act);
        ck_assert_msg(dnnl_isa_prefers_avx2(&c, true) == cases[i].avx2, "case %zu", i);
        ck_assert(!dnnl_isa_prefers_avx2(&c, false));
        c.src_layout = GRT_DNNL_CHANNELS_FIRST;
        ck_assert(!dnnl_isa_prefers_avx2(&c, true));
    }
}
END_TEST

static bool is_for_avx2(const grt_dnnl_conv *c, const grt_dnnl_op *like, grt_dnnl_op **out)
{
    char err[256];
    ck_assert_msg(grt_dnnl_conv_create(c, like, 1, out, err, sizeof err) == GRT_OK, "%s", err);
    return strstr(grt_dnnl_op_impl(*out), "avx2") != NULL;
}

/* A second shape reads the same weights, whatever would suit it. */
START_TEST(kernels_follow)
{
    const grt_dnnl_conv full = image(32, 64, 1, 24, GRT_ACT_RELU), empty = image(32, 24, 1, 24, GRT_ACT_RELU),
                        few = image(32, 24, 1, 3, GRT_ACT_RELU);
    const bool avx512 = cpu_isa_best() >= CPU_ISA_AVX512;
    grt_dnnl_op *a, *b, *of_few, *like_few;
    if (cpu_isa_best() < CPU_ISA_AVX2)
        return; /* no kernel of either set */
    ck_assert_int_eq(is_for_avx2(&full, NULL, &a), !avx512);
    ck_assert_int_eq(is_for_avx2(&empty, NULL, &b), !avx512 || cpu_isa_halves_avx512());
    ck_assert_int_eq(is_for_avx2(&few, NULL, &of_few), !avx512);
    is_for_avx2(&empty, of_few, &like_few);
    ck_assert(grt_dnnl_op_same_weights(of_few, like_few));
    grt_dnnl_op_release(a);
    grt_dnnl_op_release(b);
    grt_dnnl_op_release(of_few);
    grt_dnnl_op_release(like_few);
}
END_TEST

UNIT_SUITE(test_dnnl_isa, NULL, NULL, empty_lanes_decide, kernels_follow)
