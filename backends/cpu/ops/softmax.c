/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax along one axis. */
#include "backends/cpu/act.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "src/base/element.h"
#include "backends/cpu/rows.h"
#include "backends/shared/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64 };

/* Up to LANES neighbouring columns, the axis running down with distance `step`. The numbers of a column are
 * few loops of one kind each, without a choice inside: a choice between results kept them scalar. */
CPU_BODY softmax_columns_body(const float *x, float *y, int64_t n, int64_t step, int64_t lanes, bool log)
{
    float top[LANES], sum[LANES];
    for (int64_t l = 0; l < lanes; l++) {
        top[l] = -INFINITY;
        sum[l] = 0.0f;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * step;
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++)
            top[l] = row[l] > top[l] ? row[l] : top[l];
    }
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * step;
        float *to = y + i * step, e[LANES];
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++) {
            e[l] = grt_act_exp_low(row[l] - top[l]);
            sum[l] += e[l];
        }
        if (log) {
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++)
                to[l] = row[l] - top[l];
        } else {
            memcpy(to, e, (size_t)lanes * sizeof *e);
        }
    }
    for (int64_t l = 0; l < lanes; l++)
        sum[l] = log ? -logf(sum[l]) : 1.0f / sum[l];
    for (int64_t i = 0; i < n; i++) {
        float *to = y + i * step;
        if (log) {
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++)
                to[l] += sum[l];
        } else {
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++)
                to[l] *= sum[l];
        }
    }
}
CPU_DISPATCH(softmax_columns, (const float *x, float *y, int64_t n, int64_t step, int64_t lanes, bool log),
             (x, y, n, step, lanes, log))

static void softmax_run_float(const grt_softmax *s, const float *x, float *y, int threads)
{
    const int64_t blocks = (s->inner + LANES - 1) / LANES, matrix = s->size * s->inner;
    const bool many = s->outer * matrix > CPU_GRAIN / 4;
    if (s->inner == 1) {
        const cpu_rows *loops = cpu_rows_best();
#pragma omp parallel for num_threads(threads) if (many)
        for (int64_t i = 0; i < (s->size ? s->outer : 0); i++)
            loops->softmax(x + i * s->size, y + i * s->size, 1, s->size, s->log);
        return;
    }
#pragma omp parallel for num_threads(threads) if (many)
    for (int64_t i = 0; i < s->outer * blocks; i++) {
        const int64_t column = i % blocks * LANES, left = s->inner - column,
                      at = i / blocks * matrix + column;
        softmax_columns(x + at, y + at, s->size, s->inner, left < LANES ? left : LANES, s->log);
    }
}

static void softmax_run_exact(const grt_softmax *s, const grt_tensor *x, grt_tensor *y, int threads)
{
#pragma omp parallel for num_threads(threads) if (s->outer * s->size * s->inner > CPU_GRAIN / 4)
    for (int64_t i = 0; i < s->outer * s->inner; i++) {
        const int64_t at = i / s->inner * s->size * s->inner + i % s->inner;
        double top = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < s->size; k++)
            top = fmax(top, grt_element_get(x, at + k * s->inner));
        for (int64_t k = 0; k < s->size; k++)
            sum += exp(grt_element_get(x, at + k * s->inner) - top);
        for (int64_t k = 0; k < s->size; k++) {
            const double d = grt_element_get(x, at + k * s->inner) - top;
            grt_element_put(y, at + k * s->inner, s->log ? d - log(sum) : exp(d) / sum);
        }
    }
}

static grt_status softmax_run(const grt_run *r)
{
    if (r->in[0]->dtype == GRT_DTYPE_FLOAT)
        softmax_run_float(r->shape, r->in[0]->data, r->out[0]->data, r->threads);
    else
        softmax_run_exact(r->shape, r->in[0], r->out[0], r->threads);
    return GRT_OK;
}

#define ROW(name)                                                                         \
    {                                                                                     \
        .domain = "", .op = name, .types = {CPU_FLOATS}, .flags = GRT_KERNEL_IN_PLACE(0), \
        .reshape = grt_softmax_reshape, .release_shape = free, .run = softmax_run         \
    }

static const grt_kernel_row rows[] = {ROW("Softmax"), ROW("LogSoftmax")};
CPU_KERNELS(softmax, rows);
