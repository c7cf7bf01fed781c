/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one column or one row, beside the general kernels: sizes, transposes, what is added. */
#include "backends/cpu/gemm_dots.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, MOST = 600 };

static float *draw(int64_t n, uint32_t *seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    ck_assert(x != NULL);
    for (int64_t i = 0; i < n; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        x[i] = (float)(*seed >> 8) * 0x1p-23f - 1.0f;
    }
    return x;
}

static void compare_products(const grt_gemm *g, uint32_t seed)
{
    const int64_t rest = g->m > g->n ? g->m : g->n, of_c = BATCH * g->stride_c;
    float *a = draw(BATCH * (g->stride_a + 1), &seed), *b = draw(BATCH * (g->stride_b + 1), &seed);
    float *bias = draw(2 * rest, &seed), *residual = draw(of_c, &seed), *c = draw(of_c, &seed);
    float *expected = malloc((size_t)of_c * sizeof *expected);
    grt_gemm with = *g;
    size_t bytes;
    ck_assert(expected != NULL && grt_gemm_is_dots(g));
    memcpy(expected, c, (size_t)of_c * sizeof *expected);
    with.bias = g->bias ? bias : NULL;
    with.bias_row = g->bias_row ? bias + rest : NULL;
    with.residual = g->residual ? residual : NULL;
    ck_assert(grt_gemm_scratch_bytes(&with, 1, &bytes));
    void *scratch = aligned_alloc(64, bytes / 64 * 64 + 64);
    grt_gemm_run(&with, a, b, expected, scratch, 1);
    for (int threads = 1; threads <= 2; threads++) {
        float *found = malloc((size_t)of_c * sizeof *found);
        ck_assert(found != NULL);
        memcpy(found, c, (size_t)of_c * sizeof *found);
        grt_gemm_dots_run(&with, a, b, found, threads);
        for (int64_t i = 0; i < of_c; i++)
            ck_assert_msg(fabsf(found[i] - expected[i]) <= 1e-4f * (1 + fabsf(expected[i])),
                          "%d x %d, k %d, element %d: %g, not %g", (int)g->m, (int)g->n, (int)g->k, (int)i,
                          (double)found[i], (double)expected[i]);
        free(found);
    }
    free(scratch);
    free(expected);
    free(a);
    free(b);
    free(bias);
    free(residual);
    free(c);
}

START_TEST(columns_and_rows)
{
    static const int64_t sizes[] = {1, 2, 7, 64, 257, MOST}, depths[] = {0, 1, 5, 16, 33, 300};
    const float there = 0;
    uint32_t seed = 3;
    for (int form = 0; form < 32; form++)
        for (int s = 0; s < 6; s++)
            for (int d = 0; d < 6; d++) {
                const bool column = form & 1;
                const int64_t m = column ? sizes[s] : 1, n = column ? 1 : sizes[s], k = depths[d];
                grt_gemm g = {.batch = BATCH,
                              .m = m,
                              .n = n,
                              .k = k,
                              .lda = k + 3,
                              .ldb = column ? 1 : k + 1,
                              .ldc = n + (column ? 2 : 0),
                              .ldr = n + (column ? 2 : 0),
                              .trans_b = !column,
                              .alpha = form & 2 ? 0.5f : 1.0f,
                              .beta = form & 4 ? 2.0f : 0.0f};
                g.stride_a = m * g.lda;
                g.stride_b = column ? k : n * g.ldb;
                g.stride_c = g.stride_r = m * g.ldc;
                g.bias = form & 8 ? &there : NULL;
                g.bias_row = form & 16 ? &there : NULL;
                g.residual = form & 8 ? &there : NULL;
                g.act = (grt_act){.kind = form & 16 ? GRT_ACT_RELU : GRT_ACT_NONE};
                compare_products(&g, seed++);
            }
}
END_TEST

START_TEST(other_products)
{
    const grt_gemm wide = {.batch = 1, .m = 4, .n = 2, .k = 8, .lda = 8, .ldb = 2, .ldc = 2};
    grt_gemm g = wide;
    ck_assert(!grt_gemm_is_dots(&g));
    g.n = 1;
    ck_assert(!grt_gemm_is_dots(&g)); /* the column's elements do not lie side by side */
    g.ldb = 1;
    ck_assert(grt_gemm_is_dots(&g));
    g.b_packed = true;
    ck_assert(!grt_gemm_is_dots(&g));
    g.b_packed = false;
    g.trans_a = true;
    ck_assert(!grt_gemm_is_dots(&g));
}
END_TEST

Suite *suite_test_gemm_dots(void);
Suite *suite_test_gemm_dots(void)
{
    Suite *s = suite_create("gemm_dots");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, columns_and_rows);
    tcase_add_test(tc, other_products);
    suite_add_tcase(s, tc);
    return s;
}
