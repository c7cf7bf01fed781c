/* SPDX-License-Identifier: Apache-2.0 */
/* MeanVarianceNormalization. */
#include "backends/cpu/move.h"
#include "backends/cpu/norm.h"
#include "backends/cpu/threads.h"
#include "backends/shared/mvn.h"
#include "src/base/element.h"

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
        cpu_norm_shift(x + at, y + at, n, mean, (float)(1.0 / deviation));
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

static const grt_kernel_row rows[] = {
    {.op = "MeanVarianceNormalization",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = grt_mvn_reshape,
     .release_shape = free,
     .run = run_mvn},
};
CPU_KERNELS(mvn, rows);
