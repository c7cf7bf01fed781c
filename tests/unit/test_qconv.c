/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QConv, QMatMul, QAdd, QMul and QTable against ConvInteger and MatMulInteger, or their definition.
 */
#include "backends/shared/quantised.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { W_INPUT = 3 };

static void fill_bytes(uint8_t *out, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (uint8_t)(seed >> 24);
    }
}

typedef struct conv_case {
    int32_t spatial;
    int64_t in[3], kernel[3], strides[3], dilations[3], pads[6];
    int64_t batch, channels, filters, groups;
} conv_case;

static const conv_case cases[] = {
    {2, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2, 8, 5, 1},
    {2, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2, 20, 37, 1},
    {2, {8, 17}, {3, 3}, {1, 1}, {1, 1}, {0, 2, 1, 0}, 1, 64, 20, 1},
    {2, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, 3000, 4, 1}, /* sums beyond 30 bits, perhaps */
    {2, {12, 13}, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, 1, 3, 33, 1},
    {2, {6, 6}, {1, 1}, {1, 1}, {1, 1}, {0}, 2, 12, 40, 1},
    {2, {6, 7}, {1, 1}, {2, 2}, {1, 1}, {0}, 1, 10, 16, 1},
    {2, {6, 7}, {1, 1}, {1, 1}, {1, 1}, {0}, 1, 262, 256, 1}, /* by halves, where bytes are widened */
    {2, {13, 12}, {1, 1}, {2, 2}, {1, 1}, {0}, 1, 259, 255, 1},
    {2, {8, 9}, {3, 2}, {1, 2}, {2, 1}, {2, 0, 1, 3}, 1, 12, 18, 3},
    {2, {7, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2, 45, 45, 45},
    {2, {7, 8}, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 1, 64, 64, 64},
    {1, {20}, {5}, {2}, {1}, {2, 2}, 2, 7, 9, 1},
    {3, {4, 5, 6}, {2, 3, 1}, {1, 1, 2}, {1, 1, 1}, {0, 1, 0, 1, 1, 0}, 1, 4, 6, 2},
};

static int64_t dims_of_x(const conv_case *c, bool last, int64_t *dims)
{
    dims[0] = c->batch;
    dims[last ? c->spatial + 1 : 1] = c->channels;
    int64_t n = c->batch * c->channels;
    for (int32_t i = 0; i < c->spatial; i++) {
        dims[i + (last ? 1 : 2)] = c->in[i];
        n *= c->in[i];
    }
    return n;
}

static void set_window(op_runner *r, const conv_case *c)
{
    op_ints(r, "strides", c->strides, (size_t)c->spatial);
    op_ints(r, "dilations", c->dilations, (size_t)c->spatial);
    op_ints(r, "pads", c->pads, 2 * (size_t)c->spatial);
    op_int(r, "group", c->groups);
}

/* images x rows x cols becomes images x cols x rows. */
static void turn(const void *from, int64_t images, int64_t rows, int64_t cols, size_t size, void *to)
{
    for (int64_t b = 0; b < images; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                memcpy((char *)to + (size_t)((b * cols + j) * rows + i) * size,
                       (const char *)from + (size_t)((b * rows + i) * cols + j) * size, size);
}

static void check_conv(const conv_case *c, grt_dtype x_type, grt_dtype w_type, bool last, int32_t threads)
{
    int64_t x_dims[5], w_dims[5] = {c->filters, c->channels / c->groups};
    const int64_t n_x = dims_of_x(c, false, x_dims);
    int64_t n_w = c->filters * w_dims[1];
    for (int32_t i = 0; i < c->spatial; i++)
        n_w *= w_dims[2 + i] = c->kernel[i];
    uint8_t *x = malloc((size_t)n_x), *turned = malloc((size_t)n_x), *w = malloc((size_t)n_w), x_zero = 77,
            *w_zero = malloc((size_t)c->filters);
    const float one = 1;
    fill_bytes(x, n_x, 1);
    fill_bytes(w, n_w, 2);
    fill_bytes(w_zero, c->filters, 3);
    op_runner exact, r;
    op_begin(&exact, "", "ConvInteger");
    set_window(&exact, c);
    op_add(&exact, x_type, c->spatial + 2, x_dims, x);
    op_add(&exact, w_type, c->spatial + 2, w_dims, w);
    op_add(&exact, x_type, 0, NULL, &x_zero);
    op_add(&exact, w_type, 1, &c->filters, w_zero);
    op_run_ok(&exact, 1);
    op_begin(&r, "graphrt", "QConv");
    set_window(&r, c);
    r.threads = threads;
    turn(x, c->batch, c->channels, n_x / c->batch / c->channels, 1, turned);
    if (last)
        op_string(&r, "layout", "NHWC");
    dims_of_x(c, last, x_dims);
    op_add(&r, x_type, c->spatial + 2, x_dims, last ? turned : x);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, x_type, 0, NULL, &x_zero);
    op_add(&r, w_type, c->spatial + 2, w_dims, w);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, w_type, 1, &c->filters, w_zero);
    r.constants = 1u << W_INPUT | 1u << (W_INPUT + 2);
    op_run_ok(&r, 1);
    const grt_tensor *wanted = &exact.out[0].t, *found = &r.out[0].t;
    const int64_t n = grt_tensor_elements(wanted);
    ck_assert_int_eq(grt_tensor_elements(found), n);
    int32_t *sums = malloc((size_t)n * sizeof *sums);
    memcpy(sums, wanted->data, (size_t)n * sizeof *sums);
    if (last)
        turn(wanted->data, c->batch, c->filters, n / c->batch / c->filters, sizeof *sums, sums);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(((const float *)found->data)[i] == (float)sums[i],
                      "case %d, channels %s, element %lld: %g, expected %d", (int)(c - cases),
                      last ? "last" : "second", (long long)i, (double)((const float *)found->data)[i],
                      sums[i]);
    op_end(&exact);
    op_end(&r);
    void *const all[] = {x, turned, w, w_zero, sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

START_TEST(convolutions_are_those_of_integers)
{
    static const grt_dtype types[] = {GRT_DTYPE_UINT8, GRT_DTYPE_INT8};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 8; k++)
            check_conv(&cases[i], types[k % 2], types[k / 2 % 2], k / 4 != 0, 1 + k % 3);
}
END_TEST

typedef struct matmul_case {
    int32_t rank_a, rank_b;
    int64_t a[4], b[4];
    bool trans_b, constant;
} matmul_case;

static int64_t count(const int64_t *dims, int32_t rank)
{
    return grt_dims_product(dims, 0, rank);
}

static void check_matmul(const matmul_case *c, grt_dtype a_type, grt_dtype b_type)
{
    const float one = 1;
    const uint8_t a_zero = 5, b_zero = 9;
    const int64_t n_a = count(c->a, c->rank_a), n_b = count(c->b, c->rank_b);
    uint8_t *a = malloc((size_t)n_a), *b = malloc((size_t)n_b), *turned = malloc((size_t)n_b);
    int64_t b_dims[4];
    fill_bytes(a, n_a, 4);
    fill_bytes(b, n_b, 5);
    memcpy(b_dims, c->b, sizeof b_dims);
    const int64_t rows = c->b[c->rank_b - 2], cols = c->b[c->rank_b - 1];
    turn(b, n_b / rows / cols, rows, cols, 1, turned);
    b_dims[c->rank_b - 2] = c->trans_b ? cols : rows;
    b_dims[c->rank_b - 1] = c->trans_b ? rows : cols;
    op_runner exact, r;
    op_begin(&exact, "", "MatMulInteger");
    op_add(&exact, a_type, c->rank_a, c->a, a);
    op_add(&exact, b_type, c->rank_b, c->b, b);
    op_add(&exact, a_type, 0, NULL, &a_zero);
    op_add(&exact, b_type, 0, NULL, &b_zero);
    op_run_ok(&exact, 1);
    op_begin(&r, "graphrt", "QMatMul");
    r.threads = 2;
    if (c->trans_b)
        op_int(&r, "transB", 1);
    op_add(&r, a_type, c->rank_a, c->a, a);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, a_type, 0, NULL, &a_zero);
    op_add(&r, b_type, c->rank_b, b_dims, c->trans_b ? turned : b);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, b_type, 0, NULL, &b_zero);
    r.constants = c->constant ? 1u << W_INPUT : 0;
    op_run_ok(&r, 1);
    const grt_tensor *wanted = &exact.out[0].t, *found = &r.out[0].t;
    ck_assert(grt_dims_equal(wanted->dims, wanted->rank, found->dims, found->rank));
    for (int64_t i = 0; i < grt_tensor_elements(wanted); i++)
        ck_assert(((const float *)found->data)[i] == (float)((const int32_t *)wanted->data)[i]);
    op_end(&exact);
    op_end(&r);
    free(a);
    free(b);
    free(turned);
}

START_TEST(products_are_those_of_integers)
{
    static const matmul_case products[] = {
        {2, 2, {7, 30}, {30, 45}, false, true},
        {2, 2, {7, 30}, {30, 45}, true, true},
        {2, 2, {1, 301}, {301, 45}, false, true}, /* few rows have a kernel of their own */
        {2, 2, {2, 64}, {64, 16}, true, true},
        {3, 2, {3, 1, 39}, {39, 20}, false, true},
        {3, 2, {2, 3, 130}, {130, 33}, false, true},
        {3, 2, {2, 13, 64}, {64, 33}, false, true},
        {3, 2, {2, 13, 64}, {64, 33}, false, false},
        {4, 4, {2, 3, 9, 16}, {2, 3, 16, 10}, false, false},
        {4, 3, {2, 3, 9, 16}, {3, 16, 10}, true, true},
        {3, 4, {3, 9, 16}, {2, 3, 16, 10}, false, true},
        {2, 2, {0, 4}, {4, 3}, false, true},
    };
    static const grt_dtype types[] = {GRT_DTYPE_UINT8, GRT_DTYPE_INT8};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (int k = 0; k < 4; k++)
            check_matmul(&products[i], types[k % 2], types[k / 2]);
}
END_TEST

START_TEST(inner_dims_must_agree)
{
    const float one = 1;
    const uint8_t bytes[64] = {0};
    op_runner r;
    op_begin(&r, "graphrt", "QMatMul");
    op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){2, 5}, bytes);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_omit(&r);
    op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){4, 3}, bytes);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}
END_TEST

static void check_binary(const char *op, grt_dtype type, int64_t n_b)
{
    enum { N = 600 };
    uint8_t a[N], b[N];
    const uint8_t a_zero = 7, b_zero = 100, y_zero = 50;
    const float a_scale = 0.5f, b_scale = 0.25f, y_scale = 2.0f;
    const int64_t dims[] = {N / n_b, n_b};
    fill_bytes(a, N, 1);
    fill_bytes(b, n_b, 2);
    op_runner r;
    op_begin(&r, "graphrt", op);
    op_string(&r, "activation", "Relu");
    op_add(&r, type, 2, dims, a);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &a_scale);
    op_add(&r, type, 0, NULL, &a_zero);
    op_add(&r, GRT_DTYPE_UINT8, 1, &n_b, b);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &b_scale);
    op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &b_zero);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &y_scale);
    op_add(&r, type, 0, NULL, &y_zero);
    op_run_ok(&r, 1);
    for (int64_t i = 0; i < N; i++) {
        const bool is_signed = type == GRT_DTYPE_INT8;
        const double x = ((is_signed ? (int8_t)a[i] : a[i]) - 7) * 0.5, by = (b[i % n_b] - 100) * 0.25;
        const double v = nearbyint(fmax(strcmp(op, "QAdd") ? x * by : x + by, 0) / 2) + 50;
        const uint8_t found = ((const uint8_t *)r.out[0].t.data)[i];
        ck_assert_int_eq(is_signed ? (int8_t)found : found, (int)fmin(v, is_signed ? 127 : 255));
    }
    op_end(&r);
}

START_TEST(sums_and_products_of_two)
{
    static const int64_t sizes[] = {1, 4, 60, 600};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_binary("QAdd", GRT_DTYPE_UINT8, sizes[i]);
        check_binary("QAdd", GRT_DTYPE_INT8, sizes[i]);
        check_binary("QMul", GRT_DTYPE_UINT8, sizes[i]);
        check_binary("QMul", GRT_DTYPE_INT8, sizes[i]);
    }
}
END_TEST

START_TEST(tables_begin_with_the_least_value)
{
    uint8_t table[256];
    const uint8_t x[] = {0x80, 0, 0x7f};
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    op_runner r;
    op_begin(&r, "graphrt", "QTable");
    op_add(&r, GRT_DTYPE_INT8, 1, (const int64_t[]){3}, x);
    op_add(&r, GRT_DTYPE_UINT8, 1, (const int64_t[]){256}, table);
    op_run_ok(&r, 1);
    const uint8_t *y = r.out[0].t.data;
    ck_assert(y[0] == 255 && y[1] == 127 && y[2] == 0);
    op_end(&r);
}
END_TEST

/* Devices read constants when a session is made, before dims are checked. */
START_TEST(constants_have_as_many_elements_as_columns)
{
    enum { COLUMNS = 12 };
    static const float data[COLUMNS];
    grt_tensor in[QP_INPUTS] = {0};
    const grt_kernel_node node = {.n_in = QP_INPUTS, .in = in};
    for (int32_t i = 0; i < QP_INPUTS; i++) {
        const bool columns = i == QP_W_SCALE || i == QP_W_ZERO, bias = i == QP_BIAS;
        if (i == QP_X || i == QP_W || i == QP_RESIDUAL || i == QP_TABLE)
            continue;
        ck_assert(grt_qproduct_constants_fit(&node, COLUMNS)); /* all others are left out */
        for (int64_t n = 0; n <= COLUMNS; n++) {
            in[i] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}, .data = (void *)data};
            ck_assert_int_eq(grt_qproduct_constants_fit(&node, COLUMNS),
                             (n == 1 && !bias) || (n == COLUMNS && (columns || bias)));
        }
        in[i].data = NULL; /* what a run brings is checked then */
        ck_assert(grt_qproduct_constants_fit(&node, COLUMNS));
        in[i] = (grt_tensor){0};
    }
}
END_TEST

/* Support is asked for before anything has these dims. */
START_TEST(dims_that_somebody_claims)
{
    const grt_tensor a = {.rank = 4, .dims = {3, INT64_MAX, INT64_MAX, 2}},
                     b = {.rank = 4, .dims = {3, 1, 1, 2}};
    grt_qrepeat repeat;
    ck_assert(grt_qrepeat_read(&a, &b, &repeat));
    ck_assert_int_eq(repeat.outer, 3);
    ck_assert_int_eq(repeat.repeats, INT64_MAX);
    ck_assert_int_eq(repeat.inner, 2);
}
END_TEST

UNIT_SUITE(test_qconv, NULL, NULL, convolutions_are_those_of_integers, products_are_those_of_integers,
           inner_dims_must_agree, sums_and_products_of_two, tables_begin_with_the_least_value,
           constants_have_as_many_elements_as_columns, dims_that_somebody_claims)
