/* SPDX-License-Identifier: Apache-2.0 */
/* Where products store results that are pixels of larger images. */
#include "backends/cuda/gemm_plan.h"
#include "backends/shared/woven_conv.h"
#include "tests/unit/suite.h"

#include <check.h>

/* Every result lies where the copy that takes its place puts it, behind `before` further channels. */
static void check_places(int32_t lines, int32_t line, int32_t down, int32_t right, int32_t channels,
                         int32_t before)
{
    const int32_t columns = down * right * channels, pitch = channels + before;
    const grt_woven_conv conv = {.block = {down, right}, .place = 1};
    const grt_woven_shape shape = {.conv = &conv, .result = {.rank = 4, .dims = {1, lines, line, columns}}};
    const grt_tensor beside = {.rank = 4, .dims = {1, lines * down, line * right, before}},
                     y = {.rank = 4, .dims = {1, lines * down, line * right, pitch}};
    const grt_tensor *in[] = {NULL, NULL, NULL, &beside}, *out[] = {&y};
    const grt_reshape r = {.in = in, .out = out, .n_in = 4, .n_out = 1};
    const cuda_gemm_weave w = {true, line, {down, right}, channels, pitch};
    grt_woven_move move;
    grt_woven_conv_own(&shape, &r, &move);
    ck_assert_int_eq(move.to_offset, before);
    int64_t n = 1, found = 0;
    for (int32_t k = 0; k < move.rank; k++)
        n *= move.dims[k];
    ck_assert_int_eq(n, (int64_t)lines * line * columns);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0, from = 0, rest = i;
        for (int32_t k = move.rank - 1; k >= 0; rest /= move.dims[k--]) {
            to += rest % move.dims[k] * move.to[k];
            from += rest % move.dims[k] * move.from[k];
        }
        const int row = (int)(from / columns), column = (int)(from % columns), tap = column / channels;
        found +=
            cuda_gemm_woven_row(&w, row, row / line) + cuda_gemm_woven_column(&w, column, tap, tap / right) ==
            to;
    }
    ck_assert_int_eq(found, n);
}

START_TEST(results_have_their_places)
{
    check_places(6, 4, 2, 2, 8, 0);
    check_places(6, 4, 2, 2, 8, 16);
    check_places(5, 3, 3, 2, 4, 20);
    check_places(4, 1, 1, 1, 16, 48);
    check_places(1, 7, 1, 4, 8, 16);
}
END_TEST

/* Beyond 2^31 numbers. */
START_TEST(large_images)
{
    const cuda_gemm_weave w = {true, 1 << 12, {2, 2}, 64, 128};
    const int row = (1 << 24) - 1, column = 255;
    ck_assert_int_eq(cuda_gemm_woven_row(&w, row, row >> 12) + cuda_gemm_woven_column(&w, column, 3, 1),
                     ((int64_t)1 << 26) * 128 - 65);
}
END_TEST

START_TEST(vectors_lie_in_one_pixel)
{
    cuda_gemm p = {
        .dtype = GRT_DTYPE_FLOAT16, .rows = 64 * 32, .channels = 64, .columns = 128, .multiprocessors = 132};
    const cuda_gemm_weave good = {true, 32, {2, 2}, 32, 64};
    ck_assert(cuda_gemm_plan(&p));
    ck_assert(!p.weave.is_on);
    ck_assert(!cuda_gemm_set_weave(&p, &(cuda_gemm_weave){true, 32, {2, 2}, 32, 68}, 0));
    ck_assert(!cuda_gemm_set_weave(&p, &(cuda_gemm_weave){true, 32, {4, 8}, 4, 64}, 0));
    ck_assert(!cuda_gemm_set_weave(&p, &(cuda_gemm_weave){true, 32, {2, 1}, 32, 64}, 0));
    ck_assert(!cuda_gemm_set_weave(&p, &(cuda_gemm_weave){true, 30, {2, 2}, 32, 64}, 0));
    ck_assert(!cuda_gemm_set_weave(&p, &good, 4));
    ck_assert(!cuda_gemm_set_weave(&p, &(cuda_gemm_weave){true, 32, {2, 2}, 32, 1 << 30}, 0));
    ck_assert(!p.weave.is_on);
    ck_assert(cuda_gemm_set_weave(&p, &good, 32));
    ck_assert(p.weave.is_on && p.weave.pitch == 64);
    p.weave.is_on = false;
    p.act.kind = GRT_ACT_GELU_ERF;
    ck_assert(!cuda_gemm_set_weave(&p, &good, 32));
    p.act.kind = GRT_ACT_RELU;
    p.across = true;
    ck_assert(!cuda_gemm_set_weave(&p, &good, 32));
    p.across = false;
    p.has_residual = true;
    ck_assert(!cuda_gemm_set_weave(&p, &good, 32));
}
END_TEST

UNIT_SUITE(test_cuda_gemm_weave, NULL, NULL, results_have_their_places, large_images,
           vectors_lie_in_one_pixel)
