/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, in blocked float32 and in exact double, against its definition. */
#include "src/base/element.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sizes {
    int64_t batch, q_heads, kv_heads, q_len, kv_len, past, size, v_size;
    bool causal, packed, bool_mask, float_mask, nonpad;
    int64_t left, right;
    float softcap;
} sizes;

static int64_t count(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a * b * c * d;
}

static float *random_floats(int64_t n, uint32_t seed)
{
    float *data = malloc((size_t)(n ? n : 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    fill_floats(data, n, seed);
    return data;
}

typedef struct inputs {
    float *q, *k, *v, *past_k, *past_v, *mask;
    uint8_t *allowed;
    int64_t *nonpad;
} inputs;

static inputs make_inputs(const sizes *s)
{
    int64_t scores = s->q_len * (s->kv_len + s->past);
    inputs in = {random_floats(count(s->batch, s->q_heads, s->q_len, s->size), 1),
                 random_floats(count(s->batch, s->kv_heads, s->kv_len, s->size), 2),
                 random_floats(count(s->batch, s->kv_heads, s->kv_len, s->v_size), 3),
                 random_floats(count(s->batch, s->kv_heads, s->past, s->size), 4),
                 random_floats(count(s->batch, s->kv_heads, s->past, s->v_size), 5),
                 random_floats(scores, 6),
                 malloc((size_t)scores + 1),
                 malloc((size_t)s->batch * sizeof(int64_t))};
    for (int64_t i = 0; i < scores; i++)
        in.allowed[i] = in.mask[i] > -0.5f && i / (s->kv_len + s->past) != 1; /* row 1 has no key at all */
    for (int64_t b = 0; b < s->batch; b++)
        in.nonpad[b] = s->kv_len - b;
    return in;
}

static void free_inputs(inputs *in)
{
    free(in->q);
    free(in->k);
    free(in->v);
    free(in->past_k);
    free(in->past_v);
    free(in->mask);
    free(in->allowed);
    free(in->nonpad);
}

/* Index of an element of a packed or plain [batch, heads, rows, size]. */
static int64_t at(const sizes *s, int64_t heads, int64_t rows, int64_t size, int64_t b, int64_t h, int64_t r,
                  int64_t d)
{
    return s->packed ? ((b * rows + r) * heads + h) * size + d : ((b * heads + h) * rows + r) * size + d;
}

static double key_or_value(const sizes *s, const float *now, const float *past, int64_t size, int64_t b,
                           int64_t h, int64_t j, int64_t d)
{
    if (j < s->past)
        return (double)past[((b * s->kv_heads + h) * s->past + j) * size + d];
    return (double)now[at(s, s->kv_heads, s->kv_len, size, b, h, j - s->past, d)];
}

static bool allowed(const sizes *s, const inputs *in, int64_t b, int64_t i, int64_t j)
{
    int64_t p = i + (s->nonpad ? in->nonpad[b] - s->q_len : s->past), total = s->kv_len + s->past;
    return !((s->causal && j > p) || (s->left >= 0 && j < p - s->left) ||
             (s->right >= 0 && j > p + s->right) || (s->nonpad && j >= in->nonpad[b]) ||
             (s->bool_mask && !in->allowed[i * total + j]));
}

static void expected_row(const sizes *s, const inputs *in, int64_t b, int64_t h, int64_t i, double *out)
{
    int64_t total = s->kv_len + s->past, kv = h / (s->q_heads / s->kv_heads);
    double sum = 0;
    memset(out, 0, (size_t)s->v_size * sizeof *out);
    for (int64_t j = 0; j < total; j++) {
        double score = 0;
        if (!allowed(s, in, b, i, j))
            continue;
        for (int64_t d = 0; d < s->size; d++)
            score += (double)in->q[at(s, s->q_heads, s->q_len, s->size, b, h, i, d)] *
                     key_or_value(s, in->k, in->past_k, s->size, b, kv, j, d);
        score /= sqrt((double)s->size);
        if (s->softcap > 0)
            score = (double)s->softcap * tanh(score / (double)s->softcap);
        if (s->float_mask)
            score += (double)in->mask[i * total + j];
        double weight = exp(score);
        sum += weight;
        for (int64_t d = 0; d < s->v_size; d++)
            out[d] += weight * key_or_value(s, in->v, in->past_v, s->v_size, b, kv, j, d);
    }
    for (int64_t d = 0; sum > 0 && d < s->v_size; d++)
        out[d] /= sum;
}

static void add(op_runner *r, const sizes *s, int64_t heads, int64_t rows, int64_t size, const float *data)
{
    if (s->packed)
        op_add(r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){s->batch, rows, heads * size}, data);
    else
        op_add(r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){s->batch, heads, rows, size}, data);
}

static void set_up(op_runner *r, const sizes *s, const inputs *in)
{
    const int64_t mask_dims[] = {s->q_len, s->kv_len + s->past};
    op_begin(r, "", "Attention");
    op_int(r, "is_causal", s->causal);
    op_int(r, "left_window_size", s->left);
    op_int(r, "right_window_size", s->right);
    op_float(r, "softcap", s->softcap);
    if (s->packed) {
        op_int(r, "q_num_heads", s->q_heads);
        op_int(r, "kv_num_heads", s->kv_heads);
    }
    add(r, s, s->q_heads, s->q_len, s->size, in->q);
    add(r, s, s->kv_heads, s->kv_len, s->size, in->k);
    add(r, s, s->kv_heads, s->kv_len, s->v_size, in->v);
    if (s->bool_mask)
        op_add(r, GRT_DTYPE_BOOL, 2, mask_dims, in->allowed);
    else if (s->float_mask)
        op_add(r, GRT_DTYPE_FLOAT, 2, mask_dims, in->mask);
    else
        op_omit(r);
    if (s->past) {
        op_add(r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){s->batch, s->kv_heads, s->past, s->size}, in->past_k);
        op_add(r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){s->batch, s->kv_heads, s->past, s->v_size},
               in->past_v);
    } else if (s->nonpad) {
        op_omit(r);
        op_omit(r);
        op_add(r, GRT_DTYPE_INT64, 1, &s->batch, in->nonpad);
    }
}

static void check_attention(sizes s, int32_t n_out, grt_dtype softmax)
{
    inputs in = make_inputs(&s);
    op_runner r;
    set_up(&r, &s, &in);
    if (softmax)
        op_int(&r, "softmax_precision", softmax);
    op_run_ok(&r, n_out);
    double row[128];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t h = 0; h < s.q_heads; h++)
            for (int64_t i = 0; i < s.q_len; i++) {
                expected_row(&s, &in, b, h, i, row);
                for (int64_t d = 0; d < s.v_size; d++)
                    ck_assert_double_eq_tol((double)((const float *)r.out[0].t.data)[at(
                                                &s, s.q_heads, s.q_len, s.v_size, b, h, i, d)],
                                            row[d], 2e-5);
            }
    op_end(&r);
    free_inputs(&in);
}

static const sizes cases[] = {
    {.batch = 1,
     .q_heads = 1,
     .kv_heads = 1,
     .q_len = 1,
     .kv_len = 1,
     .size = 1,
     .v_size = 1,
     .left = -1,
     .right = -1},
    {.batch = 2,
     .q_heads = 4,
     .kv_heads = 2,
     .q_len = 70,
     .kv_len = 70,
     .size = 16,
     .v_size = 24,
     .left = -1,
     .right = -1,
     .causal = true},
    {.batch = 2,
     .q_heads = 3,
     .kv_heads = 3,
     .q_len = 2,
     .kv_len = 5,
     .past = 9,
     .size = 7,
     .v_size = 5,
     .left = -1,
     .right = -1,
     .causal = true,
     .packed = true},
    {.batch = 1,
     .q_heads = 6,
     .kv_heads = 1,
     .q_len = 130,
     .kv_len = 33,
     .size = 8,
     .v_size = 8,
     .left = -1,
     .right = -1,
     .bool_mask = true,
     .packed = true},
    {.batch = 2,
     .q_heads = 2,
     .kv_heads = 2,
     .q_len = 65,
     .kv_len = 100,
     .size = 12,
     .v_size = 3,
     .left = 5,
     .right = 2,
     .float_mask = true},
    {.batch = 3,
     .q_heads = 2,
     .kv_heads = 1,
     .q_len = 6,
     .kv_len = 11,
     .size = 4,
     .v_size = 4,
     .left = 3,
     .right = -1,
     .nonpad = true,
     .causal = true,
     .softcap = 2},
    {.batch = 1,
     .q_heads = 2,
     .kv_heads = 2,
     .q_len = 9,
     .kv_len = 0,
     .past = 4,
     .size = 4,
     .v_size = 4,
     .left = -1,
     .right = -1},
    {.batch = 1,
     .q_heads = 2,
     .kv_heads = 2,
     .q_len = 5,
     .kv_len = 0,
     .size = 4,
     .v_size = 4,
     .left = -1,
     .right = -1},
    {.batch = 1,
     .q_heads = 2,
     .kv_heads = 2,
     .q_len = 0,
     .kv_len = 3,
     .size = 4,
     .v_size = 4,
     .left = -1,
     .right = -1},
    /* Several blocks of rows for each head, whose keys are packed piece by piece. */
    {.batch = 2,
     .q_heads = 4,
     .kv_heads = 2,
     .q_len = 205,
     .kv_len = 205,
     .past = 21,
     .size = 20,
     .v_size = 36,
     .left = 30,
     .right = -1,
     .causal = true},
    {.batch = 2,
     .q_heads = 2,
     .kv_heads = 2,
     .q_len = 400,
     .kv_len = 450,
     .size = 8,
     .v_size = 16,
     .left = 3,
     .right = 4,
     .packed = true},
    {.batch = 2,
     .q_heads = 4,
     .kv_heads = 1,
     .q_len = 14,
     .kv_len = 531,
     .size = 16,
     .v_size = 17,
     .left = -1,
     .right = -1,
     .bool_mask = true},
    {.batch = 3,
     .q_heads = 2,
     .kv_heads = 1,
     .q_len = 130,
     .kv_len = 150,
     .size = 16,
     .v_size = 16,
     .left = -1,
     .right = -1,
     .nonpad = true,
     .causal = true},
};

START_TEST(test_matches_definition)
{
    for (int32_t n_out = 1; n_out <= 4; n_out++)
        check_attention(cases[_i], n_out, GRT_DTYPE_NONE);
}
END_TEST

START_TEST(test_exact_rows_match_definition)
{
    check_attention(cases[_i], 4, GRT_DTYPE_DOUBLE); /* asks for the kernel of other types */
}
END_TEST

/* Row 0 sees the first key, rows 1 and 2 none: one is hidden by a number that only float32 has, so that its
 * weights are equal, and one by minus infinity, which gives zeros. */
START_TEST(test_wide_masks_hide_by_finite_numbers)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16, GRT_DTYPE_FLOAT};
    static const uint16_t ones[] = {0x3c00, 0x3f80};
    const grt_dtype dtype = dtypes[_i];
    const float mask[] = {0, -FLT_MAX, -FLT_MAX, -FLT_MAX, -INFINITY, -INFINITY};
    const float wanted[] = {1, 0.5f, 0};
    const uint16_t keys[] = {ones[_i % 2], 0}, queries[] = {ones[_i % 2], ones[_i % 2], ones[_i % 2]};
    const float wide_keys[] = {1, 0}, wide_queries[] = {1, 1, 1};
    const bool is_wide = dtype == GRT_DTYPE_FLOAT;
    op_runner r;
    op_begin(&r, "", "Attention");
    op_add(&r, dtype, 4, (const int64_t[]){1, 1, 3, 1}, is_wide ? (const void *)wide_queries : queries);
    for (int i = 0; i < 2; i++)
        op_add(&r, dtype, 4, (const int64_t[]){1, 1, 2, 1}, is_wide ? (const void *)wide_keys : keys);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){3, 2}, mask);
    op_run_ok(&r, 1);
    for (int64_t i = 0; i < 3; i++)
        ck_assert_double_eq_tol(grt_element_get(&r.out[0].t, i), (double)wanted[i], 1e-6);
    op_end(&r);
}
END_TEST

/* What is far away is near: the key that is most unlike a query has most weight, in each kernel. */
START_TEST(test_scales_below_zero)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_DOUBLE};
    const float narrow[] = {1, 2, 3};
    const double wide[] = {1, 2, 3}, expected = (1 + 2 * exp(-4) + 3 * exp(-8)) / (1 + exp(-4) + exp(-8));
    const grt_dtype dtype = dtypes[_i];
    const void *keys = dtype == GRT_DTYPE_FLOAT ? (const void *)narrow : wide;
    op_runner r;
    op_begin(&r, "", "Attention");
    op_float(&r, "scale", -4);
    op_add(&r, dtype, 4, (const int64_t[]){1, 1, 1, 1}, keys);
    op_add(&r, dtype, 4, (const int64_t[]){1, 1, 3, 1}, keys);
    op_add(&r, dtype, 4, (const int64_t[]){1, 1, 3, 1}, keys);
    op_run_ok(&r, 1);
    ck_assert_double_eq_tol(grt_element_get(&r.out[0].t, 0), expected, 1e-6);
    op_end(&r);
}
END_TEST

START_TEST(test_refuses_misfits)
{
    sizes s = cases[1];
    inputs in = make_inputs(&s);
    op_runner r;
    set_up(&r, &s, &in);
    r.in[1].t.dims[3]--;
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "head sizes"));
    op_end(&r);
    free_inputs(&in);
}
END_TEST

START_TEST(test_rotary_turns_pairs)
{
    const float x[] = {1, 2, 3, 4, 5, 6}, cosine[] = {0, 1}, sine[] = {1, 0};
    const int64_t ids[] = {0};
    const float halves[] = {-3, 2, 1, 4, 5, 6}, pairs[] = {-2, 1, 3, 4, 5, 6};
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        op_runner r;
        op_begin(&r, "", "RotaryEmbedding");
        op_int(&r, "interleaved", interleaved);
        op_int(&r, "rotary_embedding_dim", 4);
        op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 1, 6}, x);
        op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 2}, cosine);
        op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 2}, sine);
        op_add(&r, GRT_DTYPE_INT64, 2, (const int64_t[]){1, 1}, ids);
        op_run_ok(&r, 1);
        ck_assert_mem_eq(r.out[0].t.data, interleaved ? pairs : halves, sizeof x);
        op_end(&r);
    }
}
END_TEST

START_TEST(test_rotary_refuses_unknown_position)
{
    const float x[] = {1, 2}, cosine[] = {0}, sine[] = {1};
    const int64_t ids[] = {1};
    op_runner r;
    op_begin(&r, "", "RotaryEmbedding");
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 1, 2}, x);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 1}, cosine);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 1}, sine);
    op_add(&r, GRT_DTYPE_INT64, 2, (const int64_t[]){1, 1}, ids);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
    op_end(&r);
}
END_TEST

Suite *suite_test_attention(void)
{
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");
    tcase_add_loop_test(tests, test_matches_definition, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tests, test_exact_rows_match_definition, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tests, test_wide_masks_hide_by_finite_numbers, 0, 3);
    tcase_add_loop_test(tests, test_scales_below_zero, 0, 2);
    tcase_add_test(tests, test_refuses_misfits);
    tcase_add_test(tests, test_rotary_turns_pairs);
    tcase_add_test(tests, test_rotary_refuses_unknown_position);
    suite_add_tcase(suite, tests);
    return suite;
}
