/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on 16-bit floats give what they give on the same numbers as float32, rounded once. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include "src/base/element.h"

enum { MOST = 4096 };

typedef struct widen_case {
    const char *op;
    const char *attribute; /* or NULL */
    int64_t value;
    int32_t n_in;
    struct {
        int32_t rank;
        int64_t dims[4];
    } in[5];
} widen_case;

static const widen_case cases[] = {
    {"Attention", NULL, 0, 3, {{4, {1, 2, 9, 16}}, {4, {1, 2, 40, 16}}, {4, {1, 2, 40, 16}}}},
    {"LayerNormalization", NULL, 0, 3, {{2, {8, 96}}, {1, {96}}, {1, {96}}}},
    {"RMSNormalization", NULL, 0, 2, {{2, {8, 96}}, {1, {96}}}},
    {"Softmax", "axis", 1, 1, {{2, {8, 96}}}},
    {"GroupNormalization", "num_groups", 4, 3, {{4, {1, 8, 9, 9}}, {1, {8}}, {1, {8}}}},
    {"InstanceNormalization", NULL, 0, 3, {{4, {1, 8, 9, 9}}, {1, {8}}, {1, {8}}}},
    {"LRN", "size", 5, 1, {{4, {1, 8, 9, 9}}}},
    {"GlobalAveragePool", NULL, 0, 1, {{4, {1, 8, 9, 9}}}},
    {"Conv", "group", 2, 3, {{4, {1, 8, 9, 9}}, {4, {6, 4, 3, 3}}, {1, {6}}}},
    {"ConvTranspose", "group", 2, 3, {{4, {1, 8, 5, 5}}, {4, {8, 3, 3, 3}}, {1, {6}}}},
    {"BatchNormalization", NULL, 0, 5, {{4, {1, 8, 9, 9}}, {1, {8}}, {1, {8}}, {1, {8}}, {1, {8}}}},
};

static uint16_t narrow(grt_dtype dtype, float v)
{
    return dtype == GRT_DTYPE_FLOAT16 ? grt_float_to_half(v) : grt_float_to_bfloat16(v);
}

static float widen(grt_dtype dtype, uint16_t v)
{
    return dtype == GRT_DTYPE_FLOAT16 ? grt_half_to_float(v) : grt_bfloat16_to_float(v);
}

static void check_widened(const widen_case *c, grt_dtype dtype)
{
    static uint16_t few[5][MOST];
    static float wide[5][MOST];
    op_runner half, full;
    op_begin(&half, "", c->op);
    op_begin(&full, "", c->op);
    if (c->attribute) {
        op_int(&half, c->attribute, c->value);
        op_int(&full, c->attribute, c->value);
    }
    for (int32_t i = 0; i < c->n_in; i++) {
        int64_t n = 1;
        for (int32_t k = 0; k < c->in[i].rank; k++)
            n *= c->in[i].dims[k];
        ck_assert_int_le(n, MOST);
        fill_floats(wide[i], n, (uint32_t)i + 1);
        for (int64_t k = 0; k < n; k++) {
            few[i][k] = narrow(dtype, i < 4 ? wide[i][k] : wide[i][k] + 1.0f); /* variances are positive */
            wide[i][k] = widen(dtype, few[i][k]);
        }
        op_add(&half, dtype, c->in[i].rank, c->in[i].dims, few[i]);
        op_add(&full, GRT_DTYPE_FLOAT, c->in[i].rank, c->in[i].dims, wide[i]);
    }
    op_run_ok(&half, 1);
    op_run_ok(&full, 1);
    const grt_tensor *found = &half.out[0].t, *wanted = &full.out[0].t;
    ck_assert_int_eq(found->dtype, dtype);
    ck_assert_int_eq(grt_tensor_elements(found), grt_tensor_elements(wanted));
    for (int64_t k = 0; k < grt_tensor_elements(wanted); k++)
        ck_assert_msg(((const uint16_t *)found->data)[k] == narrow(dtype, ((const float *)wanted->data)[k]),
                      "%s, element %lld: %g, expected %g rounded", c->op, (long long)k,
                      (double)widen(dtype, ((const uint16_t *)found->data)[k]),
                      (double)((const float *)wanted->data)[k]);
    op_end(&half);
    op_end(&full);
}

START_TEST(half_precision_is_rounded_once)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_widened(&cases[i], GRT_DTYPE_FLOAT16);
        check_widened(&cases[i], GRT_DTYPE_BFLOAT16);
    }
}
END_TEST

UNIT_SUITE(test_widen, NULL, NULL, half_precision_is_rounded_once)
