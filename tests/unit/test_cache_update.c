/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::CacheUpdate: entries that were there, zeros behind them, and new ones in their place. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

enum { BATCH = 2, PAST = 3, FRESH = 2 };

static void cache_update_begin(op_runner *r, const int64_t *starts, const int64_t *pads)
{
    static const float past[BATCH * PAST] = {1, 2, 3, 4, 5, 6}, fresh[BATCH * FRESH] = {10, 20, 30, 40};
    static const int64_t past_dims[] = {BATCH, PAST, 1}, fresh_dims[] = {BATCH, FRESH, 1},
                         of_starts[] = {BATCH}, of_pads[] = {6};
    op_begin(r, "graphrt", "CacheUpdate");
    op_add(r, GRT_DTYPE_FLOAT, 3, past_dims, past);
    op_add(r, GRT_DTYPE_FLOAT, 3, fresh_dims, fresh);
    op_add(r, GRT_DTYPE_INT64, 1, of_pads, pads);
    if (starts)
        op_add(r, GRT_DTYPE_INT64, 1, of_starts, starts);
}

static void cache_update_check(op_runner *r, int64_t length, const float *want)
{
    op_run_ok(r, 1);
    ck_assert_int_eq(r->out[0].t.dims[1], length);
    ck_assert_mem_eq(r->out[0].t.data, want, (size_t)(BATCH * length) * sizeof *want);
    op_end(r);
}

START_TEST(entries_are_padded_and_replaced)
{
    const int64_t starts[] = {3, 1}, pads[] = {0, 0, 0, 0, 3, 0};
    const float want[] = {1, 2, 3, 10, 20, 0, 4, 30, 40, 0, 0, 0};
    op_runner r;
    cache_update_begin(&r, starts, pads);
    cache_update_check(&r, PAST + 3, want);
}
END_TEST

START_TEST(the_first_are_behind_the_last)
{
    const int64_t starts[] = {3, 5}, pads[] = {0, 0, 0, 0, 1, 0};
    const float want[] = {20, 2, 3, 10, 4, 30, 40, 0};
    op_runner r;
    cache_update_begin(&r, starts, pads);
    op_string(&r, "mode", "circular");
    cache_update_check(&r, PAST + 1, want);
}
END_TEST

START_TEST(entries_are_cut_off)
{
    const int64_t pads[] = {0, 0, 0, 0, -1, 0};
    const float want[] = {10, 20, 30, 40};
    op_runner r;
    cache_update_begin(&r, NULL, pads);
    cache_update_check(&r, PAST - 1, want);
}
END_TEST

static void cache_update_refuse(const int64_t *starts, const int64_t *pads)
{
    op_runner r;
    cache_update_begin(&r, starts, pads);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}

START_TEST(what_does_not_fit_is_refused)
{
    const int64_t good[] = {0, 1}, far[] = {0, 3}, before[] = {-1, 0}, none[6] = {0},
                  one[] = {0, 0, 0, 0, 1, 0}, front[] = {0, 1, 0, 0, 0, 0}, cut[] = {0, 0, 0, 0, -2, 0};
    cache_update_refuse(far, one);
    cache_update_refuse(before, one);
    cache_update_refuse(good, front);
    cache_update_refuse(good, cut);
    op_runner r;
    cache_update_begin(&r, good, none);
    op_run_ok(&r, 1);
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_cache_update, NULL, NULL, entries_are_padded_and_replaced, the_first_are_behind_the_last,
           entries_are_cut_off, what_does_not_fit_is_refused)
