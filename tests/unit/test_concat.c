/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Concat: parts whose axes are exchanged on their way. */
#include "backends/shared/concat.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <check.h>

static const float pair[] = {1, 2, 3, 4, 5, 6}, lines[] = {10, 20, 30, 40};
static const int64_t pair_dims[] = {2, 3}, lines_dims[] = {2, 2};

static void concat_begin(op_runner *r, const int64_t *perms, size_t n, int64_t axis)
{
    op_begin(r, "graphrt", "Concat");
    op_add(r, GRT_DTYPE_FLOAT, 2, pair_dims, pair);
    op_add(r, GRT_DTYPE_FLOAT, 2, lines_dims, lines);
    op_ints(r, "perms", perms, n);
    op_int(r, "axis", axis);
}

static void concat_check(const int64_t *perms, int64_t axis, const int64_t *dims, const float *want)
{
    op_runner r;
    concat_begin(&r, perms, 4, axis);
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.rank, 2);
    ck_assert_mem_eq(r.out[0].t.dims, dims, 2 * sizeof *dims);
    ck_assert_mem_eq(r.out[0].t.data, want, 10 * sizeof *want);
    op_end(&r);
}

START_TEST(parts_are_exchanged)
{
    concat_check((int64_t[]){1, 0, 0, 1}, 0, (int64_t[]){5, 2}, (float[]){1, 4, 2, 5, 3, 6, 10, 20, 30, 40});
    concat_check((int64_t[]){1, 0, 1, 0}, 0, (int64_t[]){5, 2}, (float[]){1, 4, 2, 5, 3, 6, 10, 30, 20, 40});
    concat_check((int64_t[]){0, 1, 1, 0}, -1, (int64_t[]){2, 5}, (float[]){1, 2, 3, 10, 30, 4, 5, 6, 20, 40});
}
END_TEST

/* Tokens in front of heads, behind a cache: those of one keep their order. */
START_TEST(order_at_these_sizes)
{
    const int64_t perms[] = {0, 1, 2, 3, 0, 2, 1, 3};
    const grt_moved_concat c = {.axis = 2, .perms = perms};
    const grt_tensor whole = {.rank = 4, .dims = {2, 3, 9, 4}}, several = {.rank = 4, .dims = {2, 2, 3, 4}},
                     single = {.rank = 4, .dims = {2, 1, 3, 4}}, one = {.rank = 4, .dims = {2, 2, 1, 4}};
    grt_moved_part part;
    int64_t at = 7;
    grt_moved_part_of(&c, 1, &several, &whole, &at, &part);
    ck_assert(!part.stays);
    ck_assert_int_eq(at, 9);
    ck_assert_int_eq(part.offset, 28);
    ck_assert_int_eq(part.dims[1], 3);
    ck_assert_int_eq(part.from[1], 4);
    ck_assert_int_eq(part.from[2], 12);
    grt_moved_part_of(&c, 0, &several, &whole, &at, &part);
    ck_assert(part.stays);
    grt_moved_part_of(&c, 1, &single, &whole, &at, &part);
    ck_assert(part.stays);
    grt_moved_part_of(&c, 1, &one, &whole, &at, &part);
    ck_assert(part.stays);
}
END_TEST

static void concat_refuse(const int64_t *perms, size_t n, int64_t axis)
{
    op_runner r;
    concat_begin(&r, perms, n, axis);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}

START_TEST(what_is_no_order_is_refused)
{
    concat_refuse((int64_t[]){1, 0, 0, 1}, 4, 1); /* 2 rows beside 3 */
    concat_refuse((int64_t[]){1, 0, 0, 1}, 4, 2);
    concat_refuse((int64_t[]){0, 0, 0, 1}, 4, 0);
    concat_refuse((int64_t[]){1, 0, 0, 2}, 4, 0);
    concat_refuse((int64_t[]){1, 0, 0, -1}, 4, 0);
    concat_refuse((int64_t[]){1, 0, 0}, 3, 0);
    concat_refuse((int64_t[]){0, 0}, 2, 0);
    concat_refuse((int64_t[]){0, 1, 2, 0, 1, 2}, 6, 0);
    concat_refuse(NULL, 0, 0);
}
END_TEST

UNIT_SUITE(test_concat, NULL, NULL, parts_are_exchanged, order_at_these_sizes, what_is_no_order_is_refused)
