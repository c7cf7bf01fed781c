/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of one tap as products of pixels: against their definition in double, and when they are
 * chosen. */
#include "backends/cpu/conv_pixels.h"
#include "tests/unit/windows.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { WIDE = 640 /* channels on both sides whose weights are too many for a cache */ };

static cpu_conv strided(int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width, int64_t down,
                        int64_t across)
{
    cpu_conv c = {.last = true, .batch = batch, .groups = 1, .in_channels = in, .out_channels = out};
    c.w = (cpu_window){.spatial = 2,
                       .in = {height, width},
                       .out = {(height + down - 1) / down, (width + across - 1) / across},
                       .kernel = {1, 1},
                       .stride = {down, across},
                       .dilation = {1, 1},
                       .in_pixels = height * width,
                       .taps = 1};
    c.w.out_pixels = c.w.out[0] * c.w.out[1];
    return c;
}

static int64_t whole_blocks(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

/* As oneDNN has them; what is behind the last input channel is not to be read. */
static float *blocks_of(const cpu_conv *c, const float *w)
{
    const int64_t in = whole_blocks(c->in_channels), out = whole_blocks(c->out_channels);
    float *packed = aligned_alloc(64, (size_t)(in * out) * sizeof *packed);
    ck_assert_ptr_nonnull(packed);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            packed[o / 16 * 16 * in + i * 16 + o % 16] = i >= c->in_channels    ? NAN
                                                         : o >= c->out_channels ? 0.0f
                                                                                : w[o * c->in_channels + i];
    return packed;
}

static void check_pixels(const cpu_conv *c, const float *x, const float *w, const float *bias,
                         const float *residual, const float *y)
{
    for (int64_t i = 0; i < c->batch * c->w.out_pixels; i++) {
        const int64_t image = i / c->w.out_pixels, line = i % c->w.out_pixels / c->w.out[1],
                      column = i % c->w.out[1],
                      at = image * c->w.in_pixels + line * c->w.stride[0] * c->w.in[1] +
                           column * c->w.stride[1];
        for (int64_t o = 0; o < c->out_channels; o++) {
            double sum =
                (bias ? (double)bias[o] : 0) + (residual ? (double)residual[i * c->out_channels + o] : 0);
            for (int64_t k = 0; k < c->in_channels; k++)
                sum += (double)x[at * c->in_channels + k] * (double)w[o * c->in_channels + k];
            const double wanted = c->act.kind == GRT_ACT_RELU && sum < 0 ? 0 : sum;
            ck_assert_double_eq_tol((double)y[i * c->out_channels + o], wanted, 1e-5);
        }
    }
}

/* Ragged and whole blocks of channels, strides along either dim, more pixels than are copied at a time. */
START_TEST(pixels_match_their_definition)
{
    for (uint32_t seed = 0; seed < 24; seed++) {
        window_begin(seed);
        cpu_conv c = strided(window_pick(1, 2), window_pick(1, 40), window_pick(1, 40), window_pick(1, 40),
                             window_pick(1, 40), window_pick(1, 2), window_pick(1, 3));
        c.act.kind = seed % 2 ? GRT_ACT_RELU : GRT_ACT_NONE;
        const int threads = 1 + seed / 2 % 2;
        const int64_t results = c.batch * c.w.out_pixels * c.out_channels;
        float *x = window_floats(c.batch * c.w.in_pixels * c.in_channels, seed),
              *w = window_floats(c.in_channels * c.out_channels, seed + 1),
              *bias = seed % 3 ? window_floats(c.out_channels, seed + 2) : NULL,
              *residual = seed % 4 < 2 ? window_floats(results, seed + 3) : NULL,
              *y = malloc((size_t)results * sizeof *y), *packed = blocks_of(&c, w);
        size_t bytes;
        ck_assert(cpu_conv_pixels_bytes(&c, &bytes));
        void *workspace = aligned_alloc(64, bytes + 64);
        cpu_conv_pixels_run(&c, x, packed, bias, residual, y, workspace, threads);
        check_pixels(&c, x, w, bias, residual, y);
        free(x);
        free(w);
        free(bias);
        free(residual);
        free(y);
        free(packed);
        free(workspace);
    }
}
END_TEST

START_TEST(copies_are_bounded)
{
    const cpu_conv all = strided(8, WIDE, WIDE, 64, 64, 1, 1), some = strided(8, WIDE, WIDE, 64, 64, 2, 2);
    size_t bytes;
    ck_assert(cpu_conv_pixels_bytes(&all, &bytes));
    ck_assert_uint_eq(bytes, 0);
    ck_assert(cpu_conv_pixels_bytes(&some, &bytes));
    ck_assert_uint_le(bytes, (size_t)256 * WIDE * sizeof(float));
}
END_TEST

START_TEST(many_weights_are_products)
{
    const char *kernel = "jit_1x1:avx512_core";
    const cpu_conv wide = strided(1, WIDE, WIDE, 7, 7, 1, 1), narrow = strided(1, WIDE / 2, WIDE, 7, 7, 1, 1);
    ck_assert(cpu_conv_pixels_fits(&wide, kernel));
    ck_assert(!cpu_conv_pixels_fits(&narrow, kernel));
    ck_assert(!cpu_conv_pixels_fits(&wide, "brgconv_1x1:avx512_core"));
    cpu_conv other = wide;
    other.groups = 2;
    ck_assert(!cpu_conv_pixels_fits(&other, kernel));
    other = wide;
    other.w.begin[1] = 1;
    ck_assert(!cpu_conv_pixels_fits(&other, kernel));
    other = wide;
    other.w.out[1]++; /* a pixel of padding at the end */
    ck_assert(!cpu_conv_pixels_fits(&other, kernel));
    ck_assert(cpu_conv_pixels_reads(&wide, "ABcd16b16a"));
    ck_assert(!cpu_conv_pixels_reads(&wide, "ABcd8b8a"));
    ck_assert(!cpu_conv_pixels_reads(&wide, NULL));
}
END_TEST

/* The operator, whichever kernel this machine has for it, beside weights that are not constant. */
START_TEST(wide_residuals_match_weights_of_a_run)
{
    const int64_t x_dims[] = {2, 5, 7, WIDE}, w_dims[] = {WIDE, WIDE, 1, 1}, r_dims[] = {2, 3, 4, WIDE},
                  n = WIDE;
    const int64_t strides[] = {2, 2};
    float *x = window_floats(2 * 5 * 7 * WIDE, 1), *w = window_floats(WIDE * WIDE, 2),
          *bias = window_floats(n, 3), *residual = window_floats(2 * 3 * 4 * WIDE, 4);
    op_runner runs[3];
    for (int i = 0; i < 3; i++) {
        op_runner *r = &runs[i];
        op_begin(r, "graphrt", "Conv");
        r->threads = 2;
        r->constants = i ? 2 : 0;
        r->pack = i == 2;
        op_ints(r, "strides", strides, 2);
        op_string(r, "layout", "NHWC");
        op_string(r, "activation", "Relu");
        op_add(r, GRT_DTYPE_FLOAT, 4, x_dims, x);
        op_add(r, GRT_DTYPE_FLOAT, 4, w_dims, w);
        op_add(r, GRT_DTYPE_FLOAT, 1, &n, bias);
        op_add(r, GRT_DTYPE_FLOAT, 4, r_dims, residual);
        op_run_ok(r, 1);
        for (int64_t k = 0; k < 2 * 3 * 4 * WIDE; k++)
            ck_assert_double_eq_tol((double)((float *)r->out[0].t.data)[k],
                                    (double)((float *)runs[0].out[0].t.data)[k], 1e-4);
    }
    for (int i = 0; i < 3; i++)
        op_end(&runs[i]);
    free(x);
    free(w);
    free(bias);
    free(residual);
}
END_TEST

Suite *suite_test_conv_pixels(void)
{
    Suite *suite = suite_create("conv_pixels");
    TCase *tc = tcase_create("conv_pixels");
    tcase_add_test(tc, pixels_match_their_definition);
    tcase_add_test(tc, copies_are_bounded);
    tcase_add_test(tc, many_weights_are_products);
    tcase_add_test(tc, wide_residuals_match_weights_of_a_run);
    suite_add_tcase(suite, tc);
    return suite;
}
