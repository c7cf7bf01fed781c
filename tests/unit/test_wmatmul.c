/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WMatMul against DequantizeLinear and a product in double. */
#include "backends/cpu/wgemm_bytes.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include "src/base/element.h"
#include "src/base/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights_case {
    grt_dtype dtype;
    int64_t m, k, n, block; /* block 0: scales by column, -1: one scale, -2: by row of k */
    bool transposed, zero, bias, one_zero;
} weights_case;

static const weights_case cases[] = {{GRT_DTYPE_UINT4, 1, 64, 48, 16, true, true, false, false},
                                     {GRT_DTYPE_INT4, 3, 70, 33, 32, true, true, true, false},
                                     {GRT_DTYPE_UINT4, 9, 96, 130, 32, false, true, true, false},
                                     {GRT_DTYPE_INT4, 2, 50, 20, 12, false, false, false, false},
                                     {GRT_DTYPE_INT8, 4, 61, 17, 0, false, true, true, false},
                                     {GRT_DTYPE_UINT8, 40, 61, 40, 0, true, true, false, false},
                                     {GRT_DTYPE_INT8, 1, 7, 5, -1, false, false, false, false},
                                     {GRT_DTYPE_UINT8, 5, 33, 18, 20, true, true, true, false},
                                     {GRT_DTYPE_INT8, 300, 900, 70, 128, false, true, true, false},
                                     {GRT_DTYPE_FLOAT8E4M3FN, 1, 64, 48, 32, true, false, true, false},
                                     {GRT_DTYPE_FLOAT8E4M3FN, 7, 61, 33, 0, false, false, false, false},
                                     {GRT_DTYPE_FLOAT8E4M3FN, 3, 50, 20, 16, false, false, false, false},
                                     {GRT_DTYPE_INT4, 1, 50, 21, -2, true, true, false, false},
                                     {GRT_DTYPE_UINT8, 6, 61, 40, -2, false, true, true, false},
                                     {GRT_DTYPE_FLOAT8E4M3FN, 2, 30, 17, -2, false, false, true, false},
                                     {GRT_DTYPE_UINT4, 2, 96, 40, 32, true, true, false, true},
                                     {GRT_DTYPE_UINT8, 9, 40, 17, 0, false, true, true, true},
                                     {GRT_DTYPE_UINT4, 13, 75, 50, 32, true, true, false, false},
                                     {GRT_DTYPE_INT8, 14, 70, 33, 16, true, true, false, false},
                                     {GRT_DTYPE_UINT2, 6, 75, 20, 32, true, true, false, false},
                                     {GRT_DTYPE_FLOAT4E2M1, 16, 50, 33, 32, true, false, true, false}};

/* At accuracy_level 4. largest: so are all weights and numbers of x. */
static const struct {
    weights_case c;
    bool largest;
} rounded_cases[] = {{{GRT_DTYPE_UINT4, 3, 96, 40, 32, true, true, false, false}, false},
                     {{GRT_DTYPE_UINT4, 5, 96, 130, 32, false, true, true, false}, false},
                     {{GRT_DTYPE_INT4, 30, 200, 33, 64, true, true, false, false}, false},
                     {{GRT_DTYPE_UINT4, 26, 520, 20, 256, true, false, false, false}, false},
                     {{GRT_DTYPE_UINT4, 13, 512, 20, 128, true, false, false, false}, true},
                     {{GRT_DTYPE_UINT8, 17, 75, 40, 32, true, true, false, false}, false},
                     {{GRT_DTYPE_INT8, 40, 300, 50, 128, false, true, true, false}, false},
                     {{GRT_DTYPE_UINT8, 8, 64, 16, 16, true, false, false, false}, true},
                     {{GRT_DTYPE_INT4, 4, 61, 17, 0, false, true, true, false}, false},
                     {{GRT_DTYPE_UINT2, 6, 75, 20, 32, true, true, false, false}, false},
                     {{GRT_DTYPE_UINT8, 6, 61, 40, -2, false, true, true, false}, false}};

/* one_zero: instead of as many equal ones as there are scales, which DequantizeLinear wants. */
static void add_weights(op_runner *r, const weights_case *c, const uint8_t *w, const float *scale,
                        const uint8_t *zero, bool one_zero)
{
    const int64_t blocks = c->block > 0 ? (c->k - 1) / c->block + 1 : 1;
    const int64_t dims[] = {c->transposed ? c->n : c->k, c->transposed ? c->k : c->n};
    const int64_t by_block[] = {c->transposed ? c->n : blocks, c->transposed ? blocks : c->n};
    const int32_t rank = c->block > 0 ? 2 : c->block == -1 ? 0 : 1;
    const int64_t *scale_dims = rank == 1 ? (c->block == 0 ? &c->n : &c->k) : by_block;
    op_add(r, c->dtype, 2, dims, w);
    op_add(r, GRT_DTYPE_FLOAT, rank, scale_dims, scale);
    if (c->zero)
        op_add(r, c->dtype, one_zero ? 0 : rank, scale_dims, zero);
    const int64_t along_k = c->transposed ? 1 : 0;
    op_int(r, "axis", c->block > 0 || c->block == -2 ? along_k : 1 - along_k);
    if (c->block > 0)
        op_int(r, "block_size", c->block);
}

static void fill_bytes(uint8_t *out, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (uint8_t)(seed >> 24);
    }
}

/* NaN is the last code of a sign. */
static void keep_numbers(grt_dtype dtype, uint8_t *w, int64_t n)
{
    for (int64_t i = 0; dtype == GRT_DTYPE_FLOAT8E4M3FN && i < n; i++)
        if ((w[i] & 127) == 127)
            w[i] = 9;
}

/* True if this process rounds x: at level 4, of more than a few rows and where it has instructions for it. */
static bool is_rounded(const weights_case *c, int level)
{
    const grt_wgemm w = {.bits = (int)grt_dtype_bits(c->dtype)};
    return level == 4 && c->m >= 4 && c->block > -2 && grt_wgemm_byte_kernel_of(&w);
}

/* As the product has it: to 127 steps of the largest of each block. */
static void round_blocks(const weights_case *c, float *x)
{
    const int64_t block = c->block > 0 ? c->block : c->k;
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t b = 0; b < c->k; b += block) {
            const int64_t n = c->k - b < block ? c->k - b : block;
            float *at = x + i * c->k + b, most = 0;
            for (int64_t k = 0; k < n; k++)
                most = fmaxf(most, fabsf(at[k]));
            const float to_bytes = 127.0f / most, scale = most / 127.0f;
            for (int64_t k = 0; k < n; k++)
                at[k] = nearbyintf(at[k] * to_bytes) * scale;
        }
}

static void check_case(const weights_case *c, int level, bool largest, int32_t threads)
{
    uint8_t *w = malloc((size_t)(c->k * c->n)), *zero = malloc((size_t)(c->k * c->n));
    float *scale = malloc((size_t)(c->k * c->n) * sizeof *scale),
          *x = malloc((size_t)(c->m * c->k) * sizeof *x), *bias = malloc((size_t)c->n * sizeof *bias);
    fill_bytes(w, c->k * c->n, 1);
    fill_bytes(zero, c->k * c->n, 2);
    if (c->one_zero)
        memset(zero, 0x77, (size_t)(c->k * c->n));
    keep_numbers(c->dtype, w, c->k * c->n);
    fill_floats(scale, c->k * c->n, 3);
    fill_floats(x, c->m * c->k, 4);
    fill_floats(bias, c->n, 5);
    if (largest)
        memset(w, 0xff, (size_t)(c->k * c->n));
    for (int64_t i = 0; largest && i < c->m * c->k; i++)
        x[i] = 3.0f;
    op_runner wide, r;
    op_begin(&wide, "", "DequantizeLinear");
    add_weights(&wide, c, w, scale, zero, false);
    op_run_ok(&wide, 1);
    op_begin(&r, "graphrt", "WMatMul");
    r.threads = threads;
    op_int(&r, "transB", c->transposed);
    op_int(&r, "accuracy_level", level);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){c->m, c->k}, x);
    add_weights(&r, c, w, scale, zero, c->one_zero);
    if (c->bias && !c->zero)
        op_omit(&r);
    if (c->bias)
        op_add(&r, GRT_DTYPE_FLOAT, 1, &c->n, bias);
    r.constants = c->zero ? 14 : 6;
    op_run_ok(&r, 1);
    const float *of_w = wide.out[0].t.data, *y = r.out[0].t.data;
    if (is_rounded(c, level))
        round_blocks(c, x);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = c->bias ? (double)bias[j] : 0, size = fabs(sum);
            for (int64_t k = 0; k < c->k; k++) {
                const double v =
                    (double)x[i * c->k + k] * (double)of_w[c->transposed ? j * c->k + k : k * c->n + j];
                sum += v;
                size += fabs(v);
            }
            ck_assert_msg(fabs((double)y[i * c->n + j] - sum) <= (largest ? 1e-5 : 1e-6) * size,
                          "%s, %d x %d x %d: y[%d][%d] is %g, not %g", grt_dtype_name(c->dtype), (int)c->m,
                          (int)c->k, (int)c->n, (int)i, (int)j, (double)y[i * c->n + j], sum);
        }
    op_end(&wide);
    op_end(&r);
    free(w);
    free(zero);
    free(scale);
    free(x);
    free(bias);
}

START_TEST(weights_of_few_bits)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], 0, false, 1 + (int32_t)(i % 3));
}
END_TEST

START_TEST(rows_rounded_to_bytes)
{
    for (size_t i = 0; i < sizeof rounded_cases / sizeof *rounded_cases; i++)
        check_case(&rounded_cases[i].c, 4, rounded_cases[i].largest, 1 + (int32_t)(i % 3));
}
END_TEST

START_TEST(inner_dims_must_agree)
{
    const weights_case c = {GRT_DTYPE_INT8, 2, 6, 4, 0, false, false, false, false};
    const uint8_t w[24] = {0};
    const float floats[24] = {0};
    op_runner r;
    op_begin(&r, "graphrt", "WMatMul");
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){2, 5}, floats);
    add_weights(&r, &c, w, floats, NULL, false);
    r.constants = 6;
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    op_end(&r);
}
END_TEST

/* Rows of the same weights, with each form of scales that a row may have. */
static void check_rows(grt_dtype dtype, int64_t block, bool zeros)
{
    enum { ROWS = 9, COLS = 45 };
    const weights_case c = {dtype, 0, COLS, ROWS, block, true, zeros, false, false};
    uint8_t w[ROWS * COLS], zero[ROWS * COLS];
    float scale[ROWS * COLS];
    const int64_t at[] = {3, -1, 8, 0, 3, -9}, n = sizeof at / sizeof *at;
    fill_bytes(w, ROWS * COLS, 1);
    keep_numbers(dtype, w, ROWS * COLS);
    fill_bytes(zero, ROWS * COLS, 2);
    fill_floats(scale, ROWS * COLS, 3);
    op_runner wide, r;
    op_begin(&wide, "", "DequantizeLinear");
    add_weights(&wide, &c, w, scale, zeros ? zero : NULL, false);
    op_run_ok(&wide, 1);
    op_begin(&r, "graphrt", "WGather");
    op_add(&r, GRT_DTYPE_INT64, 2, (const int64_t[]){2, 3}, at);
    add_weights(&r, &c, w, scale, zeros ? zero : NULL, false);
    r.threads = 2;
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.rank, 3);
    for (int64_t i = 0; i < n; i++)
        ck_assert_mem_eq((const float *)r.out[0].t.data + i * COLS,
                         (const float *)wide.out[0].t.data + (at[i] < 0 ? at[i] + ROWS : at[i]) * COLS,
                         COLS * sizeof(float));
    op_end(&wide);
    op_end(&r);
}

START_TEST(rows_of_few_bits)
{
    check_rows(GRT_DTYPE_UINT4, 16, true);
    check_rows(GRT_DTYPE_INT4, 45, false);
    check_rows(GRT_DTYPE_INT8, 0, true);
    check_rows(GRT_DTYPE_UINT8, -1, false);
    check_rows(GRT_DTYPE_FLOAT8E4M3FN, 16, false);
}
END_TEST

START_TEST(rows_that_do_not_exist)
{
    const uint8_t w[12] = {0};
    const float scale = 1;
    const int64_t at = 3;
    op_runner r;
    op_begin(&r, "graphrt", "WGather");
    op_add(&r, GRT_DTYPE_INT64, 0, NULL, &at);
    op_add(&r, GRT_DTYPE_INT8, 2, (const int64_t[]){3, 4}, w);
    op_add(&r, GRT_DTYPE_FLOAT, 0, NULL, &scale);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "index 3"));
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_wmatmul, NULL, NULL, weights_of_few_bits, rows_rounded_to_bytes, inner_dims_must_agree,
           rows_of_few_bits, rows_that_do_not_exist)
