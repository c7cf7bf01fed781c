/* SPDX-License-Identifier: Apache-2.0 */
/* Ops with loops of their own for float32 make what their loops for double make of the same numbers. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

enum { MOST = 12000 };

static float numbers[2][MOST];
static double wide[2][MOST];

static void prepare(op_runner *r, const char *op)
{
    for (int k = 0; k < 2; k++) {
        fill_floats(numbers[k], MOST, (uint32_t)k + 7);
        for (int i = 0; i < MOST; i++)
            wide[k][i] = (double)(numbers[k][i] *= k ? 1.3f : 1.0f); /* grids reach over the edges */
    }
    op_begin(r, "", op);
}

static const void *data_of(int k, bool floats)
{
    return floats ? (const void *)numbers[k] : (const void *)wide[k];
}

static void compare_paths(op_runner *of_floats, op_runner *of_doubles)
{
    const grt_tensor *y = &of_floats->out[0].t, *wanted = &of_doubles->out[0].t;
    const int64_t n = grt_tensor_elements(wanted);
    ck_assert_int_eq(grt_tensor_elements(y), n);
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)((const float *)y->data)[i], b = ((const double *)wanted->data)[i];
        ck_assert_msg(fabs(a - b) <= 2e-6 * (1 + fabs(b)), "element %lld: %g, expected %g", (long long)i, a,
                      b);
    }
    op_end(of_floats);
    op_end(of_doubles);
}

static void check_grid(const char *mode, const char *padding, int32_t spatial)
{
    const int64_t planes[] = {2, 3, 9, 7}, volumes[] = {2, 3, 5, 6, 4}, points[] = {2, 10, 11, 2},
                  cells[] = {2, 3, 5, 7, 3};
    op_runner r[2];
    for (int floats = 0; floats < 2; floats++) {
        const grt_dtype dtype = floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE;
        prepare(&r[floats], "GridSample");
        op_string(&r[floats], "mode", mode);
        op_string(&r[floats], "padding_mode", padding);
        op_add(&r[floats], dtype, spatial + 2, spatial == 2 ? planes : volumes, data_of(0, floats));
        op_add(&r[floats], dtype, spatial + 2, spatial == 2 ? points : cells, data_of(1, floats));
        op_run_ok(&r[floats], 1);
    }
    compare_paths(&r[1], &r[0]);
}

START_TEST(test_grids_of_floats)
{
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {"zeros", "border",
                                                                                            "reflection"};
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 3; p++) {
            check_grid(modes[m], paddings[p], 2);
            if (m < 2)
                check_grid(modes[m], paddings[p], 3);
        }
}
END_TEST

/* What a point outside would read has no part in it. */
START_TEST(test_grid_beside_infinity)
{
    const float x[] = {INFINITY, 1, 2, 3}, grid[] = {-5, -5, 1, 1};
    const int64_t dims[] = {1, 1, 2, 2}, points[] = {1, 1, 2, 2};
    op_runner r;
    op_begin(&r, "", "GridSample");
    op_int(&r, "align_corners", 1);
    op_add(&r, GRT_DTYPE_FLOAT, 4, dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, 4, points, grid);
    op_run_ok(&r, 1);
    ck_assert(((const float *)r.out[0].t.data)[0] == 0.0f && ((const float *)r.out[0].t.data)[1] == 3.0f);
    op_end(&r);
}
END_TEST

START_TEST(test_sums_of_floats)
{
    const int64_t dims[] = {2, 5, 17, 67}, none = 1;
    for (int32_t axis = 0; axis < 4; axis++)
        for (int flags = 0; flags < 4; flags++) {
            const int64_t at = axis;
            op_runner r[2];
            for (int floats = 0; floats < 2; floats++) {
                prepare(&r[floats], "CumSum");
                op_int(&r[floats], "exclusive", flags & 1);
                op_int(&r[floats], "reverse", flags >> 1);
                op_add(&r[floats], floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE, 4, dims, data_of(0, floats));
                op_add(&r[floats], GRT_DTYPE_INT64, 0, &none, &at);
                op_run_ok(&r[floats], 1);
            }
            compare_paths(&r[1], &r[0]);
        }
}
END_TEST

static void check_pixel_filter(bool last, int64_t groups, int64_t stride, int64_t dilation)
{
    const int64_t in[] = {9, 8}, kernel[] = {3, 2}, strides[] = {stride, 1}, dilations[] = {dilation, 1},
                  pads[] = {1, 0, 2, 1};
    const int64_t high = (9 + 3 - 2 * dilation - 1) / stride + 1, across = 8, taps = 6 * groups;
    const int64_t x[2][4] = {{2, 6, in[0], in[1]}, {2, in[0], in[1], 6}},
                  w[2][4] = {{2, taps, high, across}, {2, high, across, taps}};
    op_runner r[2];
    for (int floats = 0; floats < 2; floats++) {
        const grt_dtype dtype = floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE;
        prepare(&r[floats], "PixelFilter");
        r[floats].desc.domain = "graphrt";
        op_ints(&r[floats], "kernel_shape", kernel, 2);
        op_ints(&r[floats], "strides", strides, 2);
        op_ints(&r[floats], "dilations", dilations, 2);
        op_ints(&r[floats], "pads", pads, 4);
        if (last)
            op_string(&r[floats], "layout", "NHWC");
        op_add(&r[floats], dtype, 4, x[last], data_of(0, floats));
        op_add(&r[floats], dtype, 4, w[last], data_of(1, floats));
        op_run_ok(&r[floats], 1);
    }
    compare_paths(&r[1], &r[0]);
}

START_TEST(test_filters_for_each_pixel)
{
    for (int last = 0; last < 2; last++)
        for (int64_t groups = 1; groups <= 6; groups += groups == 1 ? 2 : 3)
            for (int64_t stride = 1; stride <= 2; stride++)
                check_pixel_filter(last, groups, stride, 3 - stride);
}
END_TEST

/* A filter whose spectrum is ones copies; one that turns by a number shifts. */
START_TEST(test_convolution_by_spectra)
{
    enum { N = 8, SIZE = 5, LINES = 4 };
    float w[2][N / 2 + 1][2] = {{{0}}};
    const int64_t lines[] = {2, 2, SIZE, 1}, spectra[] = {2, N / 2 + 1, 2};
    for (int k = 0; k <= N / 2; k++) {
        w[0][k][0] = 1;
        w[1][k][0] = cosf(2 * 3.14159265f * (float)k / N);
        w[1][k][1] = -sinf(2 * 3.14159265f * (float)k / N);
    }
    op_runner r;
    prepare(&r, "SpectralConv");
    r.desc.domain = "graphrt";
    op_int(&r, "length", N);
    op_add(&r, GRT_DTYPE_FLOAT, 4, lines, numbers[0]);
    op_add(&r, GRT_DTYPE_FLOAT, 3, spectra, w);
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    for (int line = 0; line < LINES; line++)
        for (int k = 0; k < N; k++) {
            const int from = line % 2 ? (k + N - 1) % N : k;
            ck_assert_float_eq_tol(y[line * N + k], from < SIZE ? numbers[0][line * SIZE + from] : 0, 1e-6f);
        }
    op_end(&r);
}
END_TEST

/* Two images of 35 planes with few columns: blocks of planes are pooled as channels, the last not full. */
START_TEST(test_pools_of_small_planes)
{
    const int64_t dims[] = {2, 35, 9, 11};
    for (int variant = 0; variant < 8; variant++) {
        const int64_t kernel[] = {3, 2}, strides[] = {1 + variant % 2, 2}, pads[] = {1, 0, 1, 1};
        op_runner r[2];
        for (int floats = 0; floats < 2; floats++) {
            prepare(&r[floats], variant & 4 ? "MaxPool" : "AveragePool");
            op_ints(&r[floats], "kernel_shape", kernel, 2);
            op_ints(&r[floats], "strides", strides, 2);
            op_ints(&r[floats], "pads", pads, 4);
            op_int(&r[floats], "ceil_mode", variant >> 1 & 1);
            if (!(variant & 4))
                op_int(&r[floats], "count_include_pad", variant & 1);
            op_add(&r[floats], floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE, 4, dims, data_of(0, floats));
            op_run_ok(&r[floats], 1);
        }
        compare_paths(&r[1], &r[0]);
    }
}
END_TEST

START_TEST(test_axes_of_floats)
{
    static const char *const ops[] = {"Softmax", "LogSoftmax", "LpNormalization", "Hardmax"};
    const int64_t dims[] = {3, 37, 83};
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
        for (int32_t axis = 0; axis < 3; axis++) {
            op_runner r[2];
            for (int floats = 0; floats < 2; floats++) {
                prepare(&r[floats], ops[op]);
                op_int(&r[floats], "axis", axis);
                op_add(&r[floats], floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE, 3, dims, data_of(0, floats));
                op_run_ok(&r[floats], 1);
            }
            compare_paths(&r[1], &r[0]);
        }
}
END_TEST

/* Rows, columns and channels of what is enlarged, or mirrored in size, with channels last and first. */
START_TEST(test_nearest_repeats_pixels)
{
    const int64_t dims[] = {1, 4, 5, 19}, sizes[2][4] = {{1, 8, 15, 19}, {1, 4, 10, 38}};
    for (int last = 0; last < 2; last++) {
        const int64_t *to = sizes[!last], n = 4;
        op_runner r;
        prepare(&r, "Resize");
        op_string(&r, "coordinate_transformation_mode", "asymmetric");
        op_string(&r, "nearest_mode", "floor");
        op_add(&r, GRT_DTYPE_FLOAT, 4, dims, numbers[0]);
        op_omit(&r);
        op_omit(&r);
        op_add(&r, GRT_DTYPE_INT64, 1, &n, to);
        op_run_ok(&r, 1);
        for (int64_t i = 0; i < to[1] * to[2] * to[3]; i++) {
            const int64_t c = i % to[3] * dims[3] / to[3], x = i / to[3] % to[2] * dims[2] / to[2],
                          y = i / to[3] / to[2] * dims[1] / to[1];
            ck_assert(((const float *)r.out[0].t.data)[i] == numbers[0][(y * dims[2] + x) * dims[3] + c]);
        }
        op_end(&r);
    }
}
END_TEST

/* Among numbers many of which are equal, and some NaN or infinite. */
static void check_best(int64_t k, bool largest)
{
    const int64_t dims[] = {9, 1301}, one = 1;
    op_runner r[2];
    for (int floats = 0; floats < 2; floats++) {
        prepare(&r[floats], "TopK");
        for (int i = 0; i < MOST; i++) {
            numbers[0][i] = i % 97 == 50  ? NAN
                            : i % 89 == 7 ? -INFINITY
                                          : rintf(numbers[0][i] * 40.0f) / 8.0f;
            wide[0][i] = (double)numbers[0][i];
        }
        op_int(&r[floats], "largest", largest);
        op_add(&r[floats], floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE, 2, dims, data_of(0, floats));
        op_add(&r[floats], GRT_DTYPE_INT64, 1, &one, &k);
        op_run_ok(&r[floats], 2);
    }
    for (int64_t i = 0; i < dims[0] * k; i++) {
        const int64_t at = grt_tensor_int(&r[1].out[1].t, i);
        ck_assert_int_eq(at, grt_tensor_int(&r[0].out[1].t, i));
        const float found = ((const float *)r[1].out[0].t.data)[i], wanted = numbers[0][i / k * dims[1] + at];
        ck_assert(found == wanted || (isnan(found) && isnan(wanted)));
    }
    op_end(&r[0]);
    op_end(&r[1]);
}

START_TEST(test_best_of_floats)
{
    static const int64_t counts[] = {1, 2, 5, 64, 1000, 1301};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_best(counts[i], true);
        check_best(counts[i], false);
    }
}
END_TEST

/* The best of many boxes, each as good as a few others, up to a limit that leaves most of them out. */
START_TEST(test_chosen_boxes)
{
    enum { N = 600, LIMIT = 37 };
    const int64_t box_dims[] = {1, N, 4}, score_dims[] = {1, 2, N}, one = 1, most = LIMIT;
    static float boxes[N][4], scores[2][N];
    const float overlap = 0.5f, least = 0.2f;
    op_runner r;
    prepare(&r, "NonMaxSuppression");
    for (int i = 0; i < N; i++) { /* no two overlap */
        const float at = (float)i;
        memcpy(boxes[i], (float[]){at, at, at + 0.9f, at + 0.9f}, sizeof boxes[i]);
        scores[0][i] = (float)(i * 7 % 53) / 53.0f;
        scores[1][i] = i < 20 ? 0.3f : 0.1f;
    }
    op_add(&r, GRT_DTYPE_FLOAT, 3, box_dims, boxes);
    op_add(&r, GRT_DTYPE_FLOAT, 3, score_dims, scores);
    op_add(&r, GRT_DTYPE_INT64, 1, &one, &most);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &one, &overlap);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &one, &least);
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.dims[0], LIMIT + 20);
    for (int i = 0; i < LIMIT + 20; i++) {
        const int64_t box = grt_tensor_int(&r.out[0].t, 3 * i + 2);
        ck_assert_int_eq(grt_tensor_int(&r.out[0].t, 3 * i + 1), i >= LIMIT);
        if (i >= LIMIT) {
            ck_assert_int_eq(box, i - LIMIT);
            continue;
        }
        int64_t ahead = 0;
        for (int64_t k = 0; k < N; k++)
            ahead += scores[0][k] > scores[0][box] || (scores[0][k] == scores[0][box] && k < box);
        ck_assert_int_eq(ahead, i);
    }
    op_end(&r);
}
END_TEST

/* Matrices in front of the softmax and behind it, each of which may be missing; rows of several pieces. */
static void check_head_mix(bool softmax, bool before, bool after, bool bias, int64_t queries, int64_t keys)
{
    const int64_t x[] = {2, 5, queries, keys}, first[] = {7, 5}, last[] = {3, before ? 7 : 5},
                  out = after    ? 3
                        : before ? 7
                                 : 5;
    op_runner r[2];
    for (int floats = 0; floats < 2; floats++) {
        const grt_dtype dtype = floats ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE;
        prepare(&r[floats], "HeadMix");
        r[floats].desc.domain = "graphrt";
        r[floats].threads = 2;
        op_int(&r[floats], "softmax", softmax);
        op_add(&r[floats], dtype, 4, x, data_of(0, floats));
        if (before)
            op_add(&r[floats], dtype, 2, first, data_of(1, floats));
        else
            op_omit(&r[floats]);
        if (after)
            op_add(&r[floats], dtype, 2, last, data_of(1, floats));
        else
            op_omit(&r[floats]);
        if (bias)
            op_add(&r[floats], dtype, 1, &out, data_of(1, floats));
        op_run_ok(&r[floats], 1);
    }
    compare_paths(&r[1], &r[0]);
}

START_TEST(test_mixed_heads)
{
    for (int softmax = 0; softmax < 2; softmax++)
        for (int before = !softmax; before < 2; before++)
            for (int after = 0; after <= softmax; after++)
                for (int bias = 0; bias < 2; bias++) {
                    check_head_mix(softmax, before, after, bias, 7, 19);
                    check_head_mix(softmax, before, after, bias, 2, 560);
                }
}
END_TEST

START_TEST(test_mixed_heads_that_do_not_fit)
{
    const int64_t x[] = {1, 2, 3, 4}, matrix[] = {2, 3}, square[] = {2, 2};
    op_runner r;
    prepare(&r, "HeadMix");
    r.desc.domain = "graphrt";
    op_add(&r, GRT_DTYPE_FLOAT, 4, x, data_of(0, true));
    op_add(&r, GRT_DTYPE_FLOAT, 2, matrix, data_of(1, true));
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
    prepare(&r, "HeadMix"); /* a matrix behind a softmax that is not there */
    r.desc.domain = "graphrt";
    op_add(&r, GRT_DTYPE_FLOAT, 4, x, data_of(0, true));
    op_omit(&r);
    op_add(&r, GRT_DTYPE_FLOAT, 2, square, data_of(1, true));
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_float_paths, NULL, NULL, test_grids_of_floats, test_grid_beside_infinity, test_sums_of_floats,
           test_best_of_floats, test_chosen_boxes, test_nearest_repeats_pixels, test_pools_of_small_planes,
           test_filters_for_each_pixel, test_convolution_by_spectra, test_axes_of_floats, test_mixed_heads,
           test_mixed_heads_that_do_not_fit)
