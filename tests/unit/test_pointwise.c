/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise ops, evaluated one at a time and compared with naive loops in double. */
#include "tests/unit/evaluate.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions of one float ---- */

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

/* ---- broadcasting ---- */

/* A shape that broadcasts to `dims`: leading dims left out, others turned to 1, by the bits of `choice`. */
static grt_tensor broadcastable(const int64_t *dims, int32_t rank, unsigned choice, grt_dtype dtype,
                                void *data)
{
    int32_t skip = (int32_t)(choice % 3) < rank ? (int32_t)(choice % 3) : 0;
    grt_tensor t = {.dtype = dtype, .rank = rank - skip, .data = data};
    choice /= 3;
    for (int32_t i = 0; i < t.rank; i++)
        t.dims[i] = choice >> i & 1 ? 1 : dims[skip + i];
    return t;
}

static int64_t source_index(const grt_tensor *t, const grt_tensor *out, int64_t at)
{
    int64_t index = 0, stride = 1;
    for (int32_t i = 1; i <= out->rank; i++) {
        int64_t k = at % out->dims[out->rank - i];
        at /= out->dims[out->rank - i];
        if (i <= t->rank) {
            index += (t->dims[t->rank - i] == 1 ? 0 : k) * stride;
            stride *= t->dims[t->rank - i];
        }
    }
    return index;
}

static const struct {
    int32_t rank;
    int64_t dims[11];
} shapes[] = {
    {0, {0}},
    {1, {1}},
    {1, {5000}},
    {2, {70, 33}},
    {2, {64, 3}},
    {3, {7, 1, 40}},
    {4, {2, 8, 5, 5}},
    {4, {3, 1, 4, 64}},
    {3, {4, 0, 5}},
    {10, {2, 1, 2, 3, 1, 2, 2, 1, 3, 2}},
    {11, {1, 1, 2, 1, 2, 2, 1, 3, 1, 1, 37}},
    {2, {300, 200}},
};

START_TEST(operands_broadcast_like_numpy)
{
    static float a[70000], b[70000];
    static int32_t ia[70000], ib[70000];
    for (int i = 0; i < 70000; i++) {
        ia[i] = i * 37 % 1001 - 500;
        ib[i] = i * 53 % 997 - 480;
        a[i] = (float)ia[i] / 8;
        b[i] = (float)ib[i] / 16;
    }
    for (unsigned choice = 0; choice < 72; choice++) {
        bool whole = choice & 1;
        grt_dtype dtype = whole ? GRT_DTYPE_INT32 : GRT_DTYPE_FLOAT;
        grt_tensor in[2] = {broadcastable(shapes[_i].dims, shapes[_i].rank, choice * 7 % 24, dtype,
                                          whole ? (void *)ia : (void *)a),
                            broadcastable(shapes[_i].dims, shapes[_i].rank, choice * 11 % 27, dtype,
                                          whole ? (void *)ib : (void *)b)};
        grt_value out;
        evaluate_ok("Sub", in, 2, &out);
        int64_t n = grt_tensor_elements(&out.t);
        for (int64_t i = 0; i < n; i++) {
            int64_t ka = source_index(&in[0], &out.t, i), kb = source_index(&in[1], &out.t, i);
            if (whole)
                ck_assert_int_eq(((int32_t *)out.t.data)[i], ia[ka] - ib[kb]);
            else
                ck_assert(((float *)out.t.data)[i] == a[ka] - b[kb]);
        }
        grt_value_clear(&out);
    }
}
END_TEST

/* ---- integers ---- */

START_TEST(integers_wrap_and_divide_like_onnx)
{
    const int8_t a[] = {-128, 127, -7, 7, 100, 0}, b[] = {-1, 2, 3, -3, 3, 0};
    static const struct {
        const char *op;
        int8_t expected[6];
    } cases[] = {
        {"Add", {127, -127, -4, 4, 103, 0}},  {"Sub", {-127, 125, -10, 10, 97, 0}},
        {"Mul", {-128, -2, -21, -21, 44, 0}}, {"Div", {-128, 63, -2, -2, 33, 0}},
        {"Mod", {0, 1, 2, -2, 1, 0}},         {"Max", {-1, 127, 3, 7, 100, 0}},
    };
    grt_tensor in[2] = {vector_of(GRT_DTYPE_INT8, 6, a), vector_of(GRT_DTYPE_INT8, 6, b)};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        grt_value out;
        evaluate_ok(cases[c].op, in, 2, &out);
        for (int i = 0; i < 6; i++)
            ck_assert_msg(((int8_t *)out.t.data)[i] == cases[c].expected[i], "%s(%d, %d) is %d, expected %d",
                          cases[c].op, a[i], b[i], ((int8_t *)out.t.data)[i], cases[c].expected[i]);
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(large_unsigned_integers_are_exact)
{
    const uint64_t a[] = {UINT64_MAX, UINT64_C(1) << 63, 5}, b[] = {1, (UINT64_C(1) << 63) + 1, 7};
    grt_tensor in[2] = {vector_of(GRT_DTYPE_UINT64, 3, a), vector_of(GRT_DTYPE_UINT64, 3, b)};
    grt_value out;
    evaluate_ok("Less", in, 2, &out);
    const uint8_t *less = out.t.data;
    ck_assert(!less[0] && less[1] && less[2]);
    grt_value_clear(&out);
    evaluate_ok("Max", in, 2, &out);
    ck_assert(((uint64_t *)out.t.data)[0] == UINT64_MAX && ((uint64_t *)out.t.data)[1] == b[1]);
    grt_value_clear(&out);
}
END_TEST

START_TEST(any_number_of_operands_is_folded)
{
    const float x[] = {1, -4, NAN, 9}, y[] = {3, 2, 1, -8}, z = 0.5f;
    grt_tensor in[3] = {vector_of(GRT_DTYPE_FLOAT, 4, x),
                        vector_of(GRT_DTYPE_FLOAT, 4, y),
                        {.dtype = GRT_DTYPE_FLOAT, .data = (void *)&z}};
    grt_value out;
    evaluate_ok("Max", in, 3, &out);
    const float *m = out.t.data;
    ck_assert(m[0] == 3 && m[1] == 2 && isnan(m[2]) && m[3] == 9);
    grt_value_clear(&out);
    evaluate_ok("Mean", in, 3, &out);
    ck_assert(((float *)out.t.data)[0] == 1.5f && ((float *)out.t.data)[1] == -0.5f);
    grt_value_clear(&out);
    evaluate_ok("Sum", in, 1, &out);
    ck_assert(((float *)out.t.data)[3] == 9);
    grt_value_clear(&out);
}
END_TEST

START_TEST(clip_takes_either_bound)
{
    const int32_t x[] = {-5, 0, 5}, low = -1, high = 3;
    grt_tensor in[3] = {vector_of(GRT_DTYPE_INT32, 3, x),
                        {.dtype = GRT_DTYPE_INT32, .data = (void *)&low},
                        {.dtype = GRT_DTYPE_INT32, .data = (void *)&high}};
    grt_value out;
    evaluate_ok("Clip", in, 3, &out);
    ck_assert_mem_eq(out.t.data, ((int32_t[]){-1, 0, 3}), 12);
    grt_value_clear(&out);
    evaluate_ok("Clip", in, 1, &out);
    ck_assert_mem_eq(out.t.data, x, 12);
    grt_value_clear(&out);
    in[1] = (grt_tensor){0};
    evaluate_ok("Clip", in, 3, &out);
    ck_assert_mem_eq(out.t.data, ((int32_t[]){-5, 0, 3}), 12);
    grt_value_clear(&out);
}
END_TEST

Suite *suite_test_pointwise(void)
{
    Suite *suite = suite_create("pointwise");
    TCase *tc = tcase_create("pointwise");
    tcase_add_loop_test(tc, functions_are_accurate, 0, (int)(sizeof functions / sizeof *functions));
    tcase_add_test(tc, special_values_come_out_as_they_should);
    tcase_add_test(tc, sines_of_small_angles_are_the_angles);
    tcase_add_test(tc, arcs_end_at_1);
    tcase_add_loop_test(tc, arcs_are_within_2_units, 0, 3);
    tcase_add_loop_test(tc, operands_broadcast_like_numpy, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tc, integers_wrap_and_divide_like_onnx);
    tcase_add_test(tc, large_unsigned_integers_are_exact);
    tcase_add_test(tc, any_number_of_operands_is_folded);
    tcase_add_test(tc, clip_takes_either_bound);
    suite_add_tcase(suite, tc);
    return suite;
}
