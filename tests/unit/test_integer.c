/* SPDX-License-Identifier: Apache-2.0 */
/* Integer and deformable convolutions, integer products, LpPool, MaxUnpool against their definitions. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

/* One convolution of 2 groups with stride, dilation and uneven padding. */
enum { N = 2, C = 4, H = 7, W = 6, O = 6, K = 3, GROUPS = 2, OUT_H = 4, OUT_W = 5 };
static const int64_t x_dims[] = {N, C, H, W}, w_dims[] = {O, C / GROUPS, K, K}, pads[] = {1, 2, 2, 1},
                     strides[] = {2, 1}, dilations[] = {1, 2};

static void set_window(op_runner *r)
{
    op_int(r, "group", GROUPS);
    op_ints(r, "pads", pads, 4);
    op_ints(r, "strides", strides, 2);
    op_ints(r, "dilations", dilations, 2);
}

typedef double reader(const void *data, int64_t i);

static double convolve(reader *read, const void *x, double x_zero, const void *w, const double *w_zero,
                       int64_t n, int64_t o, int64_t y, int64_t z)
{
    double sum = 0;
    for (int64_t c = 0; c < C / GROUPS; c++)
        for (int64_t a = 0; a < K; a++)
            for (int64_t b = 0; b < K; b++) {
                int64_t row = y * strides[0] - pads[0] + a * dilations[0],
                        column = z * strides[1] - pads[1] + b * dilations[1];
                int64_t channel = o / (O / GROUPS) * (C / GROUPS) + c;
                if (row < 0 || row >= H || column < 0 || column >= W)
                    continue;
                sum += (read(x, ((n * C + channel) * H + row) * W + column) - x_zero) *
                       (read(w, ((o * (C / GROUPS) + c) * K + a) * K + b) - (w_zero ? w_zero[o] : 0));
            }
    return sum;
}

static double read_float(const void *data, int64_t i)
{
    return (double)((const float *)data)[i];
}

static double read_byte(const void *data, int64_t i)
{
    return (double)((const uint8_t *)data)[i];
}

static void fill_bytes(uint8_t *out, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (uint8_t)(seed >> 24);
    }
}

START_TEST(test_conv_integer)
{
    uint8_t x[N * C * H * W], w[O * C / GROUPS * K * K], x_zero = 128, w_zeros[O];
    double zeros[O];
    fill_bytes(x, sizeof x, 1);
    fill_bytes(w, sizeof w, 2);
    for (int i = 0; i < O; i++)
        zeros[i] = w_zeros[i] = (uint8_t)(i * 40);
    op_runner r;
    op_begin(&r, "", "ConvInteger");
    set_window(&r);
    op_add(&r, GRT_DTYPE_UINT8, 4, x_dims, x);
    op_add(&r, GRT_DTYPE_UINT8, 4, w_dims, w);
    op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &x_zero);
    op_add(&r, GRT_DTYPE_UINT8, 1, (const int64_t[]){O}, w_zeros);
    op_run_ok(&r, 1);
    ck_assert(grt_dims_equal(r.out[0].t.dims, 4, (const int64_t[]){N, O, OUT_H, OUT_W}, 4));
    for (int64_t i = 0; i < N * O * OUT_H * OUT_W; i++)
        ck_assert_int_eq(((const int32_t *)r.out[0].t.data)[i],
                         (int32_t)convolve(read_byte, x, 128, w, zeros, i / (O * OUT_H * OUT_W),
                                           i / (OUT_H * OUT_W) % O, i / OUT_W % OUT_H, i % OUT_W));
    op_end(&r);
}
END_TEST

/* Without offsets, a deformable convolution is a convolution; the mask scales it. */
START_TEST(test_deform_without_offsets)
{
    float x[N * C * H * W], w[O * C / GROUPS * K * K], bias[O], mask[N * 2 * K * K * OUT_H * OUT_W];
    static const float offset[N * 2 * K * K * 2 * OUT_H * OUT_W];
    fill_floats(x, N * C * H * W, 1);
    fill_floats(w, O * C / GROUPS * K * K, 2);
    fill_floats(bias, O, 3);
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = 0.5f;
    op_runner r;
    op_begin(&r, "", "DeformConv");
    set_window(&r);
    op_int(&r, "offset_group", 2);
    op_add(&r, GRT_DTYPE_FLOAT, 4, x_dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, 4, w_dims, w);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){N, 2 * K * K * 2, OUT_H, OUT_W}, offset);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){O}, bias);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){N, 2 * K * K, OUT_H, OUT_W}, mask);
    op_run_ok(&r, 1);
    for (int64_t i = 0; i < N * O * OUT_H * OUT_W; i++) {
        int64_t o = i / (OUT_H * OUT_W) % O;
        double expected = (double)bias[o] + 0.5 * convolve(read_float, x, 0, w, NULL, i / (O * OUT_H * OUT_W),
                                                           o, i / OUT_W % OUT_H, i % OUT_W);
        ck_assert_double_eq_tol((double)((const float *)r.out[0].t.data)[i], expected, 1e-5);
    }
    op_end(&r);
}
END_TEST

START_TEST(test_deform_interpolates)
{
    const float x[] = {1, 2, 3, 4}, w[] = {1}, offset[] = {0.5f, 0.25f};
    op_runner r;
    op_begin(&r, "", "DeformConv");
    op_ints(&r, "strides", (const int64_t[]){2, 2}, 2);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 1, 1}, w);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 2, 1, 1}, offset);
    op_run_ok(&r, 1);
    ck_assert_float_eq_tol(*(const float *)r.out[0].t.data, 2.25f, 1e-6f);
    op_end(&r);
}
END_TEST

/* Offsets that leave the image, NaN and infinite pixels beside it: the same in float32, which is a product of
 * sampled columns, and in float64, summed as defined. More pixels than a block has. */
START_TEST(test_deform_in_float32_and_float64)
{
    enum { C2 = 6, H2 = 19, W2 = 23, OUT2 = H2 * W2, TAPS = 9 };
    static float in[4][3 * C2 * H2 * W2 * TAPS];
    static double wide[4][3 * C2 * H2 * W2 * TAPS], results[2][2 * 4 * OUT2];
    const int64_t dims[][4] = {
        {2, C2, H2, W2}, {4, C2 / 2, 3, 3}, {2, 3 * 2 * TAPS, H2, W2}, {2, 3 * TAPS, H2, W2}};
    for (int i = 0; i < 4; i++) {
        const int64_t n = grt_dims_product(dims[i], 0, 4);
        ck_assert_int_le(n, (int64_t)(sizeof wide[i] / sizeof *wide[i]));
        fill_floats(in[i], n, 7 + (unsigned)i);
        for (int64_t k = 0; k < n; k++) {
            in[i][k] *= i == 2 ? 9 : 1;
            if (i == 2 && k % 97 == 0)
                in[i][k] = NAN;
            wide[i][k] = (double)in[i][k];
        }
    }
    in[0][0] = INFINITY;
    wide[0][0] = (double)INFINITY;
    for (int type = 0; type < 2; type++) {
        const grt_dtype dtype = type ? GRT_DTYPE_DOUBLE : GRT_DTYPE_FLOAT;
        op_runner r;
        op_begin(&r, "", "DeformConv");
        op_ints(&r, "pads", (const int64_t[]){1, 1, 1, 1}, 4);
        op_int(&r, "group", 2);
        op_int(&r, "offset_group", 3);
        for (int i = 0; i < 3; i++)
            op_add(&r, dtype, 4, dims[i], type ? (const void *)wide[i] : in[i]);
        op_omit(&r);
        op_add(&r, dtype, 4, dims[3], type ? (const void *)wide[3] : in[3]);
        op_run_ok(&r, 1);
        for (int64_t k = 0; k < 2 * 4 * OUT2; k++)
            results[type][k] = grt_tensor_double(&r.out[0].t, k);
        op_end(&r);
    }
    for (int64_t k = 0; k < 2 * 4 * OUT2; k++)
        if (isfinite(results[1][k]))
            ck_assert_double_eq_tol(results[0][k], results[1][k], 1e-4);
        else
            ck_assert(!isfinite(results[0][k]));
}
END_TEST

START_TEST(test_matmul_integer)
{
    const int8_t a[] = {1, -2, 3, 4, 5, -6, 7, 8, 9, 1, 2, 3};      /* 2 x 2 x 3 */
    const uint8_t b[] = {200, 1, 2, 3, 4, 5}, b_zeros[] = {100, 2}; /* 3 x 2 */
    const int8_t a_zeros[] = {1, -1};
    op_runner r;
    op_begin(&r, "", "MatMulInteger");
    op_add(&r, GRT_DTYPE_INT8, 3, (const int64_t[]){2, 2, 3}, a);
    op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){3, 2}, b);
    op_add(&r, GRT_DTYPE_INT8, 1, (const int64_t[]){2}, a_zeros);
    op_add(&r, GRT_DTYPE_UINT8, 1, (const int64_t[]){2}, b_zeros);
    op_run_ok(&r, 1);
    for (int64_t i = 0; i < 8; i++) {
        int32_t sum = 0;
        for (int64_t k = 0; k < 3; k++)
            sum += (a[i / 2 * 3 + k] - a_zeros[i / 2 % 2]) * (b[k * 2 + i % 2] - b_zeros[i % 2]);
        ck_assert_int_eq(((const int32_t *)r.out[0].t.data)[i], sum);
    }
    op_end(&r);
}
END_TEST

/* Whole tiles and what is left over, of columns, rows and steps; both types; zero points of either side. */
START_TEST(test_matmul_integer_tiles)
{
    enum { MOST = 40 * 40 };
    static const int64_t sizes[][3] = {
        {1, 16, 2}, {4, 33, 7}, {7, 16, 9}, {9, 39, 12}, {3, 5, 3}}; /* m, n, k */
    for (int round = 0; round < 10; round++) {
        const int64_t m = sizes[round / 2][0], n = sizes[round / 2][1], k = sizes[round / 2][2];
        const bool is_signed = round % 2;
        uint8_t a[MOST], b[MOST];
        const uint8_t zero_a = 201, zero_b = is_signed ? 0x80 : 255; /* -128, as it is signed */
        for (int i = 0; i < MOST; i++) {
            a[i] = (uint8_t)(i * 37);
            b[i] = (uint8_t)(i * 91 + 5);
        }
        op_runner r;
        op_begin(&r, "", "MatMulInteger");
        op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){m, k}, a);
        op_add(&r, is_signed ? GRT_DTYPE_INT8 : GRT_DTYPE_UINT8, 2, (const int64_t[]){k, n}, b);
        op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &zero_a);
        op_add(&r, is_signed ? GRT_DTYPE_INT8 : GRT_DTYPE_UINT8, 0, NULL, &zero_b);
        op_run_ok(&r, 1);
        for (int64_t i = 0; i < m * n; i++) {
            int32_t expected = 0;
            for (int64_t t = 0; t < k; t++) {
                const uint8_t y = b[t * n + i % n];
                expected += (a[i / n * k + t] - zero_a) * (is_signed ? (int8_t)y + 128 : y - 255);
            }
            ck_assert_int_eq(((const int32_t *)r.out[0].t.data)[i], expected);
        }
        op_end(&r);
    }
}
END_TEST

START_TEST(test_quantised_product_saturates)
{
    const uint8_t a[] = {255, 0}, b[] = {255, 255}, zero = 10;
    const float one = 1, large = 100;
    op_runner r;
    op_begin(&r, "", "QLinearMatMul");
    op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){1, 2}, a);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &zero);
    op_add(&r, GRT_DTYPE_UINT8, 2, (const int64_t[]){2, 1}, b);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &one);
    op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &zero);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &large);
    op_add(&r, GRT_DTYPE_UINT8, 0, NULL, &zero);
    op_run_ok(&r, 1);
    ck_assert_uint_eq(*(const uint8_t *)r.out[0].t.data, 255); /* (245 * 245 - 10 * 245) / 100 + 10 = 585 */
    op_end(&r);
}
END_TEST

START_TEST(test_lp_pool)
{
    const float x[] = {1, -2, 3, -4, 5};
    op_runner r;
    op_begin(&r, "", "LpPool");
    op_ints(&r, "kernel_shape", (const int64_t[]){2}, 1);
    op_ints(&r, "pads", (const int64_t[]){1, 0}, 2);
    op_int(&r, "p", 1);
    op_add(&r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){1, 1, 5}, x);
    op_run_ok(&r, 1);
    static const float expected[] = {1, 3, 5, 7, 9};
    ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
    op_end(&r);
}
END_TEST

START_TEST(test_unpool_and_its_indices)
{
    const float x[] = {1, 2};
    const int64_t indices[] = {1, 2}, far_away[] = {1, 4};
    for (int i = 0; i < 2; i++) {
        op_runner r;
        op_begin(&r, "", "MaxUnpool");
        op_ints(&r, "kernel_shape", (const int64_t[]){2}, 1);
        op_ints(&r, "strides", (const int64_t[]){2}, 1);
        op_add(&r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){1, 1, 2}, x);
        op_add(&r, GRT_DTYPE_INT64, 3, (const int64_t[]){1, 1, 2}, i ? far_away : indices);
        grt_status status = op_run(&r, 1);
        static const float expected[] = {0, 1, 2, 0};
        ck_assert_int_eq(status, i ? GRT_STATUS_INVALID_ARGUMENT : GRT_OK);
        if (!i)
            ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
        op_end(&r);
    }
}
END_TEST

START_TEST(test_adam_first_step)
{
    const float rate = 0.1f, x[] = {1}, gradient[] = {0.5f}, zero[] = {0};
    int64_t step = 1;
    op_runner r;
    op_begin(&r, "ai.onnx.preview.training", "Adam");
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &rate);
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &step);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, x);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, gradient);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, zero);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, zero);
    op_run_ok(&r, 3);
    ck_assert_float_eq_tol(*(const float *)r.out[0].t.data, 0.9f,
                           1e-3f); /* a first step is the rate, whatever the gradient */
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_integer, NULL, NULL, test_conv_integer, test_deform_without_offsets, test_deform_interpolates,
           test_deform_in_float32_and_float64, test_matmul_integer, test_matmul_integer_tiles,
           test_quantised_product_saturates, test_lp_pool, test_unpool_and_its_indices, test_adam_first_step)
