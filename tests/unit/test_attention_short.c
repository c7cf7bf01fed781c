/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that look at few keys, against sums in double: numbers of keys around whole vectors, masks, ranges,
 * rows without any key, each copy for an instruction set that this processor has. */
#include "backends/cpu/isa.h"
#include "backends/cpu/rows.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_KEYS = 64, MOST_SIZE = 64, ROWS = 7, GAP = 3 };

typedef struct head_data {
    float q[ROWS * (MOST_SIZE + GAP)], k[MOST_KEYS * (MOST_SIZE + GAP)], v[MOST_KEYS * (MOST_SIZE + GAP)];
    float y[ROWS * (MOST_SIZE + GAP)], mask[ROWS * MOST_KEYS];
    int32_t from[ROWS], to[ROWS];
} head_data;

static float next_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1u << 23) - 1.0f;
}

static void fill_values(float *x, size_t n, uint32_t *seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = next_value(seed);
}

static void fill_head(head_data *d, attention_short *h, uint32_t *seed)
{
    fill_values(d->q, sizeof d->q / sizeof *d->q, seed);
    fill_values(d->k, sizeof d->k / sizeof *d->k, seed);
    fill_values(d->v, sizeof d->v / sizeof *d->v, seed);
    fill_values(d->mask, sizeof d->mask / sizeof *d->mask, seed);
    for (int i = 0; i < ROWS; i++) {
        d->from[i] = (int32_t)(i % 3 == 1 ? h->keys / 3 : 0);
        d->to[i] = (int32_t)(i % 3 == 2 ? h->keys - h->keys / 3 : h->keys);
    }
    d->from[4] = d->to[4] = 1; /* a row without keys */
    for (int64_t j = 0; j < h->keys; j++)
        d->mask[5 * MOST_KEYS + j] = -INFINITY; /* and another one */
    d->mask[6 * MOST_KEYS] = -INFINITY;
}

static double score_of(const attention_short *h, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t x = 0; x < h->size; x++)
        sum += (double)h->q[i * h->q_row + x] * (double)h->k[j * h->k_row + x];
    const bool seen = !h->from || (j >= h->from[i] && j < h->to[i]);
    return seen ? sum * (double)h->scale + (h->mask ? (double)h->mask[i * h->mask_row + j] : 0) : -INFINITY;
}

static void check_row(const attention_short *h, int64_t i)
{
    double weights[MOST_KEYS], total = 0;
    for (int64_t j = 0; j < h->keys; j++) {
        weights[j] = exp(score_of(h, i, j));
        total += weights[j];
    }
    for (int64_t e = 0; e < h->v_size; e++) {
        double want = 0;
        for (int64_t j = 0; j < h->keys; j++)
            want += weights[j] * (double)h->v[j * h->v_row + e];
        ck_assert_double_eq_tol((double)h->y[i * h->y_row + e], total > 0 ? want / total : 0, 3e-6);
    }
    ck_assert(h->y[i * h->y_row + h->v_size] == 77.0f); /* nothing is written behind a row */
}

static void check_head(const cpu_rows *loops, int64_t keys, int64_t size, int64_t v_size, bool masked,
                       bool ranged, uint32_t *seed)
{
    head_data *d = calloc(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    attention_short h = {.q = d->q,
                         .k = d->k,
                         .v = d->v,
                         .y = d->y,
                         .q_row = size + GAP,
                         .k_row = size + GAP,
                         .v_row = v_size + GAP,
                         .y_row = v_size + GAP,
                         .rows = ROWS,
                         .keys = keys,
                         .size = size,
                         .v_size = v_size,
                         .scale = 0.25f,
                         .mask = masked ? d->mask : NULL,
                         .mask_row = MOST_KEYS,
                         .from = ranged ? d->from : NULL,
                         .to = ranged ? d->to : NULL};
    fill_head(d, &h, seed);
    for (size_t i = 0; i < sizeof d->y / sizeof *d->y; i++)
        d->y[i] = 77.0f;
    loops->short_head(&h);
    for (int64_t i = 0; i < ROWS; i++)
        check_row(&h, i);
    free(d);
}

static void check_copy(const cpu_rows *loops)
{
    static const int64_t sizes[][2] = {{16, 16}, {5, 32}, {64, 48}};
    uint32_t seed = 1;
    int checked = 0;
    for (int64_t keys = 1; keys <= MOST_KEYS; keys++)
        for (int s = 0; s < 3; s++)
            for (int how = 0; how < 4 && loops->short_fits(keys, sizes[s][0], sizes[s][1]); how++, checked++)
                check_head(loops, keys, sizes[s][0], sizes[s][1], how & 1, how & 2, &seed);
    ck_assert_int_ge(checked, 16 * 4);
    ck_assert(!loops->short_fits(0, 16, 16) && !loops->short_fits(8, 0, 16));
    ck_assert(!loops->short_fits(8, 16, 17) && !loops->short_fits(MOST_KEYS + 1, 16, 16));
    ck_assert(!loops->short_fits(8, 1 << 20, 16));
}

START_TEST(heads_of_few_keys)
{
    check_copy(&cpu_rows_base);
#ifdef CPU_HAS_AVX2_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        check_copy(&cpu_rows_avx2);
#endif
#ifdef CPU_HAS_AVX512_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX512)
        check_copy(&cpu_rows_avx512);
#endif
}
END_TEST

Suite *suite_test_attention_short(void);
Suite *suite_test_attention_short(void)
{
    Suite *s = suite_create("attention_short");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, heads_of_few_keys);
    suite_add_tcase(s, tc);
    return s;
}
