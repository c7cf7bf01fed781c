/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Rows by itself: what it computes of odd numbers, and programs that are refused. */
#include "src/base/rows.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define FOLD(f) (-1 - (int64_t)(f))

/* x [3, 4], a bias of one row and a number for each row. */
static grt_status run_program(op_runner *r, const int64_t *code, size_t n, size_t n_constants,
                              int64_t row_dims)
{
    static const float x[12] = {1, 2, 3, 4, -1, NAN, 7, 0, INFINITY, -2, 5, 1}, w[4] = {1, 1, 1, 1},
                       u[3] = {2, 3, 4}, constants[4] = {2, 0.5f, 0, 1};
    static const int64_t xs[] = {3, 4}, ws[] = {4}, us[] = {3, 1};
    op_begin(r, "graphrt", "Rows");
    op_ints(r, "program", code, n);
    op_floats(r, "constants", constants, n_constants);
    op_int(r, "row_dims", row_dims);
    op_add(r, GRT_DTYPE_FLOAT, 2, xs, x);
    op_add(r, GRT_DTYPE_FLOAT, 1, ws, w);
    op_add(r, GRT_DTYPE_FLOAT, 2, us, u);
    return op_run(r, 1);
}

START_TEST(odd_numbers)
{
    static const struct {
        rows_fold fold;
        float expected[3];
    } cases[] = {{ROWS_SUM, {10, NAN, INFINITY}},
                 {ROWS_MAX, {4, NAN, INFINITY}},
                 {ROWS_MIN, {1, NAN, -2}},
                 {ROWS_PRODUCT, {24, NAN, -INFINITY}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t code[] = {FOLD(cases[i].fold), 0, -1, -1};
        op_runner r;
        ck_assert_msg(run_program(&r, code, 4, 0, 1) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(r.out[0].t.rank, 2);
        ck_assert_int_eq(r.out[0].t.dims[1], 1);
        for (int k = 0; k < 3; k++) {
            const float found = ((const float *)r.out[0].t.data)[k], wanted = cases[i].expected[k];
            ck_assert_msg(isnan(wanted) ? isnan(found) : found == wanted, "%s of row %d is %g, expected %g",
                          grt_rows_fold_name(cases[i].fold), k, (double)found, (double)wanted);
        }
        op_end(&r);
    }
}
END_TEST

/* A fold of a fold, a fold of a constant, results that nobody reads, a square with two readers. */
START_TEST(odd_programs)
{
    static const int64_t code[] = {FOLD(ROWS_SUM), 2,  -1, -1, /* 5: 4 u */
                                   FOLD(ROWS_SUM), 5,  -1, -1, /* 6: 16 u */
                                   FOLD(ROWS_SUM), 3,  -1, -1, /* 7: 8 */
                                   PW_Exp,         0,  -1, -1, /* 8 */
                                   FOLD(ROWS_MAX), 8,  -1, -1, /* 9 */
                                   PW_Mul,         1,  1,  -1, /* 10: 1 */
                                   FOLD(ROWS_SUM), 10, -1, -1, /* 11: 4 */
                                   PW_Add,         10, 6,  -1, /* 12 */
                                   PW_Add,         12, 11, -1, /* 13 */
                                   PW_Add,         13, 7,  -1 /* 14: 16 u + 13 */};
    op_runner r;
    ck_assert_msg(run_program(&r, code, sizeof code / sizeof *code, 2, 1) == GRT_OK, "%s", grt_last_error());
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(((const float *)r.out[0].t.data)[i], 16 * (float)(2 + i / 4) + 13);
    op_end(&r);
}
END_TEST

/* What a plan could say. */
START_TEST(bad_programs)
{
    static int64_t long_code[4 * (ROWS_MAX_INSTRUCTIONS + 1)];
    for (size_t i = 0; i < sizeof long_code / sizeof *long_code; i += 4)
        memcpy(long_code + i, (const int64_t[]){FOLD(ROWS_SUM), 0, -1, -1}, 4 * sizeof *long_code);
    static const struct {
        int64_t code[8];
        size_t n;
        int64_t row_dims;
        const char *message;
    } cases[] = {
        {{FOLD(ROWS_SUM), 0, -1, -1}, 3, 1, "4 for each"},
        {{FOLD(ROWS_SUM), 0, -1, -1}, 0, 1, ""},
        {{FOLD(ROWS_FOLDS), 0, -1, -1}, 4, 1, "no fold"},
        {{INT64_MIN, 0, -1, -1}, 4, 1, "no fold"},
        {{PW_COUNT, 0, -1, -1}, 4, 1, "no function"},
        {{PW_ShiftLeft, 0, 0, -1, FOLD(ROWS_SUM), 0, -1, -1}, 8, 1, "no function"},
        {{PW_Exp, 0, -1, -1}, 4, 1, "no fold over the row"},
        {{FOLD(ROWS_SUM), 3, -1, -1}, 4, 1, "operand 0 of Sum is 3"},
        {{FOLD(ROWS_SUM), -1, -1, -1}, 4, 1, "operand 0 of Sum is -1"},
        {{FOLD(ROWS_SUM), 0, -1, -1, PW_Add, 3, 4, -1}, 8, 1, "operand 1 of Add is 4"},
        {{FOLD(ROWS_SUM), 0, -1, -1, PW_LeakyRelu, 0, 1, -1}, 8, 1, "parameter 1 of LeakyRelu is 1"},
        {{FOLD(ROWS_SUM), 0, -1, -1}, 4, 0, "row_dims is 0"},
        {{FOLD(ROWS_SUM), 0, -1, -1}, 4, 3, "row_dims is 3"},
        {{FOLD(ROWS_SUM), 0, -1, -1}, 4, 2, "some of the row's"},
    };
    op_runner r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(run_program(&r, cases[i].code, cases[i].n, 0, cases[i].row_dims),
                         GRT_STATUS_INVALID_MODEL);
        ck_assert_msg(strstr(grt_last_error(), cases[i].message), "case %zu: %s", i, grt_last_error());
        op_end(&r);
    }
    ck_assert_int_eq(run_program(&r, long_code, sizeof long_code / sizeof *long_code, 0, 1),
                     GRT_STATUS_INVALID_MODEL);
    op_end(&r);
}
END_TEST

START_TEST(rows_that_are_too_long)
{
    static float x[ROWS_MAX_LENGTH + 1];
    const int64_t code[] = {FOLD(ROWS_SUM), 0, -1, -1}, dims[] = {1, ROWS_MAX_LENGTH + 1}, none[] = {1, 0};
    for (int i = 0; i < 2; i++) {
        op_runner r;
        op_begin(&r, "graphrt", "Rows");
        op_ints(&r, "program", code, 4);
        op_int(&r, "row_dims", 1);
        op_add(&r, GRT_DTYPE_FLOAT, 2, i ? none : dims, x);
        ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "a row must have 1 to"));
        op_end(&r);
    }
}
END_TEST

/* The same bits, whatever shares the work. */
START_TEST(threads_change_nothing)
{
    enum { ROWS = 300, LENGTH = 777 };
    static float x[ROWS * LENGTH], first[ROWS * LENGTH];
    const int64_t dims[] = {ROWS, LENGTH}, code[] = {PW_Mul,  0, 0,  -1, FOLD(ROWS_SUM), 1, -1, -1,
                                                     PW_Sqrt, 2, -1, -1, PW_Div,         0, 3,  -1};
    fill_floats(x, ROWS * LENGTH, 5);
    for (int32_t threads = 1; threads <= 3; threads++) {
        op_runner r;
        op_begin(&r, "graphrt", "Rows");
        r.threads = threads;
        op_ints(&r, "program", code, sizeof code / sizeof *code);
        op_int(&r, "row_dims", 1);
        op_add(&r, GRT_DTYPE_FLOAT, 2, dims, x);
        op_run_ok(&r, 1);
        if (threads == 1)
            memcpy(first, r.out[0].t.data, sizeof first);
        ck_assert_int_eq(memcmp(first, r.out[0].t.data, sizeof first), 0);
        op_end(&r);
    }
}
END_TEST

Suite *suite_test_rows(void);
Suite *suite_test_rows(void)
{
    Suite *s = suite_create("rows");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, odd_numbers);
    tcase_add_test(tc, odd_programs);
    tcase_add_test(tc, bad_programs);
    tcase_add_test(tc, rows_that_are_too_long);
    tcase_add_test(tc, threads_change_nothing);
    suite_add_tcase(s, tc);
    return s;
}
