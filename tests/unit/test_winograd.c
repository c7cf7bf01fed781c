/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolutions against their definition in double, and bit for bit with any number of threads. */
#include "backends/cpu/conv_winograd.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAPS = 3 };

static float *make_floats(int64_t n, uint32_t seed)
{
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    fill_floats(data, n, seed);
    return data;
}

static void *make_aligned(size_t bytes)
{
    void *data = aligned_alloc(64, grt_align_up(bytes + 1, 64));
    ck_assert_ptr_nonnull(data);
    return data;
}

/* Sizes that are even and odd, channels that fill vectors and do not, padding on any side. */
static cpu_conv draw(uint32_t seed)
{
    uint32_t r = seed * 2654435761u;
#define PICK(n) ((int64_t)((r = r * 1664525u + 1013904223u) >> 16) % (n))
    cpu_conv c = {.last = true, .groups = 1, .batch = 1 + PICK(3)};
    c.in_channels = PICK(2) ? 16 * (1 + PICK(4)) : 16 + PICK(60);
    c.out_channels = PICK(2) ? 32 * (1 + PICK(3)) : 32 + PICK(50);
    c.w = (cpu_window){.spatial = 2, .in_pixels = 1, .out_pixels = 1, .taps = TAPS * TAPS};
    for (int i = 0; i < 2; i++) {
        c.w.kernel[i] = TAPS;
        c.w.stride[i] = c.w.dilation[i] = 1;
        c.w.in[i] = 11 + PICK(14);
        c.w.begin[i] = PICK(4);
        c.w.end[i] = PICK(4);
        c.w.out[i] = c.w.in[i] + c.w.begin[i] + c.w.end[i] - TAPS + 1;
        c.w.in_pixels *= c.w.in[i];
        c.w.out_pixels *= c.w.out[i];
    }
    const grt_act acts[] = {{GRT_ACT_NONE, 0, 0}, {GRT_ACT_RELU, 0, 0}, {GRT_ACT_SILU, 1, 0}};
    c.act = acts[PICK(3)];
#undef PICK
    return c;
}

/* Output `at`, a position in y, before the activation. */
static double define(const cpu_conv *c, const float *x, const float *w, int64_t at)
{
    const int64_t m = at % c->out_channels, pixel = at / c->out_channels, column = pixel % c->w.out[1],
                  row = pixel / c->w.out[1] % c->w.out[0], image = pixel / c->w.out_pixels;
    double sum = 0.0;
    for (int64_t t = 0; t < TAPS * TAPS; t++) {
        const int64_t i = row + t / TAPS - c->w.begin[0], j = column + t % TAPS - c->w.begin[1];
        const bool inside = i >= 0 && i < c->w.in[0] && j >= 0 && j < c->w.in[1];
        for (int64_t k = 0; inside && k < c->in_channels; k++)
            sum += (double)x[((image * c->w.in[0] + i) * c->w.in[1] + j) * c->in_channels + k] *
                   (double)w[(m * c->in_channels + k) * TAPS * TAPS + t];
    }
    return sum;
}

static double activate(grt_act act, double v)
{
    if (act.kind == GRT_ACT_RELU)
        return v > 0 ? v : 0;
    return act.kind == GRT_ACT_SILU ? v / (1.0 + exp(-v)) : v;
}

static void check_draw(uint32_t seed)
{
    const cpu_conv c = draw(seed);
    const bool biased = seed % 3, added = seed % 2;
    const int64_t n = c.batch * c.w.out_pixels * c.out_channels;
    ck_assert(cpu_winograd_fits(&c));
    float *x = make_floats(c.batch * c.w.in_pixels * c.in_channels, seed),
          *w = make_floats(c.in_channels * c.out_channels * TAPS * TAPS, seed + 1),
          *bias = make_floats(c.out_channels, seed + 2), *residual = make_floats(n, seed + 3),
          *y[2] = {make_floats(n, 0), make_floats(n, 1)};
    size_t floats, bytes;
    ck_assert(cpu_winograd_floats(&c, &floats));
    float *packed = make_aligned(floats * sizeof *packed);
    cpu_winograd_pack(&c, w, packed);
    for (int threads = 1; threads <= 2; threads++) {
        ck_assert(cpu_winograd_bytes(&c, threads, &bytes));
        void *workspace = make_aligned(bytes);
        memset(workspace, 0xff, bytes); /* NaN */
        cpu_winograd_run(&c, x, packed, biased ? bias : NULL, added ? residual : NULL, y[threads - 1],
                         workspace, threads);
        free(workspace);
    }
    ck_assert_mem_eq(y[0], y[1], (size_t)n * sizeof **y);
    const double bound = 2e-6 + 1e-6 * sqrt((double)(c.in_channels * TAPS * TAPS));
    for (int64_t i = 0; i < n; i += 1 + i % 7) {
        const double before = define(&c, x, w, i) + (biased ? (double)bias[i % c.out_channels] : 0.0) +
                              (added ? (double)residual[i] : 0.0),
                     wanted = activate(c.act, before);
        ck_assert_msg(fabs((double)y[0][i] - wanted) < bound, "seed %u element %lld: %g, expected %g", seed,
                      (long long)i, (double)y[0][i], wanted);
    }
    free(x);
    free(w);
    free(bias);
    free(residual);
    free(packed);
    free(y[0]);
    free(y[1]);
}

START_TEST(outputs_match_their_definition_and_do_not_depend_on_threads)
{
    for (uint32_t seed = 0; seed < 40; seed++)
        check_draw(seed);
}
END_TEST

START_TEST(other_convolutions_do_not_fit)
{
    const cpu_conv usual = draw(1);
    cpu_conv c = usual;
    c.w.stride[1] = 2;
    ck_assert(!cpu_winograd_fits(&c));
    c = usual;
    c.w.dilation[0] = 2;
    ck_assert(!cpu_winograd_fits(&c));
    c = usual;
    c.w.kernel[0] = 1;
    ck_assert(!cpu_winograd_fits(&c));
    c = usual;
    c.last = false;
    ck_assert(!cpu_winograd_fits(&c));
    c = usual;
    c.in_channels = c.out_channels = 1 << 20; /* weights that are read for few tiles */
    ck_assert(!cpu_winograd_fits(&c));
    size_t bytes;
    c.batch = c.w.out[0] = INT64_MAX / 2;
    ck_assert(!cpu_winograd_bytes(&c, 1, &bytes));
}
END_TEST

UNIT_SUITE(test_winograd, NULL, NULL, outputs_match_their_definition_and_do_not_depend_on_threads,
           other_convolutions_do_not_fit)
