/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul: ranks, broadcasting, dtypes, epilogues, against sums in double. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include "src/base/float.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct operand {
    int32_t rank;
    int64_t dims[6];
} operand;

enum { MOST = 4096 };

/* The element of a broadcast operand: batch index by the result's dims, then row and column. */
static int64_t locate(const operand *t, const int64_t *batch, int32_t batch_rank, int64_t row, int64_t col,
                      bool is_b, bool trans)
{
    int64_t at = 0;
    for (int32_t i = 0; i < t->rank - 2; i++) {
        const int64_t index = batch[batch_rank - (t->rank - 2) + i];
        at = at * t->dims[i] + (t->dims[i] == 1 ? 0 : index);
    }
    if (t->rank == 1)
        return is_b ? row : col;
    if (trans) {
        const int64_t swap = row;
        row = col;
        col = swap;
    }
    return (at * t->dims[t->rank - 2] + row) * t->dims[t->rank - 1] + col;
}

typedef struct variant {
    const char *domain;
    bool trans_a, trans_b, constant;
    float scale;
    bool bias;
    bool rows; /* of bias: one for each matrix of a batch */
} variant;

/* Dims of a bias with a row for each matrix of the result. */
static operand rows_of(const operand *a, const operand *b, int64_t n)
{
    operand rows = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 0; i < rows.rank - 2; i++) {
        const int32_t ia = i - (rows.rank - a->rank), ib = i - (rows.rank - b->rank);
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        rows.dims[i] = da == 1 ? db : da;
    }
    rows.dims[rows.rank - 2] = 1;
    rows.dims[rows.rank - 1] = n;
    return rows;
}

static void check_once(const operand *a, const operand *b, const variant *v, bool pack)
{
    float x[MOST], y[MOST], bias[512];
    fill_floats(x, MOST, 3);
    fill_floats(y, MOST, 4);
    fill_floats(bias, 512, 5);
    op_runner r;
    op_begin(&r, v->domain, "MatMul");
    r.constants = v->constant ? 2 : 0;
    r.pack = pack;
    if (v->trans_a)
        op_int(&r, "transA", 1);
    if (v->trans_b)
        op_int(&r, "transB", 1);
    if (v->scale != 0.0f)
        op_float(&r, "scale", v->scale);
    op_add(&r, GRT_DTYPE_FLOAT, a->rank, a->dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, b->rank, b->dims, y);
    const int64_t k = a->rank == 1 ? a->dims[0] : a->dims[a->rank - (v->trans_a ? 2 : 1)];
    const int64_t n = b->rank == 1 ? 1 : b->dims[b->rank - (v->trans_b ? 2 : 1)];
    const operand rows = v->rows ? rows_of(a, b, n) : (operand){1, {n}};
    if (v->bias)
        op_add(&r, GRT_DTYPE_FLOAT, rows.rank, rows.dims, bias);
    op_run_ok(&r, 1);
    const grt_tensor *c = &r.out[0].t;
    const int64_t m = a->rank == 1 ? 1 : a->dims[a->rank - (v->trans_a ? 1 : 2)];
    const int32_t batch_rank = c->rank - (a->rank > 1) - (b->rank > 1);
    const int64_t total = grt_tensor_elements(c);
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i / (m * n), batch[6];
        for (int32_t d = batch_rank - 1; d >= 0; d--) {
            batch[d] = rest % c->dims[d];
            rest /= c->dims[d];
        }
        double sum = 0.0;
        for (int64_t s = 0; s < k; s++)
            sum += (double)x[locate(a, batch, batch_rank, i / n % m, s, false, v->trans_a)] *
                   (double)y[locate(b, batch, batch_rank, s, i % n, true, v->trans_b)];
        const int64_t at = (v->rows ? i / (m * n) * n : 0) + i % n;
        sum = sum * (v->scale != 0.0f ? (double)v->scale : 1.0) + (v->bias ? (double)bias[at] : 0.0);
        ck_assert_msg(fabs((double)((float *)c->data)[i] - sum) < 1e-5, "element %lld: %g, expected %g",
                      (long long)i, (double)((float *)c->data)[i], sum);
    }
    op_end(&r);
}

static void check_product(const operand *a, const operand *b, const variant *v)
{
    check_once(a, b, v, false);
    if (v->constant)
        check_once(a, b, v, true);
}

START_TEST(all_ranks_and_broadcasts)
{
    static const struct {
        operand a, b;
    } cases[] = {
        {{2, {5, 7}}, {2, {7, 3}}},
        {{1, {7}}, {1, {7}}},
        {{1, {7}}, {2, {7, 3}}},
        {{2, {5, 7}}, {1, {7}}},
        {{1, {7}}, {4, {2, 3, 7, 4}}},
        {{4, {2, 3, 4, 7}}, {1, {7}}},
        {{3, {4, 5, 7}}, {2, {7, 33}}},
        {{2, {5, 7}}, {3, {4, 7, 18}}},
        {{4, {2, 3, 5, 7}}, {4, {2, 3, 7, 17}}},
        {{4, {2, 1, 5, 7}}, {4, {2, 3, 7, 4}}},
        {{4, {1, 3, 5, 7}}, {4, {2, 1, 7, 4}}},
        {{5, {2, 3, 1, 5, 7}}, {4, {3, 2, 7, 4}}},
        {{3, {2, 1, 7}}, {3, {1, 7, 40}}},
        {{3, {0, 5, 7}}, {2, {7, 3}}},
        {{2, {5, 0}}, {2, {0, 3}}},
        {{2, {1, 64}}, {2, {64, 50}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int constant = 0; constant < 2; constant++) {
            const variant plain = {.domain = "", .constant = constant};
            check_product(&cases[i].a, &cases[i].b, &plain);
            if (cases[i].a.rank < 2 || cases[i].b.rank < 2)
                continue;
            operand a = cases[i].a, b = cases[i].b;
            const int64_t rows = a.dims[a.rank - 2], cols = b.dims[b.rank - 1];
            a.dims[a.rank - 2] = a.dims[a.rank - 1];
            a.dims[a.rank - 1] = rows;
            b.dims[b.rank - 1] = b.dims[b.rank - 2];
            b.dims[b.rank - 2] = cols;
            check_product(&a, &cases[i].b, &(variant){"graphrt", true, false, constant, 0.5f, true, false});
            check_product(&cases[i].a, &b, &(variant){"graphrt", false, true, constant, 0, true, false});
            check_product(&a, &b, &(variant){"graphrt", true, true, constant, -2, false, false});
        }
}
END_TEST

START_TEST(one_bias_for_each_matrix)
{
    static const struct {
        operand a, b;
    } cases[] = {
        {{3, {4, 5, 7}}, {3, {4, 7, 18}}},        {{3, {4, 1, 7}}, {3, {4, 7, 18}}},
        {{3, {4, 5, 7}}, {2, {7, 33}}},           {{2, {5, 7}}, {3, {4, 7, 18}}},
        {{4, {2, 1, 5, 7}}, {4, {2, 3, 7, 4}}},   {{4, {1, 3, 5, 7}}, {4, {2, 1, 7, 4}}},
        {{4, {2, 3, 20, 7}}, {4, {2, 3, 7, 17}}}, {{5, {2, 3, 1, 5, 7}}, {4, {3, 2, 7, 4}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int constant = 0; constant < 2; constant++)
            check_product(&cases[i].a, &cases[i].b,
                          &(variant){"graphrt", false, false, constant, 0.5f, true, true});
}
END_TEST

START_TEST(biases_for_other_matrices_are_refused)
{
    static const float zeros[256];
    const int64_t a[] = {4, 5, 7}, b[] = {4, 7, 3}, few[] = {2, 1, 3}, tall[] = {4, 5, 3};
    for (int i = 0; i < 2; i++) {
        op_runner r;
        op_begin(&r, "graphrt", "MatMul");
        op_add(&r, GRT_DTYPE_FLOAT, 3, a, zeros);
        op_add(&r, GRT_DTYPE_FLOAT, 3, b, zeros);
        op_add(&r, GRT_DTYPE_FLOAT, 3, i ? tall : few, zeros);
        ck_assert_int_ne(op_run(&r, 1), GRT_OK);
        op_end(&r);
    }
}
END_TEST

/* C of every shape that broadcasts, alpha and beta, for all types. */
START_TEST(gemm_adds_what_broadcasts)
{
    static const operand shapes[] = {{0, {0}}, {1, {1}}, {1, {4}}, {2, {1, 4}}, {2, {3, 1}}, {2, {3, 4}}};
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_DOUBLE, GRT_DTYPE_INT32, GRT_DTYPE_UINT64};
    const int64_t a_dims[] = {2, 3}, b_dims[] = {4, 2};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int scaled = 0; scaled < 2; scaled++) {
                int64_t store[3][12];
                for (int t = 0; t < 3; t++)
                    for (int i = 0; i < 12; i++) {
                        const int value = (t + 2) * i % 7 + 1;
                        if (dtypes[d] == GRT_DTYPE_FLOAT)
                            ((float *)store[t])[i] = (float)value;
                        else if (dtypes[d] == GRT_DTYPE_DOUBLE)
                            ((double *)store[t])[i] = value;
                        else if (dtypes[d] == GRT_DTYPE_INT32)
                            ((int32_t *)store[t])[i] = value;
                        else
                            store[t][i] = value;
                    }
                op_runner r;
                op_begin(&r, "", "Gemm");
                op_int(&r, "transA", 1);
                op_int(&r, "transB", 1);
                if (scaled) {
                    op_float(&r, "alpha", 2.0f);
                    op_float(&r, "beta", 3.0f);
                }
                op_add(&r, dtypes[d], 2, a_dims, store[0]);
                op_add(&r, dtypes[d], 2, b_dims, store[1]);
                op_add(&r, dtypes[d], shapes[s].rank, shapes[s].dims, store[2]);
                op_run_ok(&r, 1);
                const grt_tensor *a = r.in_views[0], *b = r.in_views[1], *c = r.in_views[2];
                const int64_t rows = c->rank > 1 ? c->dims[0] : 1, cols = c->rank ? c->dims[c->rank - 1] : 1;
                for (int64_t i = 0; i < 12; i++) {
                    double sum = 0.0;
                    for (int64_t k = 0; k < 2; k++)
                        sum += grt_tensor_double(a, k * 3 + i / 4) * grt_tensor_double(b, i % 4 * 2 + k);
                    const int64_t at = (rows > 1 ? i / 4 * cols : 0) + (cols > 1 ? i % 4 : 0);
                    sum = sum * (scaled ? 2 : 1) + grt_tensor_double(c, at) * (scaled ? 3 : 1);
                    ck_assert_double_eq_tol(grt_tensor_double(&r.out[0].t, i), sum, 1e-6);
                }
                op_end(&r);
            }
}
END_TEST

START_TEST(halves_are_summed_in_float)
{
    const int64_t a_dims[] = {3, 40}, b_dims[] = {40, 20};
    uint16_t a[120], b[800];
    float x[120], y[800];
    fill_floats(x, 120, 1);
    fill_floats(y, 800, 2);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        for (int i = 0; i < 120; i++) {
            a[i] = bf16 ? grt_float_to_bfloat16(x[i]) : grt_float_to_half(x[i]);
            x[i] = bf16 ? grt_bfloat16_to_float(a[i]) : grt_half_to_float(a[i]);
        }
        for (int i = 0; i < 800; i++) {
            b[i] = bf16 ? grt_float_to_bfloat16(y[i]) : grt_float_to_half(y[i]);
            y[i] = bf16 ? grt_bfloat16_to_float(b[i]) : grt_half_to_float(b[i]);
        }
        for (uint32_t constants = 0; constants <= 2; constants += 2) {
            op_runner r;
            op_begin(&r, "", "MatMul");
            r.constants = constants;
            op_add(&r, bf16 ? GRT_DTYPE_BFLOAT16 : GRT_DTYPE_FLOAT16, 2, a_dims, a);
            op_add(&r, bf16 ? GRT_DTYPE_BFLOAT16 : GRT_DTYPE_FLOAT16, 2, b_dims, b);
            op_run_ok(&r, 1);
            for (int i = 0; i < 60; i++) {
                double sum = 0.0;
                for (int k = 0; k < 40; k++)
                    sum += (double)x[i / 20 * 40 + k] * (double)y[k * 20 + i % 20];
                ck_assert_double_eq_tol(grt_tensor_double(&r.out[0].t, i), sum, bf16 ? 2e-2 : 3e-3);
            }
            op_end(&r);
        }
    }
}
END_TEST

START_TEST(mismatches_are_named)
{
    const float data[64] = {0};
    const int64_t a[] = {2, 3}, b[] = {4, 5}, batch_a[] = {2, 2, 2}, batch_b[] = {3, 2, 2};
    op_runner r;
    op_begin(&r, "", "MatMul");
    op_add(&r, GRT_DTYPE_FLOAT, 2, a, data);
    op_add(&r, GRT_DTYPE_FLOAT, 2, b, data);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "3 columns"));
    op_end(&r);
    op_begin(&r, "", "MatMul");
    op_add(&r, GRT_DTYPE_FLOAT, 3, batch_a, data);
    op_add(&r, GRT_DTYPE_FLOAT, 3, batch_b, data);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "batch dim 0"));
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_matmul, NULL, NULL, all_ranks_and_broadcasts, one_bias_for_each_matrix,
           biases_for_other_matrices_are_refused, gemm_adds_what_broadcasts, halves_are_summed_in_float,
           mismatches_are_named)
