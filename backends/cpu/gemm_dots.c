/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/gemm_dots.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/rows.h"

enum { ROWS = 256 /* inner products at a time */ };

static bool is_column(const grt_gemm *g)
{
    return g->n == 1 && !g->trans_a && (g->trans_b || g->ldb == 1);
}

static bool is_row(const grt_gemm *g)
{
    return g->m == 1 && g->trans_b && (!g->trans_a || g->lda == 1);
}

bool grt_gemm_is_dots(const grt_gemm *g)
{
    return !g->b_packed && (is_column(g) || is_row(g));
}

/* Elements [begin, end) of one matrix. */
static void gemm_dots_of_part(const grt_gemm *g, int64_t item, const float *a, const float *b, float *c,
                              int64_t begin, int64_t end)
{
    const bool column = is_column(g);
    const float *vector = column ? b + item * g->stride_b : a + item * g->stride_a;
    const float *matrix = column ? a + item * g->stride_a : b + item * g->stride_b;
    const int64_t row = column ? g->lda : g->ldb, c_step = column ? g->ldc : 1, r_step = column ? g->ldr : 1;
    const float *along = column ? g->bias_row : g->bias, *one = column ? g->bias : g->bias_row;
    const int64_t of_bias = item * g->stride_bias;
    float v[ROWS];
    for (int64_t at = begin; at < end; at += ROWS) {
        const int64_t n = end - at < ROWS ? end - at : ROWS;
        float *to = c + item * g->stride_c + at * c_step;
        cpu_rows_best()->dots(vector, matrix + at * row, row, n, g->k, g->alpha, v);
        for (int64_t i = 0; i < n && g->beta != 0; i++)
            v[i] += g->beta * to[i * c_step];
        for (int64_t i = 0; i < n && along; i++)
            v[i] += along[(column ? 0 : of_bias) + at + i];
        for (int64_t i = 0; i < n && one; i++)
            v[i] += one[column ? of_bias : 0];
        for (int64_t i = 0; i < n && g->residual; i++)
            v[i] += g->residual[item * g->stride_r + (at + i) * r_step];
        grt_act_apply(g->act, v, n);
        for (int64_t i = 0; i < n; i++)
            to[i * c_step] = v[i];
    }
}

void grt_gemm_dots_run(const grt_gemm *g, const float *a, const float *b, float *c, int threads)
{
    const int64_t rows = is_column(g) ? g->m : g->n, parts = (rows + ROWS - 1) / ROWS;
    if (g->batch <= 0 || rows <= 0)
        return;
    const bool many = threads > 1 && g->batch * rows * (g->k + 1) > 2 * CPU_GRAIN;
#pragma omp parallel for num_threads(threads) schedule(static) if (many)
    for (int64_t p = 0; p < g->batch * parts; p++) {
        const int64_t begin = p % parts * ROWS, end = begin + ROWS < rows ? begin + ROWS : rows;
        gemm_dots_of_part(g, p / parts, a, b, c, begin, end);
    }
}
