/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16: every kernel that this machine has against sums in double of the rounded numbers. */
#include "backends/cpu/bgemm.h"
#include "backends/cpu/bgemm_kernel.h"
#include "src/base/float.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    grt_bgemm g;
    bool trans_b;
    int64_t ldb;
    float *a, *b, *bias, *residual;
    double *exact_a, *exact_b; /* rounded: [m][k] and [n][k] */
    uint16_t *narrow_a, *narrow_residual, *packed;
} problem;

static float *bgemm_random_floats(int64_t n, uint32_t seed)
{
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    fill_floats(data, n, seed);
    return data;
}

static float bgemm_rounded(float x)
{
    return grt_bfloat16_to_float(grt_float_to_bfloat16(x));
}

/* Rounds the numbers in place as well. */
static uint16_t *bgemm_narrowed(float *x, int64_t n)
{
    uint16_t *data = malloc((size_t)(n + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n; i++) {
        data[i] = grt_float_to_bfloat16(x[i]);
        x[i] = bgemm_rounded(x[i]);
    }
    return data;
}

/* The rounded numbers of rows i of k: from[i * row + x * step]. */
static double *bgemm_exact(const float *from, int64_t rows, int64_t k, int64_t row, int64_t step)
{
    double *data = malloc((size_t)(rows * k + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t x = 0; x < k; x++)
            data[i * k + x] = (double)bgemm_rounded(from[i * row + x * step]);
    return data;
}

static problem bgemm_make_problem(uint32_t seed)
{
    problem p = {0};
    uint32_t r = seed * 2654435761u;
#define PICK(n) ((int64_t)((r = r * 1664525u + 1013904223u) >> 16) % (n))
    const bool big = seed % 11 == 0;
    grt_bgemm *g = &p.g;
    g->m = PICK(3) ? 1 + PICK(big ? 700 : 70) : PICK(5);
    g->n = PICK(big ? 300 : 90);
    g->k = PICK(big ? 1200 : 150);
    p.trans_b = PICK(2) != 0;
    p.ldb = (p.trans_b ? g->k : g->n) + PICK(4);
    g->lda = g->k + PICK(5);
    g->ldc = g->n + PICK(4);
    g->ldr = g->n + PICK(3);
    g->alpha = PICK(2) ? 1.0f : 0.7f;
    g->act.kind = (grt_act_kind[]){GRT_ACT_NONE, GRT_ACT_RELU, GRT_ACT_GELU_ERF}[PICK(3)];
    g->a_dtype = PICK(2) ? GRT_DTYPE_FLOAT : GRT_DTYPE_BFLOAT16;
    g->c_dtype = PICK(2) ? GRT_DTYPE_FLOAT : GRT_DTYPE_BFLOAT16;
    p.a = bgemm_random_floats(g->m * g->lda, seed + 1);
    p.b = bgemm_random_floats((p.trans_b ? g->n : g->k) * p.ldb, seed + 2);
    p.bias = bgemm_random_floats(g->n, seed + 3);
    p.residual = bgemm_random_floats(g->m * g->ldr, seed + 4);
    if (g->a_dtype == GRT_DTYPE_BFLOAT16)
        p.narrow_a = bgemm_narrowed(p.a, g->m * g->lda);
    if (g->c_dtype == GRT_DTYPE_BFLOAT16)
        p.narrow_residual = bgemm_narrowed(p.residual, g->m * g->ldr);
    g->bias = PICK(2) ? p.bias : NULL;
    if (PICK(3))
        g->residual = p.narrow_residual ? (const void *)p.narrow_residual : p.residual;
    size_t bytes;
    ck_assert(grt_bgemm_packed_bytes(g->k, g->n, &bytes));
    p.packed = aligned_alloc(64, (bytes + 127) / 64 * 64);
    ck_assert_ptr_nonnull(p.packed);
    grt_bgemm_pack(g->k, g->n, GRT_DTYPE_FLOAT, p.b, p.ldb, p.trans_b, p.packed);
    p.exact_a = bgemm_exact(p.a, g->m, g->k, g->lda, 1);
    p.exact_b = bgemm_exact(p.b, g->n, g->k, p.trans_b ? p.ldb : 1, p.trans_b ? 1 : p.ldb);
    return p;
}

static void bgemm_release_problem(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->exact_a);
    free(p->exact_b);
    free(p->bias);
    free(p->residual);
    free(p->narrow_a);
    free(p->narrow_residual);
    free(p->packed);
}

/* C, with a row's gap set to a pattern, in floats or in bfloat16. */
static void *bgemm_compute(const problem *p, int threads)
{
    const size_t size = p->g.c_dtype == GRT_DTYPE_FLOAT ? 4 : 2, bytes = (size_t)(p->g.m * p->g.ldc) * size;
    size_t scratch_bytes;
    ck_assert(grt_bgemm_scratch_bytes(&p->g, threads, &scratch_bytes));
    void *scratch = aligned_alloc(64, (scratch_bytes + 127) / 64 * 64), *c = malloc(bytes + 1);
    ck_assert(scratch && c);
    memset(scratch, 0xff, scratch_bytes); /* NaN: nothing of it may be read */
    memset(c, 0x5a, bytes);
    grt_bgemm_run(&p->g, p->narrow_a ? (const void *)p->narrow_a : p->a, p->packed, c, scratch, threads);
    free(scratch);
    return c;
}

static double bgemm_expected_at(const problem *p, int64_t i, int64_t j, double *out_magnitude)
{
    const grt_bgemm *g = &p->g;
    const double *a = p->exact_a + i * g->k, *b = p->exact_b + j * g->k;
    double sum = 0, magnitude = 1;
    for (int64_t x = 0; x < g->k; x++) {
        const double product = a[x] * b[x];
        sum += product;
        magnitude += fabs(product);
    }
    sum = sum * (double)g->alpha + (g->bias ? (double)g->bias[j] : 0.0) +
          (g->residual ? (double)p->residual[i * g->ldr + j] : 0.0);
    if (g->act.kind == GRT_ACT_RELU && sum < 0)
        sum = 0;
    if (g->act.kind == GRT_ACT_GELU_ERF)
        sum *= 0.5 * erfc(-sum / sqrt(2.0));
    *out_magnitude = magnitude;
    return sum;
}

static void bgemm_check_problem(const problem *p, const void *c)
{
    const grt_bgemm *g = &p->g;
    const bool narrow = g->c_dtype == GRT_DTYPE_BFLOAT16;
    const float *wide_c = c;
    const uint16_t *narrow_c = c;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->ldc; j += j < g->n ? 1 + (i + j) % 3 : 1) {
            const int64_t at = i * g->ldc + j;
            const double found = (double)(narrow ? grt_bfloat16_to_float(narrow_c[at]) : wide_c[at]);
            if (j >= g->n) {
                ck_assert(narrow ? narrow_c[at] == 0x5a5a : !memcmp(&wide_c[at], "ZZZZ", 4));
                continue;
            }
            double magnitude;
            const double wanted = bgemm_expected_at(p, i, j, &magnitude);
            /* Sums in float32; then half a step of bfloat16's eight bits. */
            const double most = 2e-6 * magnitude + (narrow ? fabs(wanted) * 0x1p-8 : 0);
            ck_assert_msg(fabs(found - wanted) <= most, "m %lld n %lld k %lld at %lld, %lld: %g, expected %g",
                          (long long)g->m, (long long)g->n, (long long)g->k, (long long)i, (long long)j,
                          found, wanted);
        }
}

START_TEST(products_match_double_and_do_not_depend_on_threads)
{
    for (uint32_t seed = 0; seed < 250; seed++) {
        problem p = bgemm_make_problem(seed);
        void *one = bgemm_compute(&p, 1), *three = bgemm_compute(&p, 3);
        bgemm_check_problem(&p, one);
        ck_assert_int_eq(
            memcmp(one, three, (size_t)(p.g.m * p.g.ldc) * (p.g.c_dtype == GRT_DTYPE_FLOAT ? 4 : 2)), 0);
        free(one);
        free(three);
        bgemm_release_problem(&p);
    }
}
END_TEST

/* Every kernel of the machine on the same blocks, against the portable one. */
static void bgemm_check_kernel(const grt_bgemm_kernel *kernel)
{
    enum { K = 96, MOST = 32 };
    float a[MOST * K], sums[MOST * GRT_BGEMM_COLS], wanted[MOST * GRT_BGEMM_COLS];
    uint16_t narrow[MOST * K], b[GRT_BGEMM_COLS * K];
    for (int i = 0; i < MOST * K; i++) {
        narrow[i] = grt_float_to_bfloat16((float)(i * 7919 % 255 - 127) / 64.0f);
        a[i] = grt_bfloat16_to_float(narrow[i]);
    }
    for (int i = 0; i < GRT_BGEMM_COLS * K; i++)
        b[i] = grt_float_to_bfloat16((float)(i * 104729 % 127 - 63) / 32.0f);
    for (int rows = 1; rows <= kernel->rows; rows++)
        for (int panels = 1; panels <= GRT_BGEMM_PANELS; panels++)
            for (int adds = 0; adds < 2; adds++) {
                for (int i = 0; i < MOST * GRT_BGEMM_COLS; i++)
                    sums[i] = wanted[i] = (float)(i % 13);
                grt_bgemm_block at = {.panels = panels, .k = K, .lda = K, .b = b, .panel_stride = 16 * K};
                at.adds = adds != 0;
                for (int i = 0; i < rows; i++) {
                    at.rows = 1;
                    at.a = a + i * K;
                    at.sums = wanted + i * GRT_BGEMM_COLS;
                    grt_bgemm_kernel_c.block(&at);
                }
                at.rows = rows;
                at.a = kernel->wide_a ? (const void *)a : narrow;
                at.sums = sums;
                kernel->block(&at);
                for (int i = 0; i < MOST * GRT_BGEMM_COLS; i++)
                    ck_assert_msg(fabsf(sums[i] - wanted[i]) <= 1e-4f,
                                  "%s, %d rows, %d panels, sum %d: %g, expected %g", kernel->name, rows,
                                  panels, i, (double)sums[i], (double)wanted[i]);
            }
    if (kernel->end)
        kernel->end();
}

START_TEST(kernels_agree)
{
    const grt_bgemm_kernel *const kernels[] = {&grt_bgemm_kernel_c, grt_bgemm_kernel_avx2(),
                                               grt_bgemm_kernel_avx512(), grt_bgemm_kernel_avx512_bf16(),
                                               grt_bgemm_kernel_amx()};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i])
            bgemm_check_kernel(kernels[i]);
}
END_TEST

START_TEST(weights_come_back_rounded)
{
    enum { K = 37, N = 41 };
    float b[K * N], back[K * N];
    size_t bytes;
    fill_floats(b, K * N, 5);
    ck_assert(grt_bgemm_packed_bytes(K, N, &bytes));
    uint16_t *packed = malloc(bytes);
    ck_assert_ptr_nonnull(packed);
    for (int trans = 0; trans < 2; trans++) {
        grt_bgemm_pack(K, N, GRT_DTYPE_FLOAT, b, trans ? K : N, trans, packed);
        grt_bgemm_unpack(K, N, packed, trans, GRT_DTYPE_FLOAT, back);
        for (int i = 0; i < K * N; i++)
            ck_assert(back[i] == bgemm_rounded(b[i]));
    }
    free(packed);
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_refused)
{
    size_t bytes;
    ck_assert(!grt_bgemm_packed_bytes(-1, 4, &bytes));
    ck_assert(!grt_bgemm_packed_bytes(INT64_MAX / 8, INT64_MAX / 8, &bytes));
    const grt_bgemm g = {.m = INT64_MAX / 2, .n = 64, .k = INT64_MAX / 2, .alpha = 1};
    ck_assert(!grt_bgemm_scratch_bytes(&g, 2, &bytes));
}
END_TEST

UNIT_SUITE(test_bgemm, NULL, NULL, products_match_double_and_do_not_depend_on_threads, kernels_agree,
           weights_come_back_rounded, sizes_that_do_not_fit_are_refused)
