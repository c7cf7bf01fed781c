/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue pass, compiled for the baseline and for AVX2; see epilogue.h. */
#include "backends/cpu/epilogue.h"

#include "backends/cpu/act_apply.h"
#include "backends/cpu/isa.h"
#include "src/base/int64.h"

#define BLOCK_FLOATS    2048  /* rows that stay in the first-level cache between additions and activation */
#define PARALLEL_FLOATS 16384 /* below this a second thread costs more than it saves */

GRT_ACT_INLINE void finish_row(const grt_epilogue *e, int64_t row, float *v)
{
    const int64_t n = e->cols;
    if (e->bias) {
        const float *bias = e->bias;
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            v[j] += bias[j];
    }
    if (e->bias_row) {
        const float bias = e->bias_row[row % e->bias_rows];
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            v[j] += bias;
    }
    if (e->residual) {
        const float *r = e->residual + row * n;
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            v[j] += r[j];
    }
}

static void finish_row_c(const grt_epilogue *e, int64_t row, float *v)
{
    finish_row(e, row, v);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void finish_row_avx2(const grt_epilogue *e, int64_t row, float *v)
{
    finish_row(e, row, v);
}
#endif

typedef void row_loop(const grt_epilogue *, int64_t, float *);

/* Rows that are neighbours in memory: the activation goes over all of them at once. */
static void finish_rows(const grt_epilogue *e, row_loop *finish, int64_t first, int64_t rows, float *dst)
{
    const bool adds = e->bias || e->bias_row || e->residual;
    for (int64_t row = first; row < first + rows && adds; row++)
        finish(e, row, dst + row * e->cols);
    cpu_act_apply(e->act, dst + first * e->cols, rows * e->cols);
}

void grt_epilogue_run(const grt_epilogue *e, float *dst, int threads)
{
    row_loop *finish = finish_row_c;
#if defined(__x86_64__) && defined(__GNUC__)
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        finish = finish_row_avx2;
#endif
    if ((!e->bias && !e->bias_row && !e->residual && e->act.kind == GRT_ACT_NONE) || e->cols <= 0)
        return;
    const int64_t block = e->cols < BLOCK_FLOATS ? BLOCK_FLOATS / e->cols : 1;
    /* A region of one thread costs as much as a short row. */
    if (threads <= 1 || e->rows * e->cols < PARALLEL_FLOATS) {
        for (int64_t row = 0; row < e->rows; row += block)
            finish_rows(e, finish, row, grt_min64(block, e->rows - row), dst);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < e->rows; row += block)
        finish_rows(e, finish, row, grt_min64(block, e->rows - row), dst);
}
