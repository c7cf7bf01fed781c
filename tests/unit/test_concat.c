/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Concat: parts whose axes are exchanged on their way. */
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

UNIT_SUITE(test_concat, NULL, NULL, parts_are_exchanged, what_is_no_order_is_refused)
