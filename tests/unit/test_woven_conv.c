/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WovenConv: results of a convolution as pixels, beside further channels. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <check.h>

static const float pixels[] = {1, 2}, filters[] = {1, 10, 100, 1000},
                   skip[] = {-1, -2, -3, -4, -5, -6, -7, -8};

/* Two pixels of one channel, each of which becomes 2 x 2. */
static void woven_begin(op_runner *r, int64_t batch, const int64_t *block, int64_t place, const char *layout)
{
    op_begin(r, "graphrt", "WovenConv");
    op_add(r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){batch, 1, 2, 1}, pixels);
    op_add(r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){4, 1, 1, 1}, filters);
    op_omit(r);
    op_ints(r, "block", block, 2);
    op_int(r, "place", place);
    op_string(r, "layout", layout);
}

static void woven_check(op_runner *r, int64_t channels, const float *want)
{
    const int64_t dims[] = {1, 2, 4, channels};
    op_run_ok(r, 1);
    ck_assert_int_eq(r->out[0].t.rank, 4);
    ck_assert_mem_eq(r->out[0].t.dims, dims, sizeof dims);
    ck_assert_mem_eq(r->out[0].t.data, want, (size_t)channels * 8 * sizeof *want);
    op_end(r);
}

static const int64_t square[] = {2, 2}, skip_dims[] = {1, 2, 4, 1};

START_TEST(pixels_of_blocks)
{
    const float alone[] = {1, 10, 2, 20, 100, 1000, 200, 2000},
                in_front[] = {1, -1, 10, -2, 2, -3, 20, -4, 100, -5, 1000, -6, 200, -7, 2000, -8},
                behind[] = {-1, 1, -2, 10, -3, 2, -4, 20, -5, 100, -6, 1000, -7, 200, -8, 2000};
    op_runner r;
    woven_begin(&r, 1, square, 0, "NHWC");
    woven_check(&r, 1, alone);
    woven_begin(&r, 1, square, 0, "NHWC");
    op_add(&r, GRT_DTYPE_FLOAT, 4, skip_dims, skip);
    woven_check(&r, 2, in_front);
    woven_begin(&r, 1, square, 1, "NHWC");
    op_add(&r, GRT_DTYPE_FLOAT, 4, skip_dims, skip);
    woven_check(&r, 2, behind);
}
END_TEST

START_TEST(between_two_parts)
{
    const float want[] = {-1, 1,   -1, -2, 10,   -2, -3, 2,   -3, -4, 20,   -4,
                          -5, 100, -5, -6, 1000, -6, -7, 200, -7, -8, 2000, -8};
    op_runner r;
    woven_begin(&r, 1, square, 1, "NHWC");
    op_add(&r, GRT_DTYPE_FLOAT, 4, skip_dims, skip);
    op_add(&r, GRT_DTYPE_FLOAT, 4, skip_dims, skip);
    woven_check(&r, 3, want);
}
END_TEST

START_TEST(no_images)
{
    op_runner r;
    woven_begin(&r, 0, square, 0, "NHWC");
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.dims[0], 0);
    ck_assert_int_eq(r.out[0].t.dims[2], 4);
    op_end(&r);
}
END_TEST

static void woven_refuse(const int64_t *block, int64_t place, const char *layout, const int64_t *part)
{
    op_runner r;
    woven_begin(&r, 1, block, place, layout);
    if (part)
        op_add(&r, GRT_DTYPE_FLOAT, 4, part, skip);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}

START_TEST(what_is_no_block_is_refused)
{
    woven_refuse((const int64_t[]){3, 1}, 0, "NHWC", NULL);
    woven_refuse((const int64_t[]){0, 4}, 0, "NHWC", NULL);
    woven_refuse((const int64_t[]){-2, -2}, 0, "NHWC", NULL);
    woven_refuse(square, 1, "NHWC", NULL);
    woven_refuse(square, -1, "NHWC", skip_dims);
    woven_refuse(square, 2, "NHWC", skip_dims);
    woven_refuse(square, 0, "NCHW", skip_dims);
    woven_refuse(square, 0, "NHWC", (const int64_t[]){1, 4, 2, 1});
}
END_TEST

UNIT_SUITE(test_woven_conv, NULL, NULL, pixels_of_blocks, between_two_parts, no_images,
           what_is_no_block_is_refused)
