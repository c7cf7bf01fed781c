/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of grt_quantize: histograms, ranges, scales, weights, the file of statistics, options. */
#include "src/quantize/scale.h"
#include "src/quantize/state.h"
#include "tests/unit/suite.h"

#include <graphrt/quantize.h>

#include "src/base/float.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 100000 };

static statistics seen;

static uint64_t counted(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < STATISTICS_BINS; i++)
        sum += seen.bins[i];
    return sum;
}

/* 0 to 1, evenly. */
static float *ramp(void)
{
    float *data = malloc(MANY * sizeof *data);
    for (int i = 0; i < MANY; i++)
        data[i] = (float)i / MANY;
    return data;
}

START_TEST(histograms_grow_and_lose_nothing)
{
    float *data = ramp();
    const float others[] = {-5, 100, 0, 3e4f, -1e-6f};
    statistics_clear(&seen);
    statistics_add(&seen, data, MANY, true);
    ck_assert_uint_eq(counted(), MANY);
    for (size_t i = 0; i < 5; i++) {
        statistics_add(&seen, &others[i], 1, true);
        ck_assert_uint_eq(counted(), MANY + i + 1);
    }
    ck_assert_float_eq(seen.low, -5);
    ck_assert_float_eq(seen.high, 3e4f);
    ck_assert(seen.width * STATISTICS_BINS >= 3e4 + 5 && seen.width * STATISTICS_BINS < 5 * 3e4);
    free(data);
}
END_TEST

START_TEST(equal_elements_and_none)
{
    const float same[] = {0, 0, 0}, large[] = {1e30f, 1e30f};
    statistics_clear(&seen);
    statistics_add(&seen, same, 0, true);
    ck_assert_float_eq(statistics_extremes(&seen).high, 0);
    statistics_add(&seen, same, 3, true);
    ck_assert_uint_eq(counted(), 3);
    statistics_add(&seen, large, 2, true); /* 10^60 bins away */
    ck_assert_uint_eq(counted(), 5);
    ck_assert_float_eq(statistics_extremes(&seen).high, 1e30f);
    ck_assert_float_eq(statistics_least_error(&seen, 256, false).low, 0);
}
END_TEST

START_TEST(elements_that_are_not_finite_are_counted_apart)
{
    const float data[] = {1, NAN, -2, INFINITY, -INFINITY, 3};
    statistics_clear(&seen);
    statistics_add(&seen, data, 6, true);
    ck_assert_uint_eq(seen.odd, 3);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_uint_eq(counted(), 3);
    ck_assert_float_eq(seen.low, -2);
    ck_assert_float_eq(seen.high, 3);
}
END_TEST

START_TEST(a_percentile_leaves_the_outermost_out)
{
    float *data = ramp();
    const float outlier = 1000;
    statistics_clear(&seen);
    statistics_add(&seen, data, MANY, true);
    statistics_add(&seen, &outlier, 1, true);
    ck_assert_float_eq(statistics_extremes(&seen).high, 1000);
    const value_range r = statistics_percentile(&seen, 99.9);
    ck_assert(r.low == 0 && r.high >= 0.99f && r.high < 3);
    ck_assert_float_eq(statistics_percentile(&seen, 100).high, 1000);
    free(data);
}
END_TEST

START_TEST(the_least_error_is_between)
{
    float *data = ramp();
    const float outlier = 10;
    statistics_clear(&seen);
    statistics_add(&seen, data, MANY, true);
    statistics_add(&seen, &outlier, 1, true);
    /* (10 - h)^2 + 100000 (h / 255)^2 / 12 is least at h = 8.86 */
    const value_range r = statistics_least_error(&seen, 256, false);
    ck_assert_float_eq(r.low, 0);
    ck_assert(r.high > 8.6f && r.high < 9.1f);
    const value_range s = statistics_least_error(&seen, 255, true);
    ck_assert_float_eq(s.low, -s.high);
    free(data);
}
END_TEST

START_TEST(scales_have_zero_among_their_numbers)
{
    const scale_zero u = scale_of_range((value_range){-1, 3}, GRT_DTYPE_UINT8);
    ck_assert_float_eq_tol(u.scale, 4.0f / 255, 1e-7f);
    ck_assert_int_eq(u.zero, 64);
    const scale_zero s = scale_of_range((value_range){-1, 3}, GRT_DTYPE_INT8);
    ck_assert_float_eq_tol(s.scale, 3.0f / 127, 1e-7f);
    ck_assert_int_eq(s.zero, 0);
    const scale_zero f = scale_of_range((value_range){-1, 3}, GRT_DTYPE_FLOAT8E4M3FN);
    ck_assert_float_eq_tol(f.scale, 3.0f / 448, 1e-8f);
    ck_assert_int_eq(f.zero, 0);
    ck_assert_float_eq(scale_of_range((value_range){0, 0}, GRT_DTYPE_UINT8).scale, 1);
    ck_assert_float_eq(scale_of_range((value_range){0, 0}, GRT_DTYPE_INT8).scale, 1);
}
END_TEST

enum { ROWS = 50, COLUMNS = 6 };
static float weights[ROWS * COLUMNS];
static grt_arena *arena;

static grt_tensor matrix(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        weights[i] = (float)((i * 37 + 11) % 101 - 50) * 0.01f * (float)(1 + i % COLUMNS);
    return (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, COLUMNS}, .data = weights};
}

static double value_of(const quantised_weights *q, int i)
{
    const uint8_t *bytes = q->data.data;
    if (q->data.dtype == GRT_DTYPE_INT4)
        return (int)(bytes[i / 2] >> (i % 2 * 4) & 15) - ((bytes[i / 2] >> (i % 2 * 4) & 8) ? 16 : 0);
    return q->data.dtype == GRT_DTYPE_INT8 ? (double)(int8_t)bytes[i]
                                           : (double)grt_float8_to_float(bytes[i], GRT_FLOAT8_E4M3FN);
}

/* Each weight is within `most` of its scale; the error that is told is the error. */
static void check_weights(grt_dtype dtype, int32_t axis, int64_t block, double most)
{
    const grt_tensor w = matrix();
    quantised_weights q;
    double lost = 0;
    ck_assert(quantise_weights(&w, dtype, axis, block, NULL, arena, &q) == GRT_OK);
    ck_assert_int_eq(q.scales.rank, block ? 2 : axis >= 0);
    ck_assert_int_eq(grt_tensor_elements(&q.scales), axis < 0 ? 1
                                                     : !block ? w.dims[axis]
                                                     : axis   ? 50
                                                              : (50 + block - 1) / block * 6);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        const int at = axis < 0             ? 0
                       : block && axis == 0 ? row / (int)block * COLUMNS + column
                       : block              ? row
                       : axis               ? column
                                            : row;
        const double scale = (double)((const float *)q.scales.data)[at],
                     off = fabs(value_of(&q, i) * scale - (double)weights[i]);
        ck_assert_msg(off <= most * scale + 1e-6, "element %d: %g of a scale of %g", i, off, scale);
        lost += off * off;
    }
    ck_assert_double_eq_tol(lost, q.error, 1e-4 * lost + 1e-9);
}

START_TEST(weights_of_each_kind)
{
    check_weights(GRT_DTYPE_INT8, 1, 0, 0.5);
    check_weights(GRT_DTYPE_INT8, 0, 0, 0.5);
    check_weights(GRT_DTYPE_INT8, 0, 16, 0.5); /* the last block has 2 rows */
    check_weights(GRT_DTYPE_INT4, 1, 0, 3.01); /* what is cut off is at most 10 - 7 steps */
    check_weights(GRT_DTYPE_INT4, 0, 16, 3.01);
    check_weights(GRT_DTYPE_INT4, 1, 16, 3.01); /* one block of 6 */
    check_weights(GRT_DTYPE_FLOAT8E4M3FN, 0, 16, 16);
    check_weights(GRT_DTYPE_FLOAT8E4M3FN, -1, 0, 16); /* one scale for all */
}
END_TEST

START_TEST(four_bits_by_search_are_no_worse)
{
    const grt_tensor w = matrix();
    quantised_weights four, eight;
    ck_assert(quantise_weights(&w, GRT_DTYPE_INT4, 0, 16, NULL, arena, &four) == GRT_OK);
    ck_assert(quantise_weights(&w, GRT_DTYPE_INT8, 0, 16, NULL, arena, &eight) == GRT_OK);
    ck_assert(eight.error < four.error / 100);
    double naive = 0; /* the largest magnitude becomes 7 */
    for (int column = 0; column < COLUMNS; column++)
        for (int from = 0; from < ROWS; from += 16) {
            double most = 0;
            for (int row = from; row < from + 16 && row < ROWS; row++)
                most = fmax(most, fabs((double)weights[row * COLUMNS + column]));
            for (int row = from; row < from + 16 && row < ROWS; row++) {
                const double x = (double)weights[row * COLUMNS + column], scale = most / 7,
                             off = nearbyint(x / scale) * scale - x;
                naive += off * off;
            }
        }
    ck_assert(four.error <= naive * 1.0001);
}
END_TEST

START_TEST(scales_may_have_a_least_value)
{
    const grt_tensor w = matrix();
    const float least[COLUMNS] = {0, 0, 5};
    quantised_weights q;
    ck_assert(quantise_weights(&w, GRT_DTYPE_INT8, 1, 0, least, arena, &q) == GRT_OK);
    ck_assert_float_eq(((float *)q.scales.data)[2], 5);
    ck_assert(((float *)q.scales.data)[1] < 1);
}
END_TEST

START_TEST(a_state_comes_back_whole_or_not_at_all)
{
    char path[] = "/tmp/quantize-state-XXXXXX";
    const int fd = mkstemp(path);
    static statistics list[3], other[3];
    ck_assert(fd >= 0);
    for (int i = 0; i < 3; i++) {
        const float x = (float)i;
        statistics_clear(&list[i]);
        statistics_add(&list[i], &x, 1, true);
    }
    const calibration_state s = {.key = 7, .list = list, .n = 3, .group = 1, .sample = 5};
    ck_assert(state_write(&s, path) == GRT_OK);
    calibration_state found = {.key = 7, .list = other, .n = 3};
    state_read(&found, path);
    ck_assert(found.group == 1 && found.sample == 5 && !memcmp(list, other, sizeof list));
    calibration_state stranger = {.key = 8, .list = other, .n = 3};
    state_read(&stranger, path);
    ck_assert_uint_eq(stranger.sample, 0);
    FILE *f = fopen(path, "r+b");
    ck_assert(f && fseek(f, 1000, SEEK_SET) == 0 && fputc('x', f) == 'x' && fclose(f) == 0);
    calibration_state damaged = {.key = 7, .list = other, .n = 3};
    state_read(&damaged, path);
    ck_assert_uint_eq(damaged.sample, 0);
    close(fd);
    unlink(path);
    state_read(&damaged, path);
    ck_assert_uint_eq(damaged.sample, 0);
}
END_TEST

static bool no_sample(void *user, size_t index, grt_value **values)
{
    (void)user;
    (void)index;
    (void)values;
    return false;
}

static void refused(const grt_quantize_options *options, const char *word)
{
    ck_assert_int_eq(grt_quantize("m.onnx", options, "q.onnx", NULL), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), word), "'%s' is not in: %s", word, grt_last_error());
}

#define OPTIONS(...) (&(grt_quantize_options){.struct_size = sizeof(grt_quantize_options), __VA_ARGS__})

START_TEST(options_that_make_no_sense_are_refused)
{
    refused(NULL, "samples");
    refused(OPTIONS(.n_samples = 1), "sample is NULL");
    refused(OPTIONS(.mode = (grt_quantize_mode)3), "mode");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .activations = GRT_DTYPE_INT16), "activations");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .weights = GRT_DTYPE_INT4), "weights");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .percentile = 40), "percentile");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .activations = GRT_DTYPE_FLOAT8E4M3FN,
                    .weights = GRT_DTYPE_INT8),
            "weights");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .activations = GRT_DTYPE_FLOAT8E4M3FN,
                    .calibration = GRT_CALIBRATION_MSE),
            "MSE");
    refused(OPTIONS(.n_samples = 1, .sample = no_sample, .max_error = (double)NAN), "max_error");
    refused(OPTIONS(.mode = GRT_QUANTIZE_WEIGHTS, .block = 8), "block");
    refused(OPTIONS(.mode = GRT_QUANTIZE_WEIGHTS, .max_error = 1), "max_error");
    ck_assert_int_eq(grt_quantize(NULL, NULL, "q.onnx", NULL), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_quantize("no-such-file.onnx", OPTIONS(.mode = GRT_QUANTIZE_DYNAMIC), "q.onnx", NULL),
                     GRT_STATUS_IO);
}
END_TEST

static void set_up(void)
{
    arena = grt_arena_create();
}

static void tear_down(void)
{
    grt_arena_release(arena);
}

UNIT_SUITE(test_quantize, set_up, tear_down, histograms_grow_and_lose_nothing, equal_elements_and_none,
           elements_that_are_not_finite_are_counted_apart, a_percentile_leaves_the_outermost_out,
           the_least_error_is_between, scales_have_zero_among_their_numbers, weights_of_each_kind,
           four_bits_by_search_are_no_worse, scales_may_have_a_least_value,
           a_state_comes_back_whole_or_not_at_all, options_that_make_no_sense_are_refused)
