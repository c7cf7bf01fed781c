/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool and AveragePool on random windows, in both layouts, against their definition in double. */
#include "tests/unit/suite.h"
#include "tests/unit/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t column_major(int64_t flat, const int64_t *dims, int32_t n)
{
    int64_t index[WINDOW_MOST], at = 0;
    window_unflatten(flat, dims, n, index);
    for (int32_t i = n - 1; i >= 0; i--)
        at = at * dims[i] + index[i];
    return at;
}

/* holes: some values are NaN, which maxima leave out. */
static void check_pool(const window *chosen, uint32_t seed, bool max, bool last, grt_dtype dtype, bool holes)
{
    const window w = *chosen;
    const int32_t n = w.spatial;
    const int64_t in_pixels = grt_dims_product(w.in, 0, n), total = w.batch * w.channels * in_pixels,
                  taps = grt_dims_product(w.kernel, 0, n);
    float *x = window_floats(total, seed);
    for (int64_t i = 0; holes && i < total; i += 3)
        x[i] = NAN;
    float *x_last = last ? window_channels_last(x, w.batch, w.channels, in_pixels) : NULL;
    double *wide = malloc((size_t)total * sizeof *wide);
    ck_assert_ptr_nonnull(wide);
    for (int64_t i = 0; i < total; i++)
        wide[i] = (double)x[i];
    int64_t dims[WINDOW_MOST + 2], out[WINDOW_MOST];
    op_runner r;
    op_begin(&r, last ? "graphrt" : "", max ? "MaxPool" : "AveragePool");
    window_attributes(&r, &w);
    op_ints(&r, "kernel_shape", w.kernel, (size_t)n);
    op_int(&r, "ceil_mode", seed % 3 == 0);
    if (last)
        op_string(&r, "layout", "NHWC");
    window_dims(dims, &w, w.channels, w.in, last);
    op_add(&r, dtype, n + 2, dims, dtype == GRT_DTYPE_DOUBLE ? (void *)wide : last ? x_last : x);
    const bool positions = max && !last && !holes && seed % 2, by_columns = positions && seed % 4 == 3;
    if (by_columns)
        op_int(&r, "storage_order", 1);
    op_run_ok(&r, positions ? 2 : 1);
    memcpy(out, r.out[0].t.dims + (last ? 1 : 2), (size_t)n * sizeof *out);
    const int64_t out_pixels = grt_dims_product(out, 0, n);
    for (int64_t i = 0; i < w.batch * w.channels * out_pixels; i++) {
        const int64_t plane = i / out_pixels, b = plane / w.channels, c = plane % w.channels,
                      p = i % out_pixels;
        double wanted = max ? -INFINITY : 0.0;
        int64_t o[WINDOW_MOST], k[WINDOW_MOST] = {0}, at, count = 0, best = -1;
        window_unflatten(p, out, n, o);
        for (int64_t t = 0; t < taps; t++, window_advance(k, w.kernel, n)) {
            if (!window_position(&w, o, k, &at))
                continue;
            const double v = wide[plane * in_pixels + at];
            count++;
            if (max && v > wanted)
                best = plane * in_pixels + (by_columns ? column_major(at, w.in, n) : at);
            wanted = max ? fmax(wanted, v) : wanted + v;
        }
        if (count == 0)
            continue; /* a window in padding alone has no defined result */
        wanted = max ? wanted : wanted / (double)count;
        const double found = grt_tensor_double(&r.out[0].t, last ? (b * out_pixels + p) * w.channels + c : i);
        ck_assert_msg(fabs(found - wanted) < 1e-6, "seed %u element %lld: %g, expected %g", seed,
                      (long long)i, found, wanted);
        if (r.n_out == 2)
            ck_assert_int_eq(grt_tensor_int(&r.out[1].t, i), best);
    }
    op_end(&r);
    free(x);
    free(x_last);
    free(wide);
}

START_TEST(pools_match_their_definition)
{
    for (uint32_t seed = 0; seed < 60; seed++)
        for (int max = 0; max < 2; max++) {
            const window w = window_random(seed);
            check_pool(&w, seed, max, false, GRT_DTYPE_FLOAT, false);
            check_pool(&w, seed, max, true, GRT_DTYPE_FLOAT, false);
            check_pool(&w, seed, max, false, GRT_DTYPE_DOUBLE, false);
        }
}
END_TEST

/* Short lines, many to a tile; tiles that end within a line; windows nearly as large as their image, and
 * much larger; more channels than a tile has floats. */
static const window pool_windows[] = {
    {2, 2, 3, 3, 1, {20, 20}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {2, 1, 2, 2, 1, {150, 33}, {13, 3}, {1, 2}, {1, 1}, {6, 1, 6, 1}},
    {2, 1, 2, 2, 1, {9, 70}, {3, 7}, {2, 3}, {2, 1}, {2, 3, 1, 0}},
    {1, 1, 2, 2, 1, {30011}, {9}, {4}, {3}, {8, 5}},
    {1, 1, 1, 1, 1, {9000}, {400}, {1}, {1}, {399, 0}},
    {2, 1, 3, 3, 1, {7, 7}, {7, 6}, {1, 1}, {1, 1}, {6, 5, 6, 5}},
    {2, 1, 2, 2, 1, {3, 4}, {300, 300}, {1, 1}, {1, 1}, {150, 150, 150, 150}},
    {3, 1, 5, 5, 1, {6, 5, 70}, {3, 2, 4}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2, 1, 1, 2}},
    {2, 1, 5000, 5000, 1, {3, 4}, {3, 2}, {1, 1}, {1, 1}, {1, 0, 1, 1}},
};

START_TEST(overlapping_pools_match_their_definition)
{
    for (uint32_t i = 0; i < sizeof pool_windows / sizeof *pool_windows; i++)
        for (int last = 0; last < 2; last++) {
            check_pool(&pool_windows[i], i, false, last, GRT_DTYPE_FLOAT, false);
            check_pool(&pool_windows[i], 2 * i, true, last, GRT_DTYPE_FLOAT, false);
            check_pool(&pool_windows[i], i, true, last, GRT_DTYPE_FLOAT, i < 2);
        }
}
END_TEST

UNIT_SUITE(test_window_pools, NULL, NULL, pools_match_their_definition,
           overlapping_pools_match_their_definition)
