/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between all types, and scales of blocks. */
#include "graph/ir/infer.h"
#include "tests/unit/evaluate.h"
#include "tests/unit/ir_text.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void cast(grt_dtype to, const grt_tensor *in, grt_value *out)
{
    grt_attr attr = {.name = "to", .kind = GRT_ATTR_INT, .i = to};
    grt_status status = evaluate("", "Cast", &attr, 1, in, 1, out);
    ck_assert_msg(status == GRT_OK, "%s", grt_last_error());
}

/* Every code of a small type survives the way to float32 (and float64) and back. */
START_TEST(small_types_survive_a_round_trip)
{
    static const grt_dtype types[] = {
        GRT_DTYPE_FLOAT16,    GRT_DTYPE_BFLOAT16,       GRT_DTYPE_FLOAT8E4M3FN, GRT_DTYPE_FLOAT8E4M3FNUZ,
        GRT_DTYPE_FLOAT8E5M2, GRT_DTYPE_FLOAT8E5M2FNUZ, GRT_DTYPE_FLOAT8E8M0,   GRT_DTYPE_FLOAT4E2M1,
        GRT_DTYPE_INT4,       GRT_DTYPE_UINT4,          GRT_DTYPE_INT2,         GRT_DTYPE_UINT2};
    static uint16_t codes[65536];
    grt_dtype type = types[_i];
    bool wide = grt_dtype_bits(type) == 16;
    int64_t n = wide ? 65536 : 256 * 8 / (int64_t)grt_dtype_bits(type);
    for (int i = 0; i < 65536; i++)
        if (wide)
            codes[i] = (uint16_t)i;
        else if (i < 256)
            ((uint8_t *)codes)[i] = (uint8_t)i;
    for (int twice = 0; twice < 2; twice++) {
        grt_tensor in = vector_of(type, n, codes);
        grt_value middle, back;
        cast(twice ? GRT_DTYPE_DOUBLE : GRT_DTYPE_FLOAT, &in, &middle);
        cast(type, &middle.t, &back);
        const uint8_t *bytes = back.t.data;
        for (int64_t i = 0; i < n; i++) {
            double value = grt_tensor_double(&middle.t, i);
            if (isnan(value) || (isinf(value) && !wide)) /* which NaN is free; float8 saturates infinity */
                continue;
            if (wide)
                ck_assert_uint_eq(((uint16_t *)back.t.data)[i], codes[i]);
            else
                ck_assert_uint_eq(bytes[i * (int64_t)grt_dtype_bits(type) / 8],
                                  ((uint8_t *)codes)[i * (int64_t)grt_dtype_bits(type) / 8]);
        }
        grt_value_clear(&middle);
        grt_value_clear(&back);
    }
}
END_TEST

START_TEST(doubles_are_rounded_once)
{
    /* Just above the middle of two halves: rounding to float32 first would lose the excess. */
    const double x[] = {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11, -1.0 - 0x1p-11 - 0x1p-40, 65519.99999999,
                        65520.0};
    const uint16_t expected[] = {0x3c01, 0x3c00, 0xbc01, 0x7bff, 0x7c00};
    grt_tensor in = vector_of(GRT_DTYPE_DOUBLE, 5, x);
    grt_value out;
    cast(GRT_DTYPE_FLOAT16, &in, &out);
    ck_assert_mem_eq(out.t.data, expected, sizeof expected);
    grt_value_clear(&out);
}
END_TEST

START_TEST(text_and_numbers)
{
    const grt_string text[] = {{"3.5", 3}, {" -1e3 ", 6}, {"+INF", 4}, {"nan", 3}};
    const int64_t whole[] = {INT64_MIN, 0, 42};
    grt_tensor in = vector_of(GRT_DTYPE_STRING, 4, text);
    grt_value out;
    cast(GRT_DTYPE_FLOAT, &in, &out);
    const float *f = out.t.data;
    ck_assert(f[0] == 3.5f && f[1] == -1000.0f && isinf(f[2]) && isnan(f[3]));
    grt_value_clear(&out);
    in = vector_of(GRT_DTYPE_INT64, 3, whole);
    grt_value strings;
    cast(GRT_DTYPE_STRING, &in, &strings);
    cast(GRT_DTYPE_INT64, &strings.t, &out);
    ck_assert_mem_eq(out.t.data, whole, sizeof whole);
    grt_value_clear(&out);
    grt_value_clear(&strings);
    const grt_string bad = {"Hello", 5};
    grt_attr attr = {.name = "to", .kind = GRT_ATTR_INT, .i = GRT_DTYPE_FLOAT};
    in = vector_of(GRT_DTYPE_STRING, 1, &bad);
    ck_assert_int_ne(evaluate("", "Cast", &attr, 1, &in, 1, &out), GRT_OK);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "Hello"));
    grt_value_clear(&out);
}
END_TEST

START_TEST(quantised_blocks_use_their_own_scale)
{
    const float x[] = {1, 2, 30, 40, 500, -6, 7, 80}, scale[] = {1, 10, 100, 2, 1, 20};
    grt_attr attrs[] = {{.name = "axis", .kind = GRT_ATTR_INT, .i = 1},
                        {.name = "block_size", .kind = GRT_ATTR_INT, .i = 2},
                        {.name = "output_dtype", .kind = GRT_ATTR_INT, .i = GRT_DTYPE_INT8}};
    grt_tensor in[2] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 4}, .data = (void *)x},
                        {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 2}, .data = (void *)scale}};
    grt_value out;
    grt_status status = evaluate("", "QuantizeLinear", attrs, 3, in, 2, &out);
    ck_assert_msg(status == GRT_OK, "%s", grt_last_error());
    ck_assert_mem_eq(out.t.data, ((int8_t[]){1, 2, 3, 4, 5, 0, 4, 40}), 8);
    grt_value_clear(&out);
    in[1].dims[1] = 3; /* three blocks of two do not fit four elements */
    ck_assert_int_ne(evaluate("", "QuantizeLinear", attrs, 3, in, 2, &out), GRT_OK);
    grt_value_clear(&out);
}
END_TEST

static grt_status infer_levels(const char *x, const char *scale, const char *zero)
{
    char text[256];
    snprintf(text, sizeof text,
             "in x u8 %s\nin s f32 %s\nin z u8 %s\ny = DequantizeLinear x s z axis=1\nout y\n", x, scale,
             zero);
    ir_module *module = ir_text_read(text);
    const grt_status status = ir_infer(module);
    ir_module_release(module);
    return status;
}

/* Passes make steps of them whose kernels read one of each for a column. */
START_TEST(zero_points_are_as_many_as_scales)
{
    static const char *const fit[][2] = {{"-", "-"}, {"-", "1"}, {"1", "-"},
                                         {"3", "3"}, {"n", "3"}, {"3", "n"}},
                             *const misfit[][2] = {
                                 {"3", "2"}, {"3", "1"}, {"3", "-"}, {"-", "3"}, {"1", "3"}};
    for (size_t i = 0; i < sizeof fit / sizeof *fit; i++)
        ck_assert_msg(infer_levels("2,3", fit[i][0], fit[i][1]) == GRT_OK, "%s", grt_last_error());
    for (size_t i = 0; i < sizeof misfit / sizeof *misfit; i++)
        ck_assert_msg(infer_levels("2,3", misfit[i][0], misfit[i][1]) == GRT_STATUS_INVALID_MODEL,
                      "%s and %s", misfit[i][0], misfit[i][1]);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "dim 0 of the zero point is 3, that of the scale 1"));
}
END_TEST

Suite *suite_test_cast(void);
Suite *suite_test_cast(void)
{
    Suite *suite = suite_create("cast");
    TCase *tc = tcase_create("cast");
    tcase_add_loop_test(tc, small_types_survive_a_round_trip, 0, 12);
    tcase_add_test(tc, doubles_are_rounded_once);
    tcase_add_test(tc, text_and_numbers);
    tcase_add_test(tc, quantised_blocks_use_their_own_scale);
    tcase_add_test(tc, zero_points_are_as_many_as_scales);
    suite_add_tcase(suite, tc);
    return suite;
}
