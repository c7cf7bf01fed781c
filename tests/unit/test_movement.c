/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of data movement and reduction against their definitions, and what they do with bad indices. */
#include "src/base/float.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define LIST(r, ...) \
    op_add(r, GRT_DTYPE_INT64, 1, DIMS(sizeof DIMS(__VA_ARGS__) / sizeof(int64_t)), DIMS(__VA_ARGS__))

static void expect_dims(const op_runner *r, int32_t i, int32_t rank, const int64_t *dims)
{
    ck_assert_int_eq(r->out[i].t.rank, rank);
    for (int32_t k = 0; k < rank; k++)
        ck_assert_int_eq(r->out[i].t.dims[k], dims[k]);
}

static void expect_ints(const op_runner *r, int32_t i, int64_t n, const int64_t *expected)
{
    ck_assert_int_eq(grt_tensor_elements(&r->out[i].t), n);
    for (int64_t k = 0; k < n; k++)
        ck_assert_int_eq(grt_tensor_int(&r->out[i].t, k), expected[k]);
}

static void expect_refused(op_runner *r, int32_t n_out, const char *part)
{
    ck_assert_int_ne(op_run(r, n_out), GRT_OK);
    ck_assert_msg(strstr(grt_last_error(), part), "'%s' is not in '%s'", part, grt_last_error());
    op_end(r);
}

/* ---- reductions ---- */

enum { R0 = 5, R1 = 3, R2 = 4, R3 = 7, RALL = R0 * R1 * R2 * R3 };
static const int64_t box[] = {R0, R1, R2, R3};

typedef struct sums {
    double n, sum, absolute, squares, product, most, least, exps;
} sums;

static void add_to(sums *s, double v)
{
    s->n += 1;
    s->sum += v;
    s->absolute += fabs(v);
    s->squares += v * v;
    s->product *= v;
    s->most = fmax(s->most, v);
    s->least = fmin(s->least, v);
    s->exps += exp(v);
}

static double result_of(const char *op, const sums *s)
{
    return !strcmp(op, "ReduceSum")         ? s->sum
           : !strcmp(op, "ReduceMean")      ? s->sum / s->n
           : !strcmp(op, "ReduceProd")      ? s->product
           : !strcmp(op, "ReduceMax")       ? s->most
           : !strcmp(op, "ReduceMin")       ? s->least
           : !strcmp(op, "ReduceL1")        ? s->absolute
           : !strcmp(op, "ReduceL2")        ? sqrt(s->squares)
           : !strcmp(op, "ReduceSumSquare") ? s->squares
           : !strcmp(op, "ReduceLogSum")    ? log(s->sum)
                                            : log(s->exps);
}

/* Reduce the axes of `mask`, keeping dims, and compare with sums by definition. */
static void check_reduce(const char *op, grt_dtype dtype, const void *data, unsigned mask)
{
    sums expected[RALL];
    grt_tensor in = {.dtype = dtype, .rank = 4, .dims = {R0, R1, R2, R3}, .data = (void *)data};
    int64_t n = 1, axes[4], n_axes = 0;
    for (int k = 0; k < 4; k++) {
        n *= mask >> k & 1 ? 1 : box[k];
        if (mask >> k & 1)
            axes[n_axes++] = k - (k % 2 ? 4 : 0);
    }
    for (int64_t i = 0; i < n; i++)
        expected[i] = (sums){.product = 1, .most = -INFINITY, .least = INFINITY};
    for (int64_t i = 0; i < RALL; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int k = 3; k >= 0; k--) {
            int64_t index = rest % box[k];
            rest /= box[k];
            at += mask >> k & 1 ? 0 : index * stride;
            stride *= mask >> k & 1 ? 1 : box[k];
        }
        add_to(&expected[at], grt_tensor_double(&in, i));
    }
    op_runner r;
    op_begin(&r, "", op);
    op_int(&r, "noop_with_empty_axes", 1);
    op_add(&r, dtype, 4, box, data);
    op_add(&r, GRT_DTYPE_INT64, 1, &n_axes, axes);
    op_run_ok(&r, 1);
    ck_assert_int_eq(grt_tensor_elements(&r.out[0].t), n);
    for (int64_t i = 0; i < n && mask; i++) {
        double wanted = result_of(op, &expected[i]), found = grt_tensor_double(&r.out[0].t, i);
        ck_assert_msg(fabs(found - wanted) <= 1e-5 * fabs(wanted) + 1e-5,
                      "%s of %s, axes %u, element %d: %g, expected %g", op, grt_dtype_name(dtype), mask,
                      (int)i, found, wanted);
    }
    op_end(&r);
}

START_TEST(reductions_match_their_definitions)
{
    static const char *const ops[] = {"ReduceSum",    "ReduceMean",     "ReduceProd", "ReduceMax",
                                      "ReduceMin",    "ReduceL1",       "ReduceL2",   "ReduceSumSquare",
                                      "ReduceLogSum", "ReduceLogSumExp"};
    float x[RALL];
    double wide[RALL];
    int32_t whole[RALL];
    uint8_t small[RALL];
    fill_floats(x, RALL, 3);
    for (int i = 0; i < RALL; i++) {
        x[i] = _i == 8 ? 1.5f + x[i] : x[i]; /* a logarithm wants positive sums */
        wide[i] = (double)x[i];
        whole[i] = (int32_t)(x[i] * 50);
        small[i] = (uint8_t)(i % 3 == 0);
    }
    for (unsigned mask = 0; mask < 16; mask++) {
        check_reduce(ops[_i], GRT_DTYPE_FLOAT, x, mask);
        check_reduce(ops[_i], GRT_DTYPE_DOUBLE, wide, mask);
        if (!strcmp(ops[_i], "ReduceSum") || !strcmp(ops[_i], "ReduceMax") || !strcmp(ops[_i], "ReduceMin") ||
            !strcmp(ops[_i], "ReduceL1"))
            check_reduce(ops[_i], GRT_DTYPE_INT32, whole, mask);
        if (!strcmp(ops[_i], "ReduceMax") || !strcmp(ops[_i], "ReduceMin"))
            check_reduce(ops[_i], GRT_DTYPE_UINT8, small, mask);
    }
}
END_TEST

/* Pixels of an image by channel, in floats of two widths: threads share the rows, and their number changes
 * no bit. */
START_TEST(means_of_many_rows_do_not_depend_on_threads)
{
    enum { ROWS = 1500, COLS = 300 };
    static const char *const ops[] = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"};
    static float x[ROWS * COLS], first[COLS];
    static uint16_t half[ROWS * COLS];
    const int64_t axis = 0;
    fill_floats(x, ROWS * COLS, 11);
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        half[i] = grt_float_to_half(x[i]);
        x[i] = grt_half_to_float(half[i]);
    }
    for (int which = 0; which < 4; which++) {
        op_runner r;
        op_begin(&r, "", ops[_i]);
        r.threads = which % 2 + 1;
        op_add(&r, which < 2 ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16, 2, DIMS(ROWS, COLS),
               which < 2 ? (const void *)x : half);
        op_add(&r, GRT_DTYPE_INT64, 1, DIMS(1), &axis);
        op_run_ok(&r, 1);
        for (int j = 0; j < COLS; j++) {
            sums expected = {.product = 1, .most = -INFINITY, .least = INFINITY};
            for (int i = 0; i < ROWS; i++)
                add_to(&expected, (double)x[i * COLS + j]);
            const double wanted = result_of(ops[_i], &expected), found = grt_tensor_double(&r.out[0].t, j);
            ck_assert_double_eq_tol(found, wanted, (which < 2 ? 1e-5 : 1e-3) * (1 + fabs(wanted)));
            if (which == 1)
                ck_assert(((const float *)r.out[0].t.data)[j] == first[j]);
            if (which == 0)
                first[j] = ((const float *)r.out[0].t.data)[j];
        }
        op_end(&r);
    }
}
END_TEST

START_TEST(inputs_of_a_concat_are_interleaved_by_two_threads)
{
    enum { ROWS = 400, A = 64, B = 96 };
    static float a[ROWS * A], b[ROWS * B];
    op_runner r;
    fill_floats(a, ROWS * A, 1);
    fill_floats(b, ROWS * B, 2);
    op_begin(&r, "", "Concat");
    op_int(&r, "axis", -1);
    op_add(&r, GRT_DTYPE_FLOAT, 3, DIMS(2, ROWS / 2, A), a);
    op_add(&r, GRT_DTYPE_FLOAT, 3, DIMS(2, ROWS / 2, B), b);
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    for (int64_t i = 0; i < ROWS; i++, y += A + B) {
        ck_assert_mem_eq(y, a + i * A, A * sizeof *a);
        ck_assert_mem_eq(y + A, b + i * B, B * sizeof *b);
    }
    op_end(&r);
}
END_TEST

START_TEST(empty_sets_have_their_neutral_element)
{
    static const struct {
        const char *op;
        float expected;
    } cases[] = {{"ReduceSum", 0},
                 {"ReduceProd", 1},
                 {"ReduceMax", -INFINITY},
                 {"ReduceMin", INFINITY},
                 {"ReduceLogSumExp", -INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_runner r;
        op_begin(&r, "", cases[i].op);
        op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(2, 0), "");
        LIST(&r, 1);
        op_run_ok(&r, 1);
        expect_dims(&r, 0, 2, DIMS(2, 1));
        ck_assert(((const float *)r.out[0].t.data)[1] == cases[i].expected);
        op_end(&r);
    }
}
END_TEST

/* Of 7 rows or of 70, at any row, in whole vectors of columns and behind them. */
START_TEST(extremes_of_columns_keep_nan)
{
    enum { ROWS = 70, COLS = 21 };
    static const int64_t axis = 0, one = 1;
    const int64_t rows = _i < 2 ? 7 : ROWS, dims[] = {rows, COLS};
    float x[ROWS * COLS];
    for (int64_t i = 0; i < rows * COLS; i++)
        x[i] = (float)(i % COLS) - 10.0f;
    for (int64_t c = 0; c < COLS; c += 2)
        x[c % rows * COLS + c] = NAN;
    op_runner r;
    op_begin(&r, "", _i % 2 ? "ReduceMin" : "ReduceMax");
    op_add(&r, GRT_DTYPE_FLOAT, 2, dims, x);
    op_add(&r, GRT_DTYPE_INT64, 1, &one, &axis);
    op_run_ok(&r, 1);
    for (int64_t c = 0; c < COLS; c++) {
        const double found = grt_tensor_double(&r.out[0].t, c);
        ck_assert_msg(c % 2 ? found == (double)(c - 10) : isnan(found), "column %d: %g", (int)c, found);
    }
    op_end(&r);
}
END_TEST

START_TEST(extremes_of_infinities_are_infinite)
{
    enum { N = 40 };
    for (int least = 0; least < 2; least++) {
        const float extreme = least ? INFINITY : -INFINITY;
        float x[N];
        for (int i = 0; i < N; i++)
            x[i] = extreme;
        op_runner r;
        op_begin(&r, "", least ? "ReduceMin" : "ReduceMax");
        op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(1, N), x);
        LIST(&r, 1);
        op_run_ok(&r, 1);
        ck_assert(*(const float *)r.out[0].t.data == extreme);
        op_end(&r);
    }
}
END_TEST

/* One float32 accumulator would be off by 3e-3 here; strips of 256 are summed in float32, which costs 1e-5 at
 * most. */
START_TEST(long_sums_stay_exact_enough)
{
    enum { N = 1 << 20 };
    float *x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++)
        x[i] = 0.1f;
    for (int k = 0; k < 2; k++) { /* one run; and rows that are folded */
        op_runner r;
        op_begin(&r, "", "ReduceSum");
        op_int(&r, "keepdims", 0);
        op_add(&r, GRT_DTYPE_FLOAT, 2, k ? DIMS(N / 4, 4) : DIMS(1, N), x);
        LIST(&r, k ? 0 : 1);
        op_run_ok(&r, 1);
        double wanted = (double)0.1f * (k ? N / 4 : N);
        ck_assert_double_eq_tol((double)((const float *)r.out[0].t.data)[0], wanted, wanted * 1e-5);
        op_end(&r);
    }
    free(x);
}
END_TEST

/* ---- indices ---- */

/* One element for each index, of rows that all have the same indices: more than one thread takes at once, of
 * every size of element, counted from either end. */
START_TEST(single_elements_of_rows)
{
    enum { ROWS = 2, SIZE = 5, N = 70001 };
    static const grt_dtype dtypes[] = {GRT_DTYPE_INT8, GRT_DTYPE_INT16, GRT_DTYPE_INT32, GRT_DTYPE_INT64};
    int32_t *at = malloc(N * sizeof *at);
    int64_t data[ROWS * SIZE];
    ck_assert_ptr_nonnull(at);
    for (int32_t k = 0; k < N; k++)
        at[k] = (k * 7 + k / 11) % (2 * SIZE) - SIZE;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        const size_t bytes = grt_dtype_size(dtypes[d]);
        for (int64_t k = 0; k < ROWS * SIZE; k++)
            memcpy((char *)data + (size_t)k * bytes, &(int64_t){3 * k + 1}, bytes);
        op_runner r;
        op_begin(&r, "", "Gather");
        op_int(&r, "axis", 1);
        op_add(&r, dtypes[d], 2, DIMS(ROWS, SIZE), data);
        op_add(&r, GRT_DTYPE_INT32, 1, DIMS(N), at);
        op_run_ok(&r, 1);
        expect_dims(&r, 0, 2, DIMS(ROWS, N));
        for (int64_t k = 0; k < ROWS * N; k++) {
            const int64_t index = at[k % N] + (at[k % N] < 0 ? SIZE : 0);
            ck_assert_int_eq(grt_tensor_int(&r.out[0].t, k), 3 * (k / N * SIZE + index) + 1);
        }
        op_end(&r);
    }
    free(at);
}
END_TEST

START_TEST(indices_out_of_range_are_refused)
{
    static const float x[6] = {0, 1, 2, 3, 4, 5};
    op_runner r;
    op_begin(&r, "", "Gather");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(3, 2), x);
    LIST(&r, 0, 3);
    expect_refused(&r, 1, "index 3");
    op_begin(&r, "", "GatherElements");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(6), x);
    LIST(&r, -7);
    expect_refused(&r, 1, "index -7");
    op_begin(&r, "", "GatherND");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(3, 2), x);
    op_add(&r, GRT_DTYPE_INT64, 2, DIMS(1, 2), DIMS(2, 2));
    expect_refused(&r, 1, "index 2");
    op_begin(&r, "", "ScatterElements");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(6), x);
    LIST(&r, INT64_MIN);
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(1), x);
    expect_refused(&r, 1, "out of range");
    op_begin(&r, "", "ScatterND");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(6), x);
    op_add(&r, GRT_DTYPE_INT64, 2, DIMS(1, 1), DIMS(6));
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(1), x);
    expect_refused(&r, 1, "index 6");
    op_begin(&r, "", "ReverseSequence");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(3, 2), x);
    LIST(&r, 1, 4);
    expect_refused(&r, 1, "sequence_lens[1] is 4");
    op_begin(&r, "", "Compress");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(1), x);
    op_add(&r, GRT_DTYPE_BOOL, 1, DIMS(2), (const uint8_t[]){0, 1});
    expect_refused(&r, 1, "condition[1]");
}
END_TEST

START_TEST(scatter_keeps_order_and_reduces)
{
    static const int8_t x[4] = {1, -2, 3, 100}, updates[4] = {50, 60, 7, -8};
    static const struct {
        const char *how;
        int64_t expected[4];
    } cases[] = {{"none", {1, 60, -8, 100}},
                 {"add", {1, 108, 2, 100}},
                 {"mul", {1, -112, 88, 100}},
                 {"max", {1, 60, 7, 100}},
                 {"min", {1, -2, -8, 100}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_runner r;
        op_begin(&r, "", "ScatterElements");
        op_string(&r, "reduction", cases[i].how);
        op_add(&r, GRT_DTYPE_INT8, 1, DIMS(4), x);
        LIST(&r, 1, -3, 2, 2);
        op_add(&r, GRT_DTYPE_INT8, 1, DIMS(4), updates);
        op_run_ok(&r, 1);
        expect_ints(&r, 0, 4, cases[i].expected); /* int8 wraps: -2*50*60 is -112, 3*7*-8 is 88 */
        op_end(&r);
    }
}
END_TEST

/* ---- pad, slice, order ---- */

START_TEST(pads_in_every_mode)
{
    static const struct {
        const char *mode;
        int64_t before, after, n, expected[16];
    } cases[] = {{"constant", 2, 1, 6, {0, 0, 1, 2, 3, 0}},
                 {"constant", -1, 2, 4, {2, 3, 0, 0}},
                 {"edge", 2, 3, 8, {1, 1, 1, 2, 3, 3, 3, 3}},
                 {"reflect", 5, 5, 13, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}},
                 {"wrap", 4, 4, 11, {3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1}}};
    static const int32_t x[] = {1, 2, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_runner r;
        op_begin(&r, "", "Pad");
        op_string(&r, "mode", cases[i].mode);
        op_add(&r, GRT_DTYPE_INT32, 1, DIMS(3), x);
        LIST(&r, cases[i].before, cases[i].after);
        op_run_ok(&r, 1);
        expect_ints(&r, 0, cases[i].n, cases[i].expected);
        op_end(&r);
    }
}
END_TEST

/* One dim is padded or cropped, by so much that its border is filled alone; or that there is nothing else, as
 * what is cropped reaches past the image. */
START_TEST(borders_of_one_dim_are_filled)
{
    enum { A = 2, B = 5, C = 700 };
    static float x[A * B * C];
    fill_floats(x, A * B * C, 9);
    static const int64_t pads[][2] = {{3, 2}, {4, -2}, {-1, 3}, {0, 2}, {9, -7}, {12, -15}, {-9, 6}};
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        const int64_t before = pads[i][0], rows = B + before + pads[i][1],
                      all[] = {0, before, 0, 0, pads[i][1], 0};
        const float value = 7;
        op_runner r;
        op_begin(&r, "", "Pad");
        op_add(&r, GRT_DTYPE_FLOAT, 3, DIMS(A, B, C), x);
        op_add(&r, GRT_DTYPE_INT64, 1, DIMS(6), all);
        op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &value);
        op_run_ok(&r, 1);
        expect_dims(&r, 0, 3, DIMS(A, rows, C));
        for (int64_t k = 0; k < A * rows * C; k++) {
            const int64_t from = k / C % rows - before;
            const float expected = from < 0 || from >= B ? value : x[(k / C / rows * B + from) * C + k % C];
            ck_assert(((const float *)r.out[0].t.data)[k] == expected);
        }
        op_end(&r);
    }
}
END_TEST

START_TEST(slices_backwards_and_to_nothing)
{
    static const int32_t x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    op_runner r;
    op_begin(&r, "", "Slice");
    op_add(&r, GRT_DTYPE_INT32, 1, DIMS(10), x);
    LIST(&r, INT64_MAX);
    LIST(&r, INT64_MIN);
    LIST(&r, -1);
    LIST(&r, -4);
    op_run_ok(&r, 1);
    expect_ints(&r, 0, 3, DIMS(9, 5, 1));
    op_end(&r);
    op_begin(&r, "", "Slice");
    op_add(&r, GRT_DTYPE_INT32, 2, DIMS(2, 5), x);
    LIST(&r, 4);
    LIST(&r, 2);
    LIST(&r, 1);
    op_run_ok(&r, 1);
    expect_dims(&r, 0, 2, DIMS(2, 0));
    op_end(&r);
}
END_TEST

START_TEST(order_is_stable_and_knows_odd_numbers)
{
    static const float x[] = {1, NAN, 3, 3, -INFINITY, -0.0f, 0};
    op_runner r;
    op_begin(&r, "", "TopK");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(7), x);
    LIST(&r, 7);
    op_run_ok(&r, 2);
    expect_ints(&r, 1, 7, DIMS(1, 2, 3, 0, 5, 6, 4));
    op_end(&r);
    op_begin(&r, "", "ArgMax");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(7), x);
    op_run_ok(&r, 1);
    expect_ints(&r, 0, 1, DIMS(1));
    op_end(&r);
    static const int64_t y[] = {5, -1, 5, INT64_MIN, -1};
    op_begin(&r, "", "Unique");
    op_int(&r, "sorted", 0);
    op_add(&r, GRT_DTYPE_INT64, 1, DIMS(5), y);
    op_run_ok(&r, 4);
    expect_ints(&r, 0, 3, DIMS(5, -1, INT64_MIN));
    expect_ints(&r, 1, 3, DIMS(0, 1, 3));
    expect_ints(&r, 2, 5, DIMS(0, 1, 0, 2, 1));
    expect_ints(&r, 3, 3, DIMS(2, 2, 1));
    op_end(&r);
}
END_TEST

/* Sums along each axis, of more rows than are made together and of fewer, forwards and backwards. */
START_TEST(running_sums_match_their_definition)
{
    enum { A = 5, B = 37, C = 67, ALL = A * B * C };
    static float x[ALL];
    fill_floats(x, ALL, 3);
    const int64_t dims[] = {A, B, C}, steps[] = {B * C, C, 1};
    const int64_t axis = _i % 3;
    const bool exclusive = _i / 3 % 2, reverse = _i / 6 % 2;
    op_runner r;
    op_begin(&r, "", "CumSum");
    op_int(&r, "exclusive", exclusive);
    op_int(&r, "reverse", reverse);
    r.threads = 1 + _i / 12;
    op_add(&r, GRT_DTYPE_FLOAT, 3, dims, x);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &axis);
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    for (int64_t i = 0; i < ALL; i++) {
        const int64_t step = steps[axis], k = i / step % dims[axis];
        double sum = 0.0;
        for (int64_t j = reverse ? dims[axis] - 1 : 0; j != k; j += reverse ? -1 : 1)
            sum += (double)x[i + (j - k) * step];
        sum += exclusive ? 0.0 : (double)x[i];
        ck_assert_msg(y[i] == (float)sum, "axis %lld, element %lld: %g, expected %g", (long long)axis,
                      (long long)i, (double)y[i], sum);
    }
    op_end(&r);
}
END_TEST

/* -0 is zero, NaN is not; the last elements are zero, and the last of a row is not. */
START_TEST(elements_that_are_not_zero_are_listed)
{
    static const float floats[] = {0, -0.0f, NAN, 1e-45f, 0, 3, -2, 0, 0};
    static const double doubles[] = {0, -0.0, NAN, 5e-324, 0, 3, -2, 0, 0};
    static const uint16_t halves[] = {0, 0x8000, 0x7e00, 1, 0, 0x4200, 0xc000, 0, 0};
    static const int64_t longs[] = {0, 0, INT64_MIN, 1, 0, 3, -2, 0, 0};
    static const int8_t bytes[] = {0, 0, INT8_MIN, 1, 0, 3, -2, 0, 0};
    static const struct {
        grt_dtype dtype;
        const void *data;
    } kinds[] = {{GRT_DTYPE_FLOAT, floats},    {GRT_DTYPE_DOUBLE, doubles}, {GRT_DTYPE_FLOAT16, halves},
                 {GRT_DTYPE_BFLOAT16, halves}, {GRT_DTYPE_INT64, longs},    {GRT_DTYPE_INT8, bytes}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        op_runner r;
        op_begin(&r, "", "NonZero");
        op_add(&r, kinds[i].dtype, 2, DIMS(3, 3), kinds[i].data);
        op_run_ok(&r, 1);
        expect_dims(&r, 0, 2, DIMS(2, 4));
        static const int64_t expected[] = {0, 1, 1, 2, 2, 0, 2, 0};
        ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
        op_end(&r);
    }
    op_runner r;
    op_begin(&r, "", "NonZero");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(3, 0), floats);
    op_run_ok(&r, 1);
    expect_dims(&r, 0, 2, DIMS(2, 0));
    op_end(&r);
}
END_TEST

/* ---- resize ---- */

/* As ONNX's shape rules and ONNX Runtime have it, a crop does not make the output smaller. */
START_TEST(resize_scales_the_whole)
{
    static const float x[] = {0, 1, 2, 3, 4, 5}, roi[] = {0.25F, 0.75F}, scales[] = {1.5F};
    op_runner r;
    op_begin(&r, "", "Resize");
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(6), x);
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(2), roi);
    op_add(&r, GRT_DTYPE_FLOAT, 1, DIMS(1), scales);
    op_string(&r, "coordinate_transformation_mode", "tf_crop_and_resize");
    op_string(&r, "mode", "linear");
    op_run_ok(&r, 1);
    expect_dims(&r, 0, 1, DIMS(9));
    for (int i = 0; i < 9; i++)
        ck_assert_float_eq_tol(((const float *)r.out[0].t.data)[i], 1.25F + 2.5F * (float)i / 8, 1e-5F);
    op_end(&r);
}
END_TEST

/* ---- einsum ---- */

static void check_einsum_refused(const char *equation, const char *part)
{
    static const float x[6] = {0};
    op_runner r;
    op_begin(&r, "", "Einsum");
    op_string(&r, "equation", equation);
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(2, 3), x);
    expect_refused(&r, 1, part);
}

START_TEST(einsum_reads_equations)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    op_runner r;
    op_begin(&r, "", "Einsum");
    op_string(&r, "equation", "i j, kj -> ki");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(2, 3), x);
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(1, 3), x);
    op_run_ok(&r, 1);
    expect_dims(&r, 0, 2, DIMS(1, 2));
    ck_assert(((const float *)r.out[0].t.data)[0] == 14 && ((const float *)r.out[0].t.data)[1] == 32);
    op_end(&r);
    op_begin(&r, "", "Einsum");
    op_string(&r, "equation", "...a");
    op_add(&r, GRT_DTYPE_FLOAT, 2, DIMS(2, 3), x);
    op_run_ok(&r, 1);
    expect_dims(&r, 0, 2, DIMS(2, 3));
    op_end(&r);
    check_einsum_refused("ij,j->i", "more terms");
    check_einsum_refused("i->i", "rank 2");
    check_einsum_refused("ij->k", "no input has");
    check_einsum_refused("ij->ii", "twice");
    check_einsum_refused("i$->i", "expected letters");
    check_einsum_refused("", "rank 2");
}
END_TEST

/* 16-bit floats are widened to one product, also where operands and result have to be moved: the same numbers
 * as in float32, rounded once. */
START_TEST(einsum_of_16_bit_floats_is_a_product)
{
    enum { B = 2, N = 37, H = 3, D = 9, IN = B * N * H * D, OUT = B * H * N * N };
    const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16};
    static float wide[2][IN], expected[OUT];
    static uint16_t narrow[2][IN];
    for (int which = 0; which < 3; which++) { /* float32 on what the narrow type holds, then that */
        const grt_dtype dtype = dtypes[_i];
        op_runner r;
        for (int i = 0; i < 2 && which == 0; i++) {
            fill_floats(wide[i], IN, 5 + (unsigned)i);
            for (int k = 0; k < IN; k++) {
                narrow[i][k] = dtype == GRT_DTYPE_FLOAT16 ? grt_float_to_half(wide[i][k])
                                                          : grt_float_to_bfloat16(wide[i][k]);
                wide[i][k] = dtype == GRT_DTYPE_FLOAT16 ? grt_half_to_float(narrow[i][k])
                                                        : grt_bfloat16_to_float(narrow[i][k]);
            }
        }
        op_begin(&r, "", "Einsum");
        op_string(&r, "equation", "bqhd,bkhd->bhqk");
        r.threads = which == 2 ? 2 : 1;
        for (int i = 0; i < 2; i++)
            op_add(&r, which ? dtype : GRT_DTYPE_FLOAT, 4, DIMS(B, N, H, D),
                   which ? (const void *)narrow[i] : wide[i]);
        op_run_ok(&r, 1);
        expect_dims(&r, 0, 4, DIMS(B, H, N, N));
        for (int k = 0; k < OUT; k++) {
            const double found = grt_tensor_double(&r.out[0].t, k);
            if (which == 0)
                expected[k] = (float)found;
            else
                ck_assert_double_eq_tol(found, (double)expected[k],
                                        (_i ? 4e-3 : 5e-4) * fabs((double)expected[k]));
        }
        op_end(&r);
    }
}
END_TEST

Suite *suite_test_movement(void)
{
    Suite *suite = suite_create("movement");
    TCase *tc = tcase_create("movement");
    tcase_add_loop_test(tc, reductions_match_their_definitions, 0, 10);
    tcase_add_loop_test(tc, means_of_many_rows_do_not_depend_on_threads, 0, 4);
    tcase_add_test(tc, inputs_of_a_concat_are_interleaved_by_two_threads);
    tcase_add_test(tc, empty_sets_have_their_neutral_element);
    tcase_add_test(tc, extremes_of_infinities_are_infinite);
    tcase_add_loop_test(tc, extremes_of_columns_keep_nan, 0, 4);
    tcase_add_test(tc, long_sums_stay_exact_enough);
    tcase_add_test(tc, single_elements_of_rows);
    tcase_add_test(tc, indices_out_of_range_are_refused);
    tcase_add_test(tc, scatter_keeps_order_and_reduces);
    tcase_add_test(tc, pads_in_every_mode);
    tcase_add_test(tc, borders_of_one_dim_are_filled);
    tcase_add_test(tc, slices_backwards_and_to_nothing);
    tcase_add_test(tc, order_is_stable_and_knows_odd_numbers);
    tcase_add_loop_test(tc, running_sums_match_their_definition, 0, 24);
    tcase_add_test(tc, elements_that_are_not_zero_are_listed);
    tcase_add_test(tc, resize_scales_the_whole);
    tcase_add_test(tc, einsum_reads_equations);
    tcase_add_loop_test(tc, einsum_of_16_bit_floats_is_a_product, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
