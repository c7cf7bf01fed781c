/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of all small lengths, STFT, windows. */
#include "backends/cpu/fft.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_LENGTH = 70 };

START_TEST(test_fft_matches_definition)
{
    int64_t n = _i;
    float seed[2 * MAX_LENGTH];
    double x[2 * MAX_LENGTH];
    cpu_fft *fft;
    fill_floats(seed, 2 * n, (uint32_t)n);
    for (int64_t i = 0; i < 2 * n; i++)
        x[i] = (double)seed[i];
    ck_assert_int_eq(cpu_fft_create(n, NULL, &fft), GRT_OK);
    cpu_fft_fill(fft);
    double *scratch = malloc((size_t)(cpu_fft_scratch(fft) + 1) * sizeof *scratch);
    cpu_fft_run(fft, x, false, scratch);
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0; i < n; i++) {
            double angle = -2 * M_PI * (double)(i * k % n) / (double)n;
            re += (double)seed[2 * i] * cos(angle) - (double)seed[2 * i + 1] * sin(angle);
            im += (double)seed[2 * i] * sin(angle) + (double)seed[2 * i + 1] * cos(angle);
        }
        ck_assert_double_eq_tol(x[2 * k], re, 1e-12);
        ck_assert_double_eq_tol(x[2 * k + 1], im, 1e-12);
    }
    cpu_fft_run(fft, x, true, scratch);
    for (int64_t i = 0; i < 2 * n; i++)
        ck_assert_double_eq_tol(x[i], (double)seed[i], 1e-12);
    free(scratch);
    cpu_fft_release(fft);
}
END_TEST

/* Real signal to half a spectrum and back, along each signal axis. */
START_TEST(test_one_sided_round_trip)
{
    float x[3 * 7 * 4];
    const int64_t dims[] = {3, 7, 4, 1};
    fill_floats(x, 84, 1);
    for (int64_t axis = 0; axis < 3; axis++) {
        op_runner there, back;
        op_begin(&there, "", "DFT");
        op_int(&there, "onesided", 1);
        op_add(&there, GRT_DTYPE_FLOAT, 4, dims, x);
        op_omit(&there);
        op_add(&there, GRT_DTYPE_INT64, 0, NULL, &axis);
        op_run_ok(&there, 1);
        ck_assert_int_eq(there.out[0].t.dims[axis], dims[axis] / 2 + 1);
        op_begin(&back, "", "DFT");
        op_int(&back, "onesided", 1);
        op_int(&back, "inverse", 1);
        op_add_value(&back, &there.out[0]);
        op_add(&back, GRT_DTYPE_INT64, 0, NULL, &dims[axis]);
        op_add(&back, GRT_DTYPE_INT64, 0, NULL, &axis);
        op_run_ok(&back, 1);
        ck_assert(grt_dims_equal(back.out[0].t.dims, back.out[0].t.rank, dims, 4));
        for (int64_t i = 0; i < 84; i++)
            ck_assert_float_eq_tol(((const float *)back.out[0].t.data)[i], x[i], 1e-6f);
        op_end(&there);
        op_end(&back);
    }
}
END_TEST

START_TEST(test_stft_frames)
{
    float x[20];
    int64_t step = 3, length = 8;
    for (int i = 0; i < 20; i++)
        x[i] = 1;
    op_runner r;
    op_begin(&r, "", "STFT");
    op_add(&r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){1, 20, 1}, x);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &step);
    op_omit(&r);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &length);
    op_run_ok(&r, 1);
    ck_assert(grt_dims_equal(r.out[0].t.dims, 4, (const int64_t[]){1, 5, 5, 2}, 4));
    for (int64_t i = 0; i < 50; i++) /* a constant has all its power at frequency 0 */
        ck_assert_float_eq_tol(((const float *)r.out[0].t.data)[i], i % 10 == 0 ? 8.0f : 0.0f, 1e-6f);
    op_end(&r);
}
END_TEST

START_TEST(test_stft_refuses_long_frames)
{
    float x[4] = {0};
    int64_t step = 1, length = 5;
    op_runner r;
    op_begin(&r, "", "STFT");
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 4}, x);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &step);
    op_omit(&r);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &length);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}
END_TEST

START_TEST(test_windows)
{
    int64_t size = 4, one = 1;
    op_runner r;
    op_begin(&r, "", "HannWindow");
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &size);
    op_run_ok(&r, 1);
    static const float expected[] = {0, 0.5f, 1, 0.5f};
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq_tol(((const float *)r.out[0].t.data)[i], expected[i], 1e-6f);
    op_end(&r);
    op_begin(&r, "", "BlackmanWindow");
    op_int(&r, "periodic", 0);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &one);
    op_run_ok(&r, 1);
    ck_assert_float_eq_tol(*(const float *)r.out[0].t.data, 1, 1e-6f);
    op_end(&r);
}
END_TEST

static void random_numbers(const char *op, bool seeded, op_runner *r)
{
    static const int64_t shape[] = {100000};
    op_begin(r, "", op);
    if (seeded)
        op_float(r, "seed", 3);
    op_ints(r, "shape", shape, 1);
    op_run_ok(r, 1);
}

START_TEST(test_random_moments)
{
    static const struct {
        const char *op;
        double mean, variance;
    } cases[] = {{"RandomUniform", 0.5, 1.0 / 12}, {"RandomNormal", 0, 1}};
    for (int i = 0; i < 2; i++) {
        op_runner a, b, c;
        double sum = 0, squares = 0;
        random_numbers(cases[i].op, true, &a);
        random_numbers(cases[i].op, true, &b);
        random_numbers(cases[i].op, false, &c);
        for (int64_t k = 0; k < 100000; k++) {
            double x = (double)((const float *)a.out[0].t.data)[k];
            sum += x;
            squares += x * x;
        }
        double mean = sum / 1e5;
        ck_assert_double_eq_tol(mean, cases[i].mean, 0.02);
        ck_assert_double_eq_tol(squares / 1e5 - mean * mean, cases[i].variance, 0.02);
        ck_assert_mem_eq(a.out[0].t.data, b.out[0].t.data, 400000);
        ck_assert_mem_ne(a.out[0].t.data, c.out[0].t.data, 400000);
        op_end(&a);
        op_end(&b);
        op_end(&c);
    }
}
END_TEST

START_TEST(test_multinomial_frequencies)
{
    const float logits[] = {logf(1), logf(3), -INFINITY};
    int64_t counts[3] = {0};
    op_runner r;
    op_begin(&r, "", "Multinomial");
    op_int(&r, "sample_size", 40000);
    op_float(&r, "seed", 1);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 3}, logits);
    op_run_ok(&r, 1);
    for (int i = 0; i < 40000; i++)
        counts[((const int32_t *)r.out[0].t.data)[i]]++;
    ck_assert_int_eq(counts[2], 0);
    ck_assert_int_gt(counts[0], 9500);
    ck_assert_int_lt(counts[0], 10500);
    op_end(&r);
}
END_TEST

Suite *suite_test_signal(void)
{
    Suite *suite = suite_create("signal");
    TCase *tests = tcase_create("signal");
    tcase_add_loop_test(tests, test_fft_matches_definition, 1, MAX_LENGTH);
    tcase_add_test(tests, test_one_sided_round_trip);
    tcase_add_test(tests, test_stft_frames);
    tcase_add_test(tests, test_stft_refuses_long_frames);
    tcase_add_test(tests, test_windows);
    tcase_add_test(tests, test_random_moments);
    tcase_add_test(tests, test_multinomial_frequencies);
    suite_add_tcase(suite, tests);
    return suite;
}
