/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample and AffineGrid. */
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"
#include "backends/shared/grid_sample.h"
#include "src/base/element.h"
#include "src/base/int64.h"

#include <string.h>

/* Sum over all combinations of the axes' taps, from axis `k` on. */
static double sample(const grt_tensor *in, const grt_grid_taps *all, const int64_t *strides, int32_t k,
                     int32_t n, int64_t offset)
{
    double sum = 0;
    for (int32_t i = 0; i < all[k].n; i++) {
        if (all[k].index[i] < 0 || all[k].weight[i] == 0)
            continue;
        int64_t at = offset + all[k].index[i] * strides[k];
        sum +=
            all[k].weight[i] * (k + 1 < n ? sample(in, all, strides, k + 1, n, at) : grt_element_get(in, at));
    }
    return sum;
}

/* The taps of all axes of point p. */
static void find_all_taps(const grt_grid *s, const grt_tensor *in, const grt_tensor *grid, int64_t p,
                          grt_grid_taps *all)
{
    const int32_t n = in->rank - 2;
    for (int32_t k = 0; k < n; k++) /* the grid names the last axis first */
        grt_grid_find_taps(s, grt_element_get(grid, p * n + n - 1 - k), in->dims[k + 2], &all[k]);
}

/* Points beside each other with the combinations of their axes' taps, of which every channel is a weighted
 * sum. Those outside have no weight. */
enum { GRID_POINTS = 32, GRID_TAPS = 64 };
typedef struct grid_block {
    int32_t at[GRID_TAPS][GRID_POINTS];
    float weight[GRID_TAPS][GRID_POINTS];
    int32_t taps;
} grid_block;

static void combine_taps(const grt_grid_taps *all, const int64_t *strides, int32_t n, int64_t p,
                         grid_block *b)
{
    b->taps = 1;
    for (int32_t k = 0; k < n; k++)
        b->taps *= all[k].n;
    for (int32_t t = 0; t < b->taps; t++) {
        int64_t at = 0;
        double weight = 1;
        for (int32_t k = n - 1, rest = t; k >= 0; rest /= all[k--].n) {
            const int32_t i = rest % all[k].n;
            weight *= all[k].index[i] < 0 ? 0 : all[k].weight[i];
            at += all[k].index[i] < 0 ? 0 : all[k].index[i] * strides[k];
        }
        b->at[t][p] = (int32_t)at;
        b->weight[t][p] = (float)weight;
    }
}

typedef float grid_four __attribute__((vector_size(4 * sizeof(float))));
typedef int32_t grid_mask __attribute__((vector_size(4 * sizeof(int32_t))));

/* By scalar loads, which gathering instructions take twice as long as on several processors. What no tap
 * reads may be infinite. */
static void sum_points(const grid_block *b, const float *x, int64_t points, float *y)
{
    float sums[GRID_POINTS];
    for (int64_t p = 0; p < points; p += 4) {
        grid_four sum = {0};
        for (int32_t t = 0; t < b->taps; t++) {
            const int32_t *at = b->at[t] + p;
            const grid_four value = {x[at[0]], x[at[1]], x[at[2]], x[at[3]]};
            grid_four weight;
            memcpy(&weight, b->weight[t] + p, sizeof weight);
            const grid_mask counts = weight != 0.0f;
            sum += (grid_four)((grid_mask)(weight * value) & counts);
        }
        memcpy(sums + p, &sum, sizeof sum);
    }
    memcpy(y, sums, (size_t)points * sizeof *y);
}

static grt_status sample_floats(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *out = run->out[0];
    int64_t strides[GRT_MAX_RANK];
    const int64_t points = grt_dims_product(out->dims, 2, out->rank), channels = in->dims[1],
                  blocks = (points + GRID_POINTS - 1) / GRID_POINTS;
    grt_dims_strides(in->dims, in->rank, strides);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (points * channels > CPU_GRAIN / 4)
    for (int64_t i = 0; i < in->dims[0] * blocks; i++) {
        const int64_t image = i / blocks, first = i % blocks * GRID_POINTS,
                      count = grt_min64(GRID_POINTS, points - first);
        grid_block b = {.taps = 0};
        for (int64_t p = 0; p < count; p++) {
            grt_grid_taps all[GRT_MAX_RANK];
            find_all_taps(run->state, in, run->in[1], image * points + first + p, all);
            combine_taps(all, strides + 2, in->rank - 2, p, &b);
        }
        const float *x = (const float *)in->data + image * strides[0];
        float *y = (float *)out->data + image * channels * points + first;
        for (int64_t c = 0; c < channels; c++)
            sum_points(&b, x + c * strides[1], count, y + c * points);
    }
    return GRT_OK;
}

static grt_status run_grid(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *grid = run->in[1];
    grt_tensor *out = run->out[0];
    int32_t n = in->rank - 2;
    int64_t strides[GRT_MAX_RANK], channels = in->dims[1], points = grt_dims_product(out->dims, 2, out->rank);
    grt_dims_strides(in->dims, in->rank, strides);
    if (in->dtype == GRT_DTYPE_FLOAT && n <= 3 && strides[1] <= INT32_MAX && strides[1] > 0)
        return sample_floats(run);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (points * channels > CPU_GRAIN / 16)
    for (int64_t p = 0; p < in->dims[0] * points; p++) {
        grt_grid_taps all[GRT_MAX_RANK];
        find_all_taps(run->state, in, grid, p, all);
        for (int64_t c = 0; c < channels; c++) {
            int64_t from = p / points * strides[0] + c * strides[1];
            grt_element_put(out, (p / points * channels + c) * points + p % points,
                            sample(in, all, strides + 2, 0, n, from));
        }
    }
    return GRT_OK;
}

/* One line of points, whose coordinate along the last axis is first + i * step: coordinate r is the sum of
 * what the line has and slope[r] times that. `n` is a constant where this is inlined. */
CPU_BODY affine_points(const int32_t n, int64_t size, double first, double step, const double *of_line,
                       const double *slope, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < size; i++) {
        const double x = first + (double)(int32_t)i * step;
        for (int32_t r = 0; r < n; r++)
            y[i * n + r] = (float)(of_line[r] + slope[r] * x);
    }
}

CPU_BODY affine_line_body(int32_t n, int64_t size, double first, double step, const double *of_line,
                          const double *slope, float *y)
{
    if (n == 2)
        affine_points(2, size, first, step, of_line, slope, y);
    else
        affine_points(n, size, first, step, of_line, slope, y);
}
CPU_DISPATCH(affine_line,
             (int32_t n, int64_t size, double first, double step, const double *of_line, const double *slope,
              float *y),
             (n, size, first, step, of_line, slope, y))

static void affine_floats(const grt_tensor *theta, grt_tensor *out, bool align, int threads)
{
    const int32_t n = out->rank - 2;
    const int64_t size = out->dims[n], lines = grt_dims_product(out->dims, 1, n);
    const double first = grt_affine_point(align, 0, size),
                 step = size > 1 ? (grt_affine_point(align, size - 1, size) - first) / (double)(size - 1) : 0;
#pragma omp parallel for num_threads(threads) \
    schedule(static) if (out->dims[0] * lines * size > CPU_GRAIN / 8)
    for (int64_t line = 0; line < out->dims[0] * lines; line++) {
        const float *t = (const float *)theta->data + line / lines * n * (n + 1);
        double of_line[GRT_MAX_RANK], slope[GRT_MAX_RANK];
        for (int32_t r = 0; r < n; r++) {
            const float *row = t + r * (n + 1);
            int64_t rest = line % lines;
            of_line[r] = (double)row[n];
            slope[r] = (double)row[0];
            for (int32_t k = n - 2; k >= 0; k--) { /* coordinates start with that of the last axis */
                const int64_t dim = out->dims[k + 1];
                of_line[r] += (double)row[n - 1 - k] * grt_affine_point(align, rest % dim, dim);
                rest /= dim;
            }
        }
        affine_line(n, size, first, step, of_line, slope, (float *)out->data + line * size * n);
    }
}

static grt_status run_affine(const grt_run *run)
{
    const grt_tensor *theta = run->in[0];
    grt_tensor *out = run->out[0];
    bool align = *(const bool *)run->state;
    int32_t n = out->rank - 2;
    int64_t points = grt_dims_product(out->dims, 1, n + 1);
    if (theta->dtype == GRT_DTYPE_FLOAT && out->dims[n] <= INT32_MAX) {
        affine_floats(theta, out, align, run->threads);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (out->dims[0] * points > CPU_GRAIN / 8)
    for (int64_t p = 0; p < out->dims[0] * points; p++) {
        double at[GRT_MAX_RANK];
        int64_t rest = p % points;
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = out->dims[k + 1], i = rest % size;
            rest /= size;
            at[n - 1 - k] = grt_affine_point(align, i, size);
        }
        for (int32_t r = 0; r < n; r++) {
            int64_t row = (p / points * n + r) * (n + 1);
            double sum = grt_element_get(theta, row + n);
            for (int32_t k = 0; k < n; k++)
                sum += grt_element_get(theta, row + k) * at[k];
            grt_element_put(out, p * n + r, sum);
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "GridSample",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = grt_grid_create,
     .destroy = free,
     .reshape = grt_grid_reshape,
     .run = run_grid},
    {.op = "AffineGrid",
     .domain = "",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = grt_affine_create,
     .destroy = free,
     .reshape = grt_affine_reshape,
     .run = run_affine},
};
CPU_KERNELS(grid_sample, rows);
