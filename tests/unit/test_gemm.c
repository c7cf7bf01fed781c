/* SPDX-License-Identifier: Apache-2.0 */
/* The packed matrix product: every combination of operands and epilogue against sums in double. */
#include "backends/cpu/act_apply.h"
#include "backends/cpu/gemm.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    grt_gemm g;
    bool shared_b, trans_b;
    int64_t stored_b; /* distance of B's matrices as stored */
    float *a, *b, *bias, *bias_row, *residual, *before, *packed;
    size_t c_floats;
} problem;

static float *random_floats(int64_t n, uint32_t seed)
{
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    fill_floats(data, n, seed);
    return data;
}

static void choose(problem *p, uint32_t seed)
{
    uint32_t r = seed * 2654435761u;
#define PICK(n) ((int64_t)((r = r * 1664525u + 1013904223u) >> 16) % (n))
    grt_gemm *g = &p->g;
    const bool big = seed % 29 == 0;
    g->batch = PICK(4) ? 1 : PICK(5);
    g->m = PICK(3) ? PICK(big ? 250 : 30) : PICK(4);
    g->n = PICK(big ? 400 : 100);
    g->k = PICK(big ? 900 : 200);
    if (seed % 31 == 0) { /* few rows of many columns */
        g->m = 1 + PICK(3);
        g->n = 1000 + PICK(1200);
        g->k = PICK(30);
    }
    g->trans_a = PICK(3) == 0;
    g->trans_b = p->trans_b = PICK(2) != 0;
    g->b_packed = PICK(2) != 0;
    p->shared_b = PICK(3) == 0;
    g->lda = (g->trans_a ? g->m : g->k) + PICK(5);
    if (seed % 23 == 0) /* rows of A that share sets of a cache */
        g->lda = (g->lda + 1023) / 1024 * 1024;
    g->ldb = (g->trans_b ? g->k : g->n) + PICK(5);
    g->ldc = g->n + PICK(4);
    g->ldr = g->n + PICK(3);
    g->stride_a = PICK(4) ? (g->trans_a ? g->k : g->m) * g->lda + 3 : 0;
    p->stored_b = (g->trans_b ? g->n : g->k) * g->ldb + 7;
    g->stride_c = g->m * g->ldc + 1;
    g->stride_r = PICK(2) ? g->m * g->ldr : 0;
    g->alpha = PICK(2) ? 1.0f : 0.7f;
    g->beta = PICK(3) ? 0.0f : PICK(2) ? 1.0f : 0.3f;
    g->act.kind = (grt_act_kind[]){GRT_ACT_NONE, GRT_ACT_RELU, GRT_ACT_GELU_ERF, GRT_ACT_ELU}[PICK(4)];
    g->act.a = 1.0f;
    p->c_floats = (size_t)(g->stride_c * (g->batch + 1) + 8);
    p->a = random_floats(g->stride_a * g->batch + (g->trans_a ? g->k : g->m) * g->lda + 8, seed + 1);
    p->b = random_floats(p->stored_b * (g->batch + 1) + 8, seed + 2);
    p->bias = random_floats(g->n, seed + 3);
    p->bias_row = random_floats(g->m, seed + 4);
    p->residual = random_floats(g->m * g->ldr * (g->batch + 1), seed + 5);
    p->before = random_floats((int64_t)p->c_floats, seed + 6);
    g->bias = PICK(2) ? p->bias : NULL;
    g->bias_row = PICK(3) ? NULL : p->bias_row;
    g->residual = PICK(3) ? NULL : p->residual;
}

static const float *operand_b(problem *p)
{
    grt_gemm *g = &p->g;
    g->stride_b = p->shared_b ? 0 : p->stored_b;
    if (!g->b_packed)
        return p->b;
    size_t each;
    ck_assert(grt_gemm_packed_b_floats(g->k, g->n, &each));
    p->packed = aligned_alloc(64, (each * (size_t)(g->batch + 1) * sizeof(float) + 127) / 64 * 64);
    ck_assert_ptr_nonnull(p->packed);
    for (int64_t i = 0; i < (p->shared_b ? 1 : g->batch); i++)
        grt_gemm_pack_b(g->k, g->n, p->b + i * p->stored_b, g->ldb, p->trans_b, p->packed + (size_t)i * each);
    g->stride_b = p->shared_b ? 0 : (int64_t)each;
    return p->packed;
}

static float *compute(const problem *p, const float *b, int threads)
{
    size_t bytes;
    ck_assert(grt_gemm_scratch_bytes(&p->g, threads, &bytes));
    void *scratch = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    float *c = malloc(p->c_floats * sizeof *c);
    ck_assert_ptr_nonnull(c);
    memcpy(c, p->before, p->c_floats * sizeof *c);
    for (size_t i = 0; p->g.beta == 0.0f && i < p->c_floats; i++)
        c[i] = NAN; /* not to be read */
    grt_gemm_run(&p->g, p->a, b, c, scratch, threads);
    free(scratch);
    return c;
}

static void check_element(const problem *p, const float *c, int64_t item, int64_t i, int64_t j)
{
    const grt_gemm *g = &p->g;
    const float *a = p->a + item * g->stride_a, *b = p->b + (p->shared_b ? 0 : item * p->stored_b);
    double sum = 0.0, magnitude = 1.0;
    for (int64_t x = 0; x < g->k; x++) {
        const double product = (double)a[g->trans_a ? x * g->lda + i : i * g->lda + x] *
                               (double)b[p->trans_b ? j * g->ldb + x : x * g->ldb + j];
        sum += product;
        magnitude += fabs(product);
    }
    sum *= (double)g->alpha;
    if (g->beta != 0.0f)
        sum += (double)g->beta * (double)p->before[item * g->stride_c + i * g->ldc + j];
    sum += g->bias ? (double)p->bias[j] : 0.0;
    sum += g->bias_row ? (double)p->bias_row[i] : 0.0;
    sum += g->residual ? (double)p->residual[item * g->stride_r + i * g->ldr + j] : 0.0;
    if (g->act.kind == GRT_ACT_RELU && sum < 0.0)
        sum = 0.0;
    if (g->act.kind == GRT_ACT_GELU_ERF)
        sum *= 0.5 * erfc(-sum / sqrt(2.0));
    if (g->act.kind == GRT_ACT_ELU && sum < 0.0) /* one that kernels have no vectors for */
        sum = expm1(sum);
    const double found = (double)c[item * g->stride_c + i * g->ldc + j];
    ck_assert_msg(fabs(found - sum) <= 2e-6 * magnitude,
                  "m %lld n %lld k %lld at %lld, %lld: %g, expected %g", (long long)g->m, (long long)g->n,
                  (long long)g->k, (long long)i, (long long)j, found, sum);
}

/* What lies between two rows of C stays as it was. */
static void check_gap(const problem *p, const float *c, int64_t item, int64_t i)
{
    for (int64_t j = p->g.n; j < p->g.ldc; j++) {
        const int64_t at = item * p->g.stride_c + i * p->g.ldc + j;
        ck_assert(p->g.beta == 0.0f ? isnan(c[at]) : c[at] == p->before[at]);
    }
}

START_TEST(products_match_double_and_do_not_depend_on_threads)
{
    for (uint32_t seed = 0; seed < 400; seed++) {
        problem p = {0};
        choose(&p, seed);
        const float *b = operand_b(&p);
        float *one = compute(&p, b, 1), *three = compute(&p, b, 3);
        ck_assert_int_eq(memcmp(one, three, p.c_floats * sizeof *one), 0);
        for (int64_t item = 0; item < p.g.batch; item++)
            for (int64_t i = 0; i < p.g.m; i++) {
                for (int64_t j = 0; j < p.g.n; j += 1 + j % 3)
                    check_element(&p, one, item, i, j);
                check_gap(&p, one, item, i);
            }
        free(one);
        free(three);
        free(p.a);
        free(p.b);
        free(p.bias);
        free(p.bias_row);
        free(p.residual);
        free(p.before);
        free(p.packed);
    }
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_refused)
{
    size_t n;
    grt_gemm g = {.batch = INT64_MAX / 2,
                  .m = 1000,
                  .n = INT64_MAX / 4,
                  .k = INT64_MAX / 4,
                  .alpha = 1.0f,
                  .stride_b = 1};
    ck_assert(!grt_gemm_packed_b_floats(-1, 4, &n));
    ck_assert(!grt_gemm_packed_b_floats(INT64_MAX / 2, INT64_MAX / 2, &n));
    ck_assert(!grt_gemm_scratch_bytes(&g, 2, &n));
}
END_TEST

/* A float activation against its definition, relative to 1. */
static double exact(grt_act act, double x)
{
    switch (act.kind) {
    case GRT_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case GRT_ACT_TANH:
        return tanh(x);
    case GRT_ACT_SILU:
        return x / (1 + exp(-(double)act.a * x));
    case GRT_ACT_GELU_ERF:
        return 0.5 * x * erfc(-x / sqrt(2));
    case GRT_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case GRT_ACT_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    default:
        return x < 0 ? (double)act.a * expm1(x) : x; /* ELU */
    }
}

static const grt_act acts[] = {{GRT_ACT_SIGMOID, 0, 0},  {GRT_ACT_TANH, 0, 0},      {GRT_ACT_SILU, 1, 0},
                               {GRT_ACT_GELU_ERF, 0, 0}, {GRT_ACT_GELU_TANH, 0, 0}, {GRT_ACT_SOFTPLUS, 0, 0},
                               {GRT_ACT_ELU, 1, 0}};

static void check_activation(grt_act act, float x, float y)
{
    const double wanted = exact(act, (double)x);
    ck_assert_msg((double)y == wanted || fabs((double)y - wanted) <= 1e-6 * fmax(1.0, fabs(wanted)),
                  "activation %d of %g: %g, expected %g", (int)act.kind, (double)x, (double)y, wanted);
}

START_TEST(activations_are_accurate)
{
    for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
        for (int i = -9000; i <= 9000; i++) {
            const float x = (float)i * 0.01f;
            float y = x;
            grt_act_apply(acts[k], &y, 1);
            check_activation(acts[k], x, y);
        }
        float nan = NAN;
        grt_act_apply(acts[k], &nan, 1);
        ck_assert(isnan(nan));
    }
}
END_TEST

/* Vectors of the machine's best instruction set, each product's epilogue and a loop alone. */
START_TEST(activations_of_products_are_accurate)
{
    enum { ROWS = 13, COLS = 18003 };
    static const float ends[] = {NAN, INFINITY, -1e30f, -200.0f, 200.0f, 3e38f};
    float a[ROWS], *b = malloc(COLS * sizeof *b), *alone = malloc(COLS * sizeof *b),
                   *c = malloc((size_t)ROWS * COLS * sizeof *c);
    ck_assert(b && alone && c);
    for (int i = 0; i < ROWS; i++)
        a[i] = 1.0f;
    for (int j = 0; j < COLS; j++)
        b[j] = j < 6 ? ends[j] : (float)(j - 9000) * 0.01f;
    for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
        grt_gemm g = {.batch = 1, .m = ROWS, .n = COLS, .k = 1, .lda = 1, .ldb = COLS, .ldc = COLS};
        g.alpha = 1.0f;
        g.act = acts[k];
        size_t bytes;
        ck_assert(grt_gemm_scratch_bytes(&g, 1, &bytes));
        void *scratch = aligned_alloc(64, bytes + 64 - bytes % 64);
        ck_assert_ptr_nonnull(scratch);
        grt_gemm_run(&g, a, b, c, scratch, 1);
        free(scratch);
        memcpy(alone, b, COLS * sizeof *b);
        cpu_act_apply(acts[k], alone, COLS);
        ck_assert(isnan(c[0]) && isnan(alone[0]));
        for (int j = 1; j < COLS; j++) {
            check_activation(acts[k], b[j], alone[j]);
            check_activation(acts[k], b[j], c[j]);
            ck_assert(c[j] == c[(ROWS - 1) * COLS + j]);
        }
    }
    free(b);
    free(alone);
    free(c);
}
END_TEST

UNIT_SUITE(test_gemm, NULL, NULL, products_match_double_and_do_not_depend_on_threads,
           sizes_that_do_not_fit_are_refused, activations_are_accurate, activations_of_products_are_accurate)
