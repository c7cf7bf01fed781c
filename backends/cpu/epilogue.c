/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue pass, compiled for the baseline and for AVX2; see epilogue.h. */
#include "backends/cpu/epilogue.h"

#include "backends/cpu/act_apply.h"
#include "backends/cpu/isa.h"

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
    cpu_act_apply(e->act, v, n);
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

void grt_epilogue_run(const grt_epilogue *e, float *dst, int threads)
{
    void (*finish)(const grt_epilogue *, int64_t, float *) = finish_row_c;
#if defined(__x86_64__) && defined(__GNUC__)
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        finish = finish_row_avx2;
#endif
    if (!e->bias && !e->bias_row && !e->residual && e->act.kind == GRT_ACT_NONE)
        return;
    /* A region of one thread costs as much as a short row. */
    if (threads <= 1 || e->rows * e->cols < PARALLEL_FLOATS) {
        for (int64_t row = 0; row < e->rows; row++)
            finish(e, row, dst + row * e->cols);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < e->rows; row++)
        finish(e, row, dst + row * e->cols);
}
