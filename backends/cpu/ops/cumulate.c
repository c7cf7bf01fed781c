/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd, LpNormalization, MeanVarianceNormalization, Det. */
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/threads.h"
#include "backends/shared/cumulate.h"
#include "src/base/element.h"

/* Elements `step` apart, from `at` on; step is negative when going backwards. */
static void cumulate_reals(const grt_cumulate *s, grt_tensor *out, const grt_tensor *in, int64_t at,
                           int64_t n, int64_t step)
{
    double acc = s->product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, at += step) {
        double v = grt_element_get(in, at), next = s->product ? acc * v : acc + v;
        grt_element_put(out, at, s->exclusive ? acc : next);
        acc = next;
    }
}

/* Integers wrap as their type does, which needs nothing but the lower bits. */
static void cumulate_ints(const grt_cumulate *s, grt_tensor *out, const grt_tensor *in, int64_t at, int64_t n,
                          int64_t step)
{
    uint64_t acc = s->product;
    for (int64_t i = 0; i < n; i++, at += step) {
        uint64_t v = (uint64_t)grt_tensor_int(in, at), next = s->product ? acc * v : acc + v;
        uint64_t result = s->exclusive ? acc : next;
        switch (grt_dtype_size(out->dtype)) {
        case 8:
            ((uint64_t *)out->data)[at] = result;
            break;
        case 4:
            ((uint32_t *)out->data)[at] = (uint32_t)result;
            break;
        case 2:
            ((uint16_t *)out->data)[at] = (uint16_t)result;
            break;
        default:
            ((uint8_t *)out->data)[at] = (uint8_t)result;
        }
        acc = next;
    }
}

/* Columns whose sums are made together, fewer where threads would have nothing to do; rows likewise. */
enum { CUMULATE_COLUMNS = 1024, CUMULATE_FEWER = 64, CUMULATE_ROWS = 8 };

#define CUMULATE_INLINE static inline __attribute__((always_inline))

/* `count` rows of n elements, `apart` from each other, whose elements are `step` apart: the sums of one wait
 * for each other, those of several do not. */
CUMULATE_INLINE void cumulate_lines(float *y, const float *x, int64_t n, int64_t step, int64_t apart,
                                    const int count, const bool product, const bool exclusive)
{
    double acc[CUMULATE_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < count; r++)
        acc[r] = product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, x += step, y += step)
#pragma GCC unroll 8
        for (int r = 0; r < count; r++) {
            const double v = (double)x[r * apart], next = product ? acc[r] * v : acc[r] + v;
            y[r * apart] = (float)(exclusive ? acc[r] : next);
            acc[r] = next;
        }
}

/* What is computed is the loops' constant: they are not vectorised otherwise. */
CUMULATE_INLINE void cumulate_columns(float *y, const float *x, int64_t n, int64_t step, int64_t columns,
                                      const bool product, const bool exclusive)
{
    double acc[CUMULATE_COLUMNS];
    for (int64_t c = 0; c < columns; c++)
        acc[c] = product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, x += step, y += step)
#pragma omp simd
        for (int64_t c = 0; c < columns; c++) {
            const double v = (double)x[c], next = product ? acc[c] * v : acc[c] + v;
            y[c] = (float)(exclusive ? acc[c] : next);
            acc[c] = next;
        }
}

CUMULATE_INLINE void cumulate_rows(float *y, const float *x, int64_t n, int64_t step, int64_t rows,
                                   const bool product, const bool exclusive)
{
    int64_t r = 0;
    for (; r + CUMULATE_ROWS <= rows; r += CUMULATE_ROWS)
        cumulate_lines(y + r * n, x + r * n, n, step, n, CUMULATE_ROWS, product, exclusive);
    for (; r < rows; r++)
        cumulate_lines(y + r * n, x + r * n, n, step, n, 1, product, exclusive);
}

#define CUMULATE_BY_KIND(call, ...)          \
    do {                                     \
        if (s->product && s->exclusive)      \
            call(__VA_ARGS__, true, true);   \
        else if (s->product)                 \
            call(__VA_ARGS__, true, false);  \
        else if (s->exclusive)               \
            call(__VA_ARGS__, false, true);  \
        else                                 \
            call(__VA_ARGS__, false, false); \
    } while (0)

/* Neighbouring columns of floats, whose elements are `step` apart, or whole rows, in double as
 * cumulate_reals. */
CPU_BODY cumulate_floats_body(const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step,
                              int64_t columns)
{
    CUMULATE_BY_KIND(cumulate_columns, y, x, n, step, columns);
}
CPU_DISPATCH(cumulate_floats,
             (const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step, int64_t columns),
             (s, y, x, n, step, columns))
CPU_BODY cumulate_whole_body(const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step,
                             int64_t rows)
{
    CUMULATE_BY_KIND(cumulate_rows, y, x, n, step, rows);
}
CPU_DISPATCH(cumulate_whole,
             (const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step, int64_t rows),
             (s, y, x, n, step, rows))

static void cumulate_all_floats(const grt_cumulate *s, const grt_run *run, int64_t outer, int64_t n,
                                int64_t inner)
{
    const float *x = run->in[0]->data;
    float *y = run->out[0]->data;
    const int64_t first = s->reverse ? (n - 1) * inner : 0, step = s->reverse ? -inner : inner;
    const bool many = outer * n * inner > CPU_GRAIN;
    if (inner == 1) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (many)
        for (int64_t row = 0; row < outer; row += CUMULATE_ROWS) {
            const int64_t left = outer - row, at = row * n + first;
            cumulate_whole(s, y + at, x + at, n, step, left < CUMULATE_ROWS ? left : CUMULATE_ROWS);
        }
        return;
    }
    const bool few = outer * ((inner + CUMULATE_COLUMNS - 1) / CUMULATE_COLUMNS) < run->threads;
    const int64_t width = few ? CUMULATE_FEWER : CUMULATE_COLUMNS, blocks = (inner + width - 1) / width;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (many)
    for (int64_t i = 0; i < outer * blocks; i++) {
        const int64_t column = i % blocks * width, left = inner - column,
                      at = i / blocks * n * inner + first + column;
        cumulate_floats(s, y + at, x + at, n, step, left < width ? left : width);
    }
}

static grt_status run_cumulate(const grt_run *run)
{
    const grt_cumulate *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int32_t axis;
    GRT_TRY(grt_cumulate_axis(run->desc, in, run->in[1], &axis));
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    bool ints = grt_dtype_in(in->dtype, GRT_SET_INTS);
    if (in->dtype == GRT_DTYPE_FLOAT && outer * n * inner > 0) {
        cumulate_all_floats(s, run, outer, n, inner);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t at = row / inner * n * inner + row % inner + (s->reverse ? (n - 1) * inner : 0);
        (ints ? cumulate_ints : cumulate_reals)(s, out, in, at, n, s->reverse ? -inner : inner);
    }
    return GRT_OK;
}

/* y = (x - mean) * factor, the mean in two parts: one float alone would move results near 0. */
CPU_BODY shift_and_scale_body(const float *x, float *y, int64_t n, double mean, float factor)
{
    const float high = (float)mean, low = (float)(mean - (double)high);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ((x[i] - high) - low) * factor;
}
CPU_DISPATCH(shift_and_scale, (const float *x, float *y, int64_t n, double mean, float factor),
             (x, y, n, mean, factor))

/* Neighbouring columns of floats, whose elements are `step` apart, by their norms. */
enum { NORM_COLUMNS = 256 };

CPU_BODY norm_columns_body(const float *x, float *y, int64_t n, int64_t step, int64_t columns, bool squares)
{
    double sum[NORM_COLUMNS] = {0};
    float factor[NORM_COLUMNS];
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * step;
        if (squares) {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                sum[c] += (double)row[c] * (double)row[c];
        } else {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                sum[c] += fabs((double)row[c]);
        }
    }
    for (int64_t c = 0; c < columns; c++)
        factor[c] = sum[c] == 0 ? 0.0f : (float)(1.0 / (squares ? sqrt(sum[c]) : sum[c]));
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * step;
        float *to = y + i * step;
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            to[c] = row[c] * factor[c];
    }
}
CPU_DISPATCH(norm_columns, (const float *x, float *y, int64_t n, int64_t step, int64_t columns, bool squares),
             (x, y, n, step, columns, squares))

static void norm_floats(const grt_lp_norm *s, const grt_run *run, int64_t outer, int64_t n, int64_t inner)
{
    const float *x = run->in[0]->data;
    float *y = run->out[0]->data;
    const int64_t blocks = (inner + NORM_COLUMNS - 1) / NORM_COLUMNS;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t i = 0; i < outer * blocks; i++) {
        const int64_t column = i % blocks * NORM_COLUMNS, left = inner - column,
                      at = i / blocks * n * inner + column;
        if (inner > 1) {
            norm_columns(x + at, y + at, n, inner, left < NORM_COLUMNS ? left : NORM_COLUMNS, s->p != 1);
            continue;
        }
        double sum;
        cpu_rows_best()->fold(s->p == 1 ? CPU_FOLD_ABS : CPU_FOLD_SQUARE, x + at, 1, n, &sum);
        const double norm = s->p == 1 ? sum : sqrt(sum);
        shift_and_scale(x + at, y + at, n, 0.0, norm == 0 ? 0.0f : (float)(1.0 / norm));
    }
}

static grt_status run_norm(const grt_run *run)
{
    const grt_lp_norm *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    if (in->dtype == GRT_DTYPE_FLOAT && outer * n * inner > 0) {
        norm_floats(s, run, outer, n, inner);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t base = row / inner * n * inner + row % inner;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = grt_element_get(in, base + i * inner);
            sum += s->p == 1 ? fabs(v) : v * v;
        }
        double norm = s->p == 1 ? sum : sqrt(sum);
        for (int64_t i = 0; i < n; i++)
            grt_element_put(run->out[0], base + i * inner,
                            norm == 0 ? 0 : grt_element_get(in, base + i * inner) / norm);
    }
    return GRT_OK;
}

static int64_t walk_offset(const grt_axes_walk *w, int64_t flat)
{
    return grt_strided_offset(w->dims, w->rank, w->strides, flat);
}

/* Elements that lie one behind the other at the end of a walk. */
static int64_t dense_run(const grt_axes_walk *w)
{
    int64_t n = 1;
    for (int32_t i = w->rank - 1; i >= 0 && (w->strides[i] == n || w->dims[i] == 1); i--)
        n *= w->dims[i];
    return n;
}

/* One mean of float32 that is made of runs of n values. */
static void mvn_floats(const grt_axes_walk *over, int64_t n, const float *x, float *y)
{
    const int64_t runs = over->total / n;
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < runs; r++) {
        double part;
        cpu_rows_best()->fold(CPU_FOLD_SUM, x + walk_offset(over, r * n), 1, n, &part);
        sum += part;
    }
    const double mean = sum / (double)over->total;
    for (int64_t r = 0; r < runs; r++) {
        float part_mean, variance;
        cpu_rows_best()->stats(x + walk_offset(over, r * n), n, false, &part_mean, &variance);
        const double d = (double)part_mean - mean;
        squares += ((double)variance + d * d) * (double)n;
    }
    const double deviation = sqrt(squares / (double)over->total) + 1e-9;
    for (int64_t r = 0; r < runs; r++) {
        const int64_t at = walk_offset(over, r * n);
        shift_and_scale(x + at, y + at, n, mean, (float)(1.0 / deviation));
    }
}

static grt_status run_mvn(const grt_run *run)
{
    const grt_mvn *s = run->shape;
    const grt_axes_walk kept = s->kept, over = s->over;
    const grt_tensor *in = run->in[0];
    const int64_t dense = over.total > 0 ? dense_run(&over) : 0;
    enum { LEAST_RUN = 16 };
    if (in->dtype == GRT_DTYPE_FLOAT && dense >= LEAST_RUN) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (kept.total * over.total > CPU_GRAIN)
        for (int64_t row = 0; row < kept.total; row++) {
            const int64_t base = walk_offset(&kept, row);
            mvn_floats(&over, dense, (const float *)in->data + base, (float *)run->out[0]->data + base);
        }
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (kept.total * over.total > CPU_GRAIN)
    for (int64_t row = 0; row < kept.total; row++) {
        int64_t base = walk_offset(&kept, row);
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < over.total; i++)
            sum += grt_element_get(in, base + walk_offset(&over, i));
        double mean = sum / (double)over.total;
        for (int64_t i = 0; i < over.total; i++) {
            double d = grt_element_get(in, base + walk_offset(&over, i)) - mean;
            squares += d * d;
        }
        double deviation = sqrt(squares / (double)over.total) + 1e-9;
        for (int64_t i = 0; i < over.total; i++) {
            int64_t at = base + walk_offset(&over, i);
            grt_element_put(run->out[0], at, (grt_element_get(in, at) - mean) / deviation);
        }
    }
    return GRT_OK;
}

static grt_status reshape_det(grt_reshape *reshape)
{
    const grt_tensor *in = reshape->in[0];
    int64_t n = in->dims[in->rank - 1];
    GRT_TRY(grt_det_check(reshape));
    reshape->workspace_bytes = (size_t)(n * n) * sizeof(double) * (size_t)reshape->threads;
    return GRT_OK;
}

/* Product of the pivots of an elimination with row exchange; `a` is used up. */
static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (a[pivot * n + k] == 0)
            return 0;
        for (int64_t j = k; j < n && pivot != k; j++) {
            double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = other;
        }
        det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static grt_status run_det(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    int64_t n = in->dims[in->rank - 1], count = grt_dims_product(in->dims, 0, in->rank - 2);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (count * n * n * n > CPU_GRAIN)
    for (int64_t m = 0; m < count; m++) {
        double *a = (double *)run->workspace + n * n * cpu_thread();
        for (int64_t i = 0; i < n * n; i++)
            a[i] = grt_element_get(in, m * n * n + i);
        grt_element_put(run->out[0], m, determinant(a, n));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "CumSum",
     .domain = "",
     .types = {GRT_SET_NUMBERS, CPU_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = grt_cumulate_create,
     .destroy = free,
     .run = run_cumulate},
    {.op = "CumProd",
     .domain = "",
     .types = {GRT_SET_NUMBERS, CPU_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = grt_cumulate_create,
     .destroy = free,
     .run = run_cumulate},
    {.op = "LpNormalization",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = grt_lp_norm_supports,
     .create = grt_lp_norm_create,
     .destroy = free,
     .run = run_norm},
    {.op = "MeanVarianceNormalization",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = grt_mvn_reshape,
     .release_shape = free,
     .run = run_mvn},
    {.op = "Det", .domain = "", .types = {GRT_SET_FLOATS}, .reshape = reshape_det, .run = run_det},
};
CPU_KERNELS(cumulate, rows);
