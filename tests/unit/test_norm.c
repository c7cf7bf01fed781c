/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and the normalisations against their definitions in double. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000 };
static float x[MOST];

static void check_close(const grt_tensor *y, int64_t i, double wanted)
{
    const double found = grt_tensor_double(y, i);
    ck_assert_msg(fabs(found - wanted) <= 2e-6 * fmax(1.0, fabs(wanted)), "element %lld: %g, expected %g",
                  (long long)i, found, wanted);
}

static void check_softmax(const char *op, int32_t rank, const int64_t *dims, int64_t axis, float range)
{
    op_runner r;
    fill_floats(x, MOST, 1);
    for (int i = 0; i < MOST; i++)
        x[i] *= range;
    op_begin(&r, "", op);
    op_int(&r, "axis", axis);
    op_add(&r, GRT_DTYPE_FLOAT, rank, dims, x);
    op_run_ok(&r, 1);
    const int64_t inner = grt_dims_product(dims, (int32_t)axis + 1, rank), n = dims[axis],
                  total = grt_dims_product(dims, 0, rank);
    for (int64_t i = 0; i < total; i++) {
        const int64_t first = i / (n * inner) * n * inner + i % inner;
        double top = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < n; k++)
            top = fmax(top, (double)x[first + k * inner]);
        for (int64_t k = 0; k < n; k++)
            sum += exp((double)x[first + k * inner] - top);
        const double d = (double)x[i] - top;
        check_close(&r.out[0].t, i, !strcmp(op, "Softmax") ? exp(d) / sum : d - log(sum));
    }
    op_end(&r);
}

START_TEST(softmax_on_every_axis)
{
    const int64_t dims[] = {3, 5, 70}, row[] = {2, 1001}, one[] = {4, 1}, none[] = {0, 5};
    for (int64_t axis = 0; axis < 3; axis++)
        for (int log = 0; log < 2; log++)
            check_softmax(log ? "LogSoftmax" : "Softmax", 3, dims, axis, 8);
    check_softmax("Softmax", 2, row, 1, 80);
    check_softmax("LogSoftmax", 2, row, 1, 80);
    check_softmax("Softmax", 2, one, 1, 1000);
    check_softmax("Softmax", 2, none, 1, 1);
}
END_TEST

START_TEST(masked_rows_keep_their_probabilities)
{
    const int64_t dims[] = {2, 3};
    const float masked[] = {-INFINITY, 0, -INFINITY, 1, -INFINITY, 1};
    op_runner r;
    op_begin(&r, "", "Softmax");
    op_add(&r, GRT_DTYPE_FLOAT, 2, dims, masked);
    op_run_ok(&r, 1);
    const double wanted[] = {0, 1, 0, 0.5, 0, 0.5};
    for (int i = 0; i < 6; i++)
        check_close(&r.out[0].t, i, wanted[i]);
    op_end(&r);
}
END_TEST

/* Scale and bias of `parameter` dims (broadcast), statistics over dims from axis. */
static void check_layer_of(const char *op, int64_t width, int64_t axis, int32_t p_rank, const int64_t *p_dims,
                           bool with_bias)
{
    const int64_t dims[] = {3, 4, width};
    const bool rms = !strcmp(op, "RMSNormalization");
    float scale[500], bias[500];
    op_runner r;
    fill_floats(x, MOST, 2);
    fill_floats(scale, 500, 3);
    fill_floats(bias, 500, 4);
    op_begin(&r, "", op);
    op_int(&r, "axis", axis);
    op_float(&r, "epsilon", 1e-3f);
    op_add(&r, GRT_DTYPE_FLOAT, 3, dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, p_rank, p_dims, scale);
    if (with_bias)
        op_add(&r, GRT_DTYPE_FLOAT, p_rank, p_dims, bias);
    op_run_ok(&r, rms ? 1 : 3);
    const int64_t n = grt_dims_product(dims, (int32_t)axis, 3);
    int64_t strides[3];
    grt_broadcast_strides(p_dims, p_rank, 3, strides);
    for (int64_t i = 0; i < 3 * 4 * width; i++) {
        const float *row = x + i / n * n;
        double mean = 0.0, square = 0.0;
        for (int64_t k = 0; !rms && k < n; k++)
            mean += (double)row[k] / (double)n;
        for (int64_t k = 0; k < n; k++)
            square += ((double)row[k] - mean) * ((double)row[k] - mean) / (double)n;
        const double factor = 1 / sqrt(square + (double)1e-3f);
        const int64_t at = i / (4 * width) * strides[0] + i / width % 4 * strides[1] + i % width * strides[2];
        check_close(&r.out[0].t, i,
                    ((double)x[i] - mean) * factor * (double)scale[at] +
                        (with_bias ? (double)bias[at] : 0.0));
        if (!rms) {
            check_close(&r.out[1].t, i / n, mean);
            check_close(&r.out[2].t, i / n, factor);
        }
    }
    op_end(&r);
}

static void check_layer(const char *op, int64_t axis, int32_t p_rank, const int64_t *p_dims, bool with_bias)
{
    check_layer_of(op, 37, axis, p_rank, p_dims, with_bias);
}

/* Whole vectors, what is left behind them, and rows shorter than one. */
START_TEST(rows_of_every_length)
{
    for (int64_t n = 1; n <= 70; n++) {
        const int64_t dims[] = {3, n};
        check_softmax("Softmax", 2, dims, 1, 8);
        check_softmax("LogSoftmax", 2, dims, 1, 8);
        check_layer_of("LayerNormalization", n, 2, 1, &n, n % 2);
        check_layer_of("RMSNormalization", n, 2, 1, &n, false);
    }
}
END_TEST

START_TEST(layer_norms)
{
    const int64_t last[] = {37}, two[] = {4, 37}, column[] = {4, 1}, one[] = {1};
    for (int bias = 0; bias < 2; bias++) {
        check_layer("LayerNormalization", 2, 1, last, bias);
        check_layer("LayerNormalization", 1, 2, two, bias);
        check_layer("LayerNormalization", 1, 2, column, bias);
        check_layer("LayerNormalization", 0, 1, one, bias);
        check_layer("LayerNormalization", 2, 2, two, bias);
    }
    check_layer("RMSNormalization", 2, 1, last, false);
    check_layer("RMSNormalization", 1, 1, one, false);
}
END_TEST

/* Element (image, channel, pixel) with channels first or last. */
static int64_t element_at(bool last, int64_t channels, int64_t pixels, int64_t b, int64_t c, int64_t p)
{
    return last ? (b * pixels + p) * channels + c : (b * channels + c) * pixels + p;
}

/* With ReLU where `relu`. */
static void check_groups(const char *op, bool last, bool relu, int64_t channels, int64_t groups, int64_t h,
                         int64_t w, int32_t threads)
{
    const int64_t first_dims[] = {2, channels, h, w}, last_dims[] = {2, h, w, channels};
    const int64_t pixels = h * w, size = channels / groups;
    float scale[40], bias[40];
    op_runner r;
    ck_assert(2 * channels * pixels <= MOST && channels <= 40);
    fill_floats(x, MOST, 5);
    fill_floats(scale, 40, 6);
    fill_floats(bias, 40, 7);
    op_begin(&r, last || relu ? "graphrt" : "", op);
    if (relu)
        op_string(&r, "activation", "Relu");
    if (!strcmp(op, "GroupNormalization"))
        op_int(&r, "num_groups", groups);
    if (last)
        op_string(&r, "layout", "NHWC");
    op_add(&r, GRT_DTYPE_FLOAT, 4, last ? last_dims : first_dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &channels, scale);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &channels, bias);
    r.threads = threads;
    op_run_ok(&r, 1);
    for (int64_t row = 0; row < 2 * groups; row++) {
        const int64_t b = row / groups, from = row % groups * size;
        const double n = (double)(size * pixels);
        double mean = 0.0, square = 0.0;
        for (int64_t i = 0; i < size * pixels; i++)
            mean += (double)x[element_at(last, channels, pixels, b, from + i / pixels, i % pixels)] / n;
        for (int64_t i = 0; i < size * pixels; i++) {
            const double d =
                (double)x[element_at(last, channels, pixels, b, from + i / pixels, i % pixels)] - mean;
            square += d * d / n;
        }
        for (int64_t i = 0; i < size * pixels; i++) {
            const int64_t c = from + i / pixels, at = element_at(last, channels, pixels, b, c, i % pixels);
            const double y =
                ((double)x[at] - mean) / sqrt(square + (double)1e-5f) * (double)scale[c] + (double)bias[c];
            check_close(&r.out[0].t, at, relu && y < 0 ? 0 : y);
        }
    }
    op_end(&r);
}

START_TEST(group_norms)
{
    for (int last = 0; last < 2; last++) {
        check_groups("GroupNormalization", last, false, 6, 1, 5, 7, 1);
        check_groups("GroupNormalization", last, false, 6, 2, 5, 7, 1);
        check_groups("GroupNormalization", last, false, 6, 6, 5, 7, 2);
        check_groups("InstanceNormalization", last, false, 6, 6, 5, 7, 1);
        check_groups("GroupNormalization", last, false, 33, 3, 17, 16, 2);
        check_groups("InstanceNormalization", last, false, 9, 9, 33, 31, 2);
        check_groups("InstanceNormalization", last, false, 1, 1, 1, 3, 1);
        check_groups("GroupNormalization", last, true, 33, 3, 17, 16, 2);
        check_groups("InstanceNormalization", last, true, 6, 6, 5, 7, 1);
    }
}
END_TEST

static void check_lrn(int64_t size, float beta)
{
    const int64_t dims[] = {2, 7, 3, 30}, pixels = 90;
    op_runner r;
    fill_floats(x, MOST, 8);
    op_begin(&r, "", "LRN");
    op_int(&r, "size", size);
    op_float(&r, "alpha", 0.5f);
    op_float(&r, "beta", beta);
    op_float(&r, "bias", 2.0f);
    op_add(&r, GRT_DTYPE_FLOAT, 4, dims, x);
    op_run_ok(&r, 1);
    for (int64_t i = 0; i < 2 * 7 * pixels; i++) {
        const int64_t c = i / pixels % 7, image = i / (7 * pixels) * 7 * pixels + i % pixels;
        double sum = 0.0;
        for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; k++)
            if (k >= 0 && k < 7)
                sum += (double)x[image + k * pixels] * (double)x[image + k * pixels];
        check_close(&r.out[0].t, i, (double)x[i] / pow(2 + 0.5 / (double)size * sum, (double)beta));
    }
    op_end(&r);
}

START_TEST(local_response)
{
    check_lrn(1, 0.75f);
    check_lrn(4, 0.75f);
    check_lrn(5, 0.6f);
    check_lrn(20, 0.75f);
}
END_TEST

UNIT_SUITE(test_norm, NULL, NULL, softmax_on_every_axis, masked_rows_keep_their_probabilities,
           rows_of_every_length, layer_norms, group_norms, local_response)
