/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one float, compared with the C library's of doubles. */
#include "backends/cpu/isa.h"
#include "tests/unit/evaluate.h"

#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double d_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double d_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2.0));
}
static double d_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double d_mish(double x)
{
    return x * tanh(d_softplus(x));
}
static double d_elu(double x)
{
    return x < 0 ? expm1(x) : x;
}
static double d_relu(double x)
{
    return x < 0 ? 0 : x;
}

static const struct {
    const char *op;
    double (*f)(double x);
    double low, high, tolerance; /* relative */
} functions[] = {
    {"Exp", exp, -103, 88.7, 3e-7},
    {"Log", log, 1e-40, 1e30, 2e-7},
    {"Log", log, 0.5, 2, 4e-7},
    {"Tanh", tanh, -20, 20, 3e-7},
    {"Sigmoid", d_sigmoid, -80, 80, 4e-7},
    {"Erf", erf, -7, 7, 4e-7},
    {"Gelu", d_gelu, -5, 9, 3e-6},
    {"Softplus", d_softplus, -80, 90, 4e-7},
    {"Mish", d_mish, -30, 40, 6e-7},
    {"Elu", d_elu, -30, 5, 3e-7},
    {"Relu", d_relu, -5, 5, 0},
    {"Sin", sin, -100, 100, 2e-7},
    {"Cos", cos, -100, 100, 2e-7},
    {"Sin", sin, -1e8, 1e8, 1e-7},
    {"Cos", cos, -1e8, 1e8, 1e-7},
    {"Sin", sin, 1, 3e38, 2e-7}, /* the C library's */
    {"Cos", cos, 1, 3e38, 2e-7},
    {"Sqrt", sqrt, 0, 1e6, 2e-7},
    {"Floor", floor, -9, 9, 0},
    {"Ceil", ceil, -9, 9, 0},
    {"Round", rint, -9, 9, 0},
    {"Atan", atan, -50, 50, 2e-7},
    {"Atan", atan, -1.5, 1.5, 2e-7},
    {"Atan", atan, -3e38, 3e38, 2e-7},
    {"Asin", asin, -1, 1, 2e-7},
    {"Asin", asin, -1e-3, 1e-3, 2e-7},
    {"Acos", acos, -1, 1, 2e-7},
    {"Acos", acos, 0.999, 1, 2e-7},
};

START_TEST(functions_are_accurate)
{
    enum { N = 5003 };
    static float x[N];
    double low = functions[_i].low, high = functions[_i].high;
    for (int i = 0; i < N; i++)
        x[i] = (float)(low + (high - low) * i / (N - 1));
    grt_tensor in = vector_of(GRT_DTYPE_FLOAT, N, x);
    grt_value out;
    evaluate_ok(functions[_i].op, &in, 1, &out);
    const float *y = out.t.data;
    for (int i = 0; i < N; i++) {
        double expected = functions[_i].f((double)x[i]);
        double allowed = fabs(expected) * functions[_i].tolerance + 3e-45; /* the smallest subnormals */
        ck_assert_msg(fabs((double)y[i] - expected) <= allowed, "%s(%.9g) is %.9g, expected %.9g",
                      functions[_i].op, (double)x[i], (double)y[i], expected);
    }
    grt_value_clear(&out);
}
END_TEST

START_TEST(special_values_come_out_as_they_should)
{
    const float x[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    static const struct {
        const char *op;
        float expected[5];
    } cases[] = {
        {"Exp", {NAN, INFINITY, 0, 1, 1}},
        {"Log", {NAN, INFINITY, NAN, -INFINITY, -INFINITY}},
        {"Tanh", {NAN, 1, -1, 0, -0.0f}},
        {"Sigmoid", {NAN, 1, 0, 0.5f, 0.5f}},
        {"Erf", {NAN, 1, -1, 0, -0.0f}},
        {"Relu", {NAN, INFINITY, 0, 0, -0.0f}},
        {"Softplus", {NAN, INFINITY, 0, 0.693147182f, 0.693147182f}},
        {"Elu", {NAN, INFINITY, -1, 0, -0.0f}},
        {"Gelu", {NAN, INFINITY, 0, 0, -0.0f}},
        {"Sign", {NAN, 1, -1, 0, -0.0f}},
        {"Sin", {NAN, NAN, NAN, 0, -0.0f}},
        {"Cos", {NAN, NAN, NAN, 1, 1}},
        {"Asin", {NAN, NAN, NAN, 0, -0.0f}},
        {"Acos", {NAN, NAN, NAN, 1.57079637f, 1.57079637f}},
        {"Atan", {NAN, 1.57079637f, -1.57079637f, 0, -0.0f}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        grt_tensor in = vector_of(GRT_DTYPE_FLOAT, 5, x);
        grt_value out;
        evaluate_ok(cases[c].op, &in, 1, &out);
        for (int i = 0; i < 5; i++) {
            float y = ((const float *)out.t.data)[i], e = cases[c].expected[i];
            ck_assert_msg((isnan(e) && isnan(y)) || y == e, "%s(%g) is %g, expected %g", cases[c].op,
                          (double)x[i], (double)y, (double)e);
        }
        grt_value_clear(&out);
    }
}
END_TEST

/* Some processors take hundreds of cycles for each vector in which a value underflows. */
START_TEST(values_far_out_do_not_underflow)
{
    static const struct {
        const char *op;
        cpu_isa least;
        float x, expected;
    } cases[] = {
        {"Sigmoid", CPU_ISA_AVX2, 200, 1},  {"Sigmoid", CPU_ISA_AVX2, 88, 1},
        {"Sigmoid", CPU_ISA_AVX2, -200, 0}, {"Swish", CPU_ISA_AVX2, 95, 95},
        {"Exp", CPU_ISA_AVX2, -200, 0},     {"Exp", CPU_ISA_AVX2, -INFINITY, 0},
        {"Exp", CPU_ISA_COUNT, -110, 0},    {"Exp", CPU_ISA_COUNT, -175.9f, 0}, /* these do */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float x[32];
        for (int i = 0; i < 32; i++)
            x[i] = cases[c].x;
        grt_tensor in = vector_of(GRT_DTYPE_FLOAT, 32, x);
        grt_value out;
        feclearexcept(FE_ALL_EXCEPT);
        evaluate_ok(cases[c].op, &in, 1, &out);
        const bool underflows = fetestexcept(FE_UNDERFLOW);
        const float y = ((const float *)out.t.data)[31];
        ck_assert_msg(y == cases[c].expected, "%s(%g) is %g", cases[c].op, (double)cases[c].x, (double)y);
        ck_assert_msg(cpu_isa_best() < cases[c].least || !underflows, "%s(%g) underflows", cases[c].op,
                      (double)cases[c].x);
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(sines_of_small_angles_are_the_angles)
{
    static const char *const ops[] = {"Sin", "Asin", "Atan"};
    const float x[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 1e-39f, -1e-30f};
    enum { N = sizeof x / sizeof *x };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        grt_tensor in = vector_of(GRT_DTYPE_FLOAT, N, x);
        grt_value out;
        evaluate_ok(ops[i], &in, 1, &out);
        ck_assert_mem_eq(out.t.data, x, sizeof x);
        grt_value_clear(&out);
    }
}
END_TEST

/* The ends of the domain are exact; beyond them there is no value. */
START_TEST(arcs_end_at_1)
{
    static const struct {
        const char *op;
        float expected[6];
    } cases[] = {
        {"Asin", {1.57079637f, -1.57079637f, NAN, NAN, NAN, NAN}},
        {"Acos", {0, 3.14159274f, NAN, NAN, NAN, NAN}},
    };
    const float x[] = {1.0f, -1.0f, 1.00000012f, -1.00000012f, 3e38f, -2.0f};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        grt_tensor in = vector_of(GRT_DTYPE_FLOAT, 6, x);
        grt_value out;
        evaluate_ok(cases[c].op, &in, 1, &out);
        for (int i = 0; i < 6; i++) {
            float y = ((const float *)out.t.data)[i], e = cases[c].expected[i];
            ck_assert_msg((isnan(e) && isnan(y)) || y == e, "%s(%.9g) is %.9g, expected %.9g", cases[c].op,
                          (double)x[i], (double)y, (double)e);
        }
        grt_value_clear(&out);
    }
}
END_TEST

/* Within 2 units in the last place of the C library's double, over a sample of all floats. */
START_TEST(arcs_are_within_2_units)
{
    static const struct {
        const char *op;
        double (*f)(double x);
    } arcs[] = {{"Asin", asin}, {"Acos", acos}, {"Atan", atan}};
    enum { N = 1 << 18, STEP = 16381 };
    float *x = malloc(N * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t bits = i * STEP;
        memcpy(&x[i], &bits, sizeof bits);
    }
    grt_tensor in = vector_of(GRT_DTYPE_FLOAT, N, x);
    grt_value out;
    evaluate_ok(arcs[_i].op, &in, 1, &out);
    for (int i = 0; i < N; i++) {
        const float y = ((const float *)out.t.data)[i];
        const double e = arcs[_i].f((double)x[i]);
        const float near = fabsf((float)e), unit = near - nextafterf(near, 0.0f);
        ck_assert_msg(isnan(e) ? isnan(y) : fabs((double)y - e) <= 2.0 * (double)unit,
                      "%s(%.9g) is %.9g, expected %.9g", arcs[_i].op, (double)x[i], (double)y, e);
    }
    grt_value_clear(&out);
    free(x);
}
END_TEST

Suite *suite_test_pointwise_functions(void)
{
    Suite *suite = suite_create("pointwise functions");
    TCase *tc = tcase_create("pointwise functions");
    tcase_add_loop_test(tc, functions_are_accurate, 0, (int)(sizeof functions / sizeof *functions));
    tcase_add_test(tc, special_values_come_out_as_they_should);
    tcase_add_test(tc, values_far_out_do_not_underflow);
    tcase_add_test(tc, sines_of_small_angles_are_the_angles);
    tcase_add_test(tc, arcs_end_at_1);
    tcase_add_loop_test(tc, arcs_are_within_2_units, 0, 3);
    suite_add_tcase(suite, tc);
    return suite;
}
