/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization. */
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"
#include "backends/cpu/norm.h"
#include "backends/cpu/threads.h"
#include "backends/shared/lp_norm.h"
#include "src/base/element.h"

/* Neighbouring columns of floats, whose elements are `step` apart, by their norms. */
enum { LP_NORM_COLUMNS = 256 };

CPU_BODY lp_norm_columns_body(const float *x, float *y, int64_t n, int64_t step, int64_t columns,
                              bool squares)
{
    double sum[LP_NORM_COLUMNS] = {0};
    float factor[LP_NORM_COLUMNS];
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
CPU_DISPATCH(lp_norm_columns,
             (const float *x, float *y, int64_t n, int64_t step, int64_t columns, bool squares),
             (x, y, n, step, columns, squares))

static void lp_norm_floats(const grt_lp_norm *s, const grt_run *run, int64_t outer, int64_t n, int64_t inner)
{
    const float *x = run->in[0]->data;
    float *y = run->out[0]->data;
    const int64_t blocks = (inner + LP_NORM_COLUMNS - 1) / LP_NORM_COLUMNS;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t i = 0; i < outer * blocks; i++) {
        const int64_t column = i % blocks * LP_NORM_COLUMNS, left = inner - column,
                      at = i / blocks * n * inner + column;
        if (inner > 1) {
            lp_norm_columns(x + at, y + at, n, inner, left < LP_NORM_COLUMNS ? left : LP_NORM_COLUMNS,
                            s->p != 1);
            continue;
        }
        double sum;
        cpu_rows_best()->fold(s->p == 1 ? CPU_FOLD_ABS : CPU_FOLD_SQUARE, x + at, 1, n, &sum);
        const double norm = s->p == 1 ? sum : sqrt(sum);
        cpu_norm_shift(x + at, y + at, n, 0.0, norm == 0 ? 0.0f : (float)(1.0 / norm));
    }
}

static grt_status run_lp_norm(const grt_run *run)
{
    const grt_lp_norm *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    if (in->dtype == GRT_DTYPE_FLOAT && outer * n * inner > 0) {
        lp_norm_floats(s, run, outer, n, inner);
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

static const grt_kernel_row rows[] = {
    {.op = "LpNormalization",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = grt_lp_norm_supports,
     .create = grt_lp_norm_create,
     .destroy = free,
     .run = run_lp_norm},
};
CPU_KERNELS(lp_norm, rows);
