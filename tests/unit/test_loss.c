/* SPDX-License-Identifier: Apache-2.0 */
/* Classification losses against their definition. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

enum { N = 3, C = 5, D = 4, IGNORED = -7 };
static const int64_t x_dims[] = {N, C, D}, target_dims[] = {N, D}, weight_dims[] = {C};

static double log_prob(const float *x, int64_t n, int64_t c, int64_t d)
{
    double sum = 0;
    for (int64_t k = 0; k < C; k++)
        sum += exp((double)x[(n * C + k) * D + d]);
    return (double)x[(n * C + c) * D + d] - log(sum);
}

static void check_loss(bool softmax, const char *reduction, bool weighted, bool ignores)
{
    float x[N * C * D], weights[C];
    int64_t target[N * D];
    double each[N * D], sum = 0, total = 0;
    fill_floats(x, N * C * D, 1);
    for (int i = 0; i < C; i++)
        weights[i] = 0.5f + (float)i;
    for (int64_t i = 0; i < N * D; i++) {
        int64_t n = i / D, d = i % D;
        target[i] = ignores && i % 3 == 0 ? IGNORED : (i * 7) % C;
        double weight = target[i] == IGNORED ? 0 : weighted ? (double)weights[target[i]] : 1;
        each[i] = weight == 0 ? 0
                              : -weight * (softmax ? log_prob(x, n, target[i], d)
                                                   : (double)x[(n * C + target[i]) * D + d]);
        sum += each[i];
        total += weight;
    }
    op_runner r;
    op_begin(&r, "", softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss");
    op_string(&r, "reduction", reduction);
    if (ignores)
        op_int(&r, "ignore_index", IGNORED);
    op_add(&r, GRT_DTYPE_FLOAT, 3, x_dims, x);
    op_add(&r, GRT_DTYPE_INT64, 2, target_dims, target);
    if (weighted)
        op_add(&r, GRT_DTYPE_FLOAT, 1, weight_dims, weights);
    op_run_ok(&r, softmax ? 2 : 1);
    const float *out = r.out[0].t.data;
    if (!strcmp(reduction, "none"))
        for (int64_t i = 0; i < N * D; i++)
            ck_assert_double_eq_tol((double)out[i], each[i], 1e-5);
    else
        ck_assert_double_eq_tol((double)out[0], !strcmp(reduction, "sum") ? sum : sum / total, 1e-5);
    for (int64_t i = 0; softmax && i < N * C * D; i++)
        ck_assert_double_eq_tol((double)((const float *)r.out[1].t.data)[i],
                                log_prob(x, i / (C * D), i / D % C, i % D), 1e-5);
    op_end(&r);
}

START_TEST(test_matches_definition)
{
    static const char *const reductions[] = {"none", "mean", "sum"};
    for (int i = 0; i < 24; i++)
        check_loss(i & 1, reductions[i >> 3], i & 2, i & 4);
}
END_TEST

/* Classes that are neighbours, more than a block of them. */
START_TEST(test_rows_of_many_classes)
{
    enum { ROWS = 3, CLASSES = 1100 };
    static float x[ROWS * CLASSES];
    const int64_t target[ROWS] = {0, 1099, 513};
    fill_floats(x, ROWS * CLASSES, 3);
    for (int i = 0; i < ROWS * CLASSES; i++)
        x[i] *= i < CLASSES ? 1.0f : 30.0f;
    x[5] = -INFINITY;
    op_runner r;
    op_begin(&r, "", "SoftmaxCrossEntropyLoss");
    op_string(&r, "reduction", "none");
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){ROWS, CLASSES}, x);
    op_add(&r, GRT_DTYPE_INT64, 1, (const int64_t[]){ROWS}, target);
    op_run_ok(&r, 1);
    for (int i = 0; i < ROWS; i++) {
        const float *row = x + i * CLASSES;
        double sum = 0, top = -INFINITY;
        for (int c = 0; c < CLASSES; c++)
            top = fmax(top, (double)row[c]);
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)row[c] - top);
        const double wanted = top + log(sum) - (double)row[target[i]];
        ck_assert_double_eq_tol((double)((const float *)r.out[0].t.data)[i], wanted,
                                1e-6 * fmax(1, fabs(wanted)));
    }
    op_end(&r);
}
END_TEST

START_TEST(test_refuses_unknown_class)
{
    float x[C] = {0};
    int32_t target[] = {C};
    op_runner r;
    op_begin(&r, "", "NegativeLogLikelihoodLoss");
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, C}, x);
    op_add(&r, GRT_DTYPE_INT32, 1, (const int64_t[]){1}, target);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "class 5"));
    op_end(&r);
}
END_TEST

START_TEST(test_refuses_misshaped_target)
{
    float x[C] = {0};
    int32_t target[] = {0, 0};
    op_runner r;
    op_begin(&r, "", "SoftmaxCrossEntropyLoss");
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, C}, x);
    op_add(&r, GRT_DTYPE_INT32, 1, (const int64_t[]){2}, target);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_loss, NULL, NULL, test_matches_definition, test_rows_of_many_classes,
           test_refuses_unknown_class, test_refuses_misshaped_target)
