/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that become numbers, and softmaxes of rows: each length, each copy for an instruction set that this
 * processor has; a NaN wins wherever it is. */
#include "backends/cpu/isa.h"
#include "backends/cpu/rows.h"

#include <check.h>
#include <math.h>

enum { LONGEST = 131 };

static int copies(const cpu_rows **out)
{
    int n = 0;
    out[n++] = &cpu_rows_base;
#ifdef CPU_HAS_AVX2_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        out[n++] = &cpu_rows_avx2;
#endif
#ifdef CPU_HAS_AVX512_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX512)
        out[n++] = &cpu_rows_avx512;
#endif
    return n;
}

static void row_folds_fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 + 11) % 101) / 8.0f - 6.0f;
}

START_TEST(extremes)
{
    const cpu_rows *of[3];
    float x[LONGEST];
    for (int c = copies(of); c-- > 0;)
        for (int64_t n = 1; n <= LONGEST; n++) {
            double most, least;
            float largest = -INFINITY, smallest = INFINITY;
            row_folds_fill(x, n);
            for (int64_t i = 0; i < n; i++) {
                largest = fmaxf(largest, x[i]);
                smallest = fminf(smallest, x[i]);
            }
            of[c]->fold(CPU_FOLD_LARGEST, x, 1, n, &most);
            of[c]->fold(CPU_FOLD_LEAST, x, 1, n, &least);
            ck_assert(most == (double)largest && least == (double)smallest);
            for (int64_t i = 0; i < n; i++) {
                const float kept = x[i];
                x[i] = NAN;
                of[c]->fold(CPU_FOLD_LARGEST, x, 1, n, &most);
                of[c]->fold(CPU_FOLD_LEAST, x, 1, n, &least);
                ck_assert_msg(isnan(most) && isnan(least), "copy %d, NaN at %d of %d", c, (int)i, (int)n);
                x[i] = kept;
            }
        }
}
END_TEST

START_TEST(sums)
{
    const cpu_rows *of[3];
    float x[LONGEST];
    for (int c = copies(of); c-- > 0;)
        for (int64_t n = 1; n <= LONGEST; n++) {
            double found, sum = 0, squares = 0;
            row_folds_fill(x, n);
            for (int64_t i = 0; i < n; i++) {
                sum += (double)x[i];
                squares += (double)x[i] * (double)x[i];
            }
            of[c]->fold(CPU_FOLD_SUM, x, 1, n, &found);
            ck_assert_double_eq_tol(found, sum, 1e-3);
            of[c]->fold(CPU_FOLD_SQUARE, x, 1, n, &found);
            ck_assert_double_eq_tol(found, squares, 1e-5 * squares + 1e-6);
        }
}
END_TEST

START_TEST(softmaxes)
{
    const cpu_rows *of[3];
    float x[LONGEST], y[LONGEST];
    for (int c = copies(of); c-- > 0;)
        for (int64_t n = 1; n <= LONGEST; n++) {
            double sum = 0;
            row_folds_fill(x, n);
            x[n / 2] = -INFINITY;
            x[n - 1] = 7;
            for (int64_t i = 0; i < n; i++)
                sum += exp((double)x[i] - 7);
            of[c]->softmax(x, y, 1, n, false);
            for (int64_t i = 0; i < n; i++)
                ck_assert_double_eq_tol(y[i], exp((double)x[i] - 7) / sum, 1e-6);
            of[c]->softmax(x, y, 1, n, true);
            for (int64_t i = 0; i < n; i++)
                ck_assert(x[i] == -INFINITY ? y[i] == -INFINITY
                                            : fabs((double)y[i] - ((double)x[i] - 7 - log(sum))) < 2e-5);
            of[c]->softmax(x, x, 1, n, false); /* in place */
            for (int64_t i = 0; i < n; i++)
                ck_assert(x[i] >= 0 && x[i] <= 1);
            x[n / 3] = NAN;
            of[c]->softmax(x, y, 1, n, false);
            ck_assert(isnan(y[n / 3]));
        }
}
END_TEST

Suite *suite_test_row_folds(void);
Suite *suite_test_row_folds(void)
{
    Suite *s = suite_create("row_folds");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, extremes);
    tcase_add_test(tc, sums);
    tcase_add_test(tc, softmaxes);
    suite_add_tcase(s, tc);
    return s;
}
