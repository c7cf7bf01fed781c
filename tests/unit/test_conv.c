/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on random windows, in both layouts, against their definition in double. */
#include "tests/unit/windows.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Inputs of a convolution, and its sums by definition, without bias: of many runs. */
typedef struct sample {
    window w;
    int64_t out[WINDOW_MOST], out_pixels;
    float *x, *x_last, *bias, *weights;
    double *sums;
} sample;

static double dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++, a += a_step, b += b_step)
        sum += (double)*a * (double)*b;
    return sum;
}

/* At output o, which is pixel p of the result, of all images and filters. */
static void add_tap(sample *s, const int64_t *o, int64_t p, int64_t tap)
{
    const window *w = &s->w;
    const int64_t per = w->channels / w->groups, filters = w->filters / w->groups,
                  taps = grt_dims_product(w->kernel, 0, w->spatial),
                  pixels = grt_dims_product(w->in, 0, w->spatial);
    int64_t k[WINDOW_MOST], at;
    window_unflatten(tap, w->kernel, w->spatial, k);
    if (!window_position(w, o, k, &at))
        return;
    for (int64_t b = 0; b < w->batch; b++)
        for (int64_t m = 0; m < w->filters; m++)
            s->sums[(b * w->filters + m) * s->out_pixels + p] +=
                dot(s->x + (b * w->channels + m / filters * per) * pixels + at, pixels,
                    s->weights + m * per * taps + tap, taps, per);
}

static sample sample_create(const window *w, uint32_t seed)
{
    const int32_t n = w->spatial;
    const int64_t pixels = grt_dims_product(w->in, 0, n), taps = grt_dims_product(w->kernel, 0, n);
    sample s = {.w = *w, .out_pixels = 1};
    for (int32_t i = 0; i < n; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        s.out[i] = (w->in[i] + w->pads[i] + w->pads[n + i] - reach) / w->stride[i] + 1;
        s.out_pixels *= s.out[i];
    }
    s.x = window_floats(w->batch * w->channels * pixels, seed);
    s.x_last = window_channels_last(s.x, w->batch, w->channels, pixels);
    s.bias = window_floats(w->filters, seed + 1);
    s.weights = window_floats(w->filters * w->channels / w->groups * taps, seed + 2);
    s.sums = calloc((size_t)(w->batch * w->filters * s.out_pixels), sizeof *s.sums);
    ck_assert_ptr_nonnull(s.sums);
    for (int64_t p = 0; p < s.out_pixels; p++) {
        int64_t o[WINDOW_MOST];
        window_unflatten(p, s.out, n, o);
        for (int64_t tap = 0; tap < taps; tap++)
            add_tap(&s, o, p, tap);
    }
    return s;
}

static void sample_release(sample *s)
{
    free(s->x);
    free(s->x_last);
    free(s->bias);
    free(s->weights);
    free(s->sums);
}

static const char *const activations[] = {"Relu", "Silu", "Gelu", "Tanh"};

static double activated(int which, double x)
{
    switch (which) {
    case 0:
        return x < 0 ? 0 : x;
    case 1:
        return x / (1 + exp(-x));
    case 2:
        return 0.5 * x * erfc(-x / sqrt(2));
    default:
        return tanh(x);
    }
}

/* One fused or plain convolution. variant: bit 0 constant weights, 1 channels last, 2 fused epilogue. */
static void check_conv(const sample *s, uint32_t seed, int variant)
{
    const window *w = &s->w;
    const bool last = variant & 2, fused = last || (variant & 4);
    const int which = (int)(seed / 4 % 4);
    const int32_t n = w->spatial;
    float *residual = NULL;
    int64_t dims[WINDOW_MOST + 2], w_dims[WINDOW_MOST + 2] = {w->filters, w->channels / w->groups};
    memcpy(w_dims + 2, w->kernel, (size_t)n * sizeof *w_dims);
    op_runner r;
    op_begin(&r, fused ? "graphrt" : "", "Conv");
    r.threads = 1 + seed % 2;
    r.constants = variant & 1 ? 2 : 0;
    r.pack = seed % 4 < 2;
    r.known = seed % 5;
    window_attributes(&r, w);
    op_int(&r, "group", w->groups);
    window_dims(dims, w, w->channels, w->in, last);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, dims, last ? s->x_last : s->x);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, w_dims, s->weights);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &w->filters, s->bias);
    if (fused) {
        residual = window_floats(w->batch * w->filters * s->out_pixels, seed + 3);
        window_dims(dims, w, w->filters, s->out, last);
        op_add(&r, GRT_DTYPE_FLOAT, n + 2, dims, residual);
        op_string(&r, "activation", activations[which]);
        op_float(&r, "alpha", 1.0f);
    }
    if (last)
        op_string(&r, "layout", "NHWC");
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    for (int64_t i = 0; i < w->batch * w->filters * s->out_pixels; i++) {
        const int64_t b = i / (w->filters * s->out_pixels), m = i / s->out_pixels % w->filters,
                      p = i % s->out_pixels;
        const int64_t at = last ? (b * s->out_pixels + p) * w->filters + m : i;
        double wanted = s->sums[i] + (double)s->bias[m] + (residual ? (double)residual[at] : 0.0);
        wanted = fused ? activated(which, wanted) : wanted;
        ck_assert_msg(fabs((double)y[at] - wanted) < 2e-5 + 1e-6 * fabs(wanted),
                      "seed %u variant %d element %lld: %g, expected %g", seed, variant, (long long)i,
                      (double)y[at], wanted);
    }
    op_end(&r);
    free(residual);
}

/* Without an epilogue and with channels last. */
static void check_channels_last(const sample *s, uint32_t seed)
{
    const window *w = &s->w;
    const int32_t n = w->spatial;
    const int64_t per = w->channels / w->groups;
    int64_t dims[WINDOW_MOST + 2], w_dims[WINDOW_MOST + 2] = {w->filters, per};
    memcpy(w_dims + 2, w->kernel, (size_t)n * sizeof *w_dims);
    const double bound = 2e-5 + 1e-6 * sqrt((double)(per * grt_dims_product(w->kernel, 0, n)));
    op_runner r;
    op_begin(&r, "graphrt", "Conv");
    r.threads = 1 + seed % 2;
    r.constants = 2;
    r.pack = seed % 4 < 2;
    r.known = seed % 5;
    window_attributes(&r, w);
    op_int(&r, "group", w->groups);
    op_string(&r, "layout", "NHWC");
    window_dims(dims, w, w->channels, w->in, true);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, dims, s->x_last);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, w_dims, s->weights);
    if (seed % 3)
        op_add(&r, GRT_DTYPE_FLOAT, 1, &w->filters, s->bias);
    op_run_ok(&r, 1);
    const float *y = r.out[0].t.data;
    for (int64_t i = 0; i < w->batch * w->filters * s->out_pixels; i++) {
        const int64_t b = i / (w->filters * s->out_pixels), m = i / s->out_pixels % w->filters,
                      p = i % s->out_pixels;
        const double wanted = s->sums[i] + (seed % 3 ? (double)s->bias[m] : 0.0);
        const double found = (double)y[(b * s->out_pixels + p) * w->filters + m];
        ck_assert_msg(fabs(found - wanted) < bound, "seed %u element %lld: %g, expected %g", seed,
                      (long long)i, found, wanted);
    }
    op_end(&r);
}

/* Variants of check_conv from `first` on, each `step`th. */
static void check_variants(const window *w, uint32_t seed, int first, int step)
{
    sample s = sample_create(w, seed);
    for (int variant = first; variant < 8; variant += step)
        check_conv(&s, seed, variant);
    sample_release(&s);
}

static void check_one_channels_last(const window *w, uint32_t seed)
{
    sample s = sample_create(w, seed);
    check_channels_last(&s, seed);
    sample_release(&s);
}

static void check_all(const window *w, uint32_t seed)
{
    sample s = sample_create(w, seed);
    for (int variant = 0; variant < 8; variant++)
        check_conv(&s, seed, variant);
    check_channels_last(&s, seed);
    sample_release(&s);
}

/* Groups of 1 to 8 channels in and out, so that blocks of lanes are whole, ragged and alone; windows that are
 * dilated, wider than the input, strided, in 1 to 3 dims. */
START_TEST(groups_match_their_definition)
{
    uint32_t seed = 0;
    for (int64_t in = 1; in <= 8; in++)
        for (int64_t out = 1; out <= 8; out++) {
            const int64_t groups = 2 + (in * 3 + out) % 6;
            const window w = {.spatial = 2,
                              .batch = 2,
                              .channels = in * groups,
                              .filters = out * groups,
                              .groups = groups,
                              .in = {5, 9},
                              .kernel = {3, 3},
                              .stride = {1, 1 + in % 2},
                              .dilation = {1 + out % 2, 1},
                              .pads = {1, 1, 1, 1}};
            check_one_channels_last(&w, seed++);
        }
    const window wide = {.spatial = 1,
                         .batch = 1,
                         .channels = 19,
                         .filters = 19,
                         .groups = 19,
                         .in = {150},
                         .kernel = {31},
                         .stride = {1},
                         .dilation = {1},
                         .pads = {15, 15}};
    /* Groups of channels enough for products of each tap: shorter than its window, and several blocks. */
    const window large = {.spatial = 1,
                          .batch = 2,
                          .channels = 48,
                          .filters = 57,
                          .groups = 3,
                          .in = {11},
                          .kernel = {20},
                          .stride = {1},
                          .dilation = {1},
                          .pads = {10, 9}};
    const window large_line = {.spatial = 1,
                               .batch = 1,
                               .channels = 36,
                               .filters = 34,
                               .groups = 2,
                               .in = {230},
                               .kernel = {17},
                               .stride = {2},
                               .dilation = {1},
                               .pads = {3, 20}};
    /* The same as one product for each group: several blocks, and padding that is wider than the window. */
    const window lines = {.spatial = 1,
                          .batch = 2,
                          .channels = 54,
                          .filters = 51,
                          .groups = 3,
                          .in = {401},
                          .kernel = {3},
                          .stride = {2},
                          .dilation = {1},
                          .pads = {4, 1}};
    const window padded_lines = {.spatial = 1,
                                 .batch = 1,
                                 .channels = 40,
                                 .filters = 96,
                                 .groups = 2,
                                 .in = {5},
                                 .kernel = {4},
                                 .stride = {1},
                                 .dilation = {1},
                                 .pads = {9, 7}};
    const window over = {.spatial = 1,
                         .batch = 2,
                         .channels = 6,
                         .filters = 12,
                         .groups = 6,
                         .in = {4},
                         .kernel = {7},
                         .stride = {2},
                         .dilation = {2},
                         .pads = {9, 8}};
    const window cube = {.spatial = 3,
                         .batch = 1,
                         .channels = 9,
                         .filters = 9,
                         .groups = 9,
                         .in = {4, 5, 6},
                         .kernel = {3, 2, 3},
                         .stride = {1, 2, 1},
                         .dilation = {1, 1, 1},
                         .pads = {1, 0, 1, 1, 1, 1}};
    for (int i = 0; i < 4; i++) {
        check_one_channels_last(&wide, seed++);
        check_one_channels_last(&over, seed++);
        check_one_channels_last(&large, seed++);
        check_one_channels_last(&large_line, seed++);
        check_one_channels_last(&lines, seed++);
        check_one_channels_last(&padded_lines, seed++);
        check_one_channels_last(&cube, seed++);
    }
}
END_TEST

/* Groups of 16 channels, channels first, biased by -6: with the activation, or without for NULL. */
static void run_biased_groups(op_runner *r, const char *activation, const float *x, const float *weights)
{
    enum { CHANNELS = 64, PER = 16, TAPS = 3, PIXELS = 200 };
    static float bias[CHANNELS];
    const int64_t filters = CHANNELS, pads[] = {1, 1};
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = -6.0f;
    op_begin(r, "graphrt", "Conv");
    r->threads = 1;
    r->constants = 2;
    op_ints(r, "pads", pads, 2);
    op_int(r, "group", CHANNELS / PER);
    if (activation)
        op_string(r, "activation", activation);
    op_add(r, GRT_DTYPE_FLOAT, 3, (int64_t[]){1, CHANNELS, PIXELS}, x);
    op_add(r, GRT_DTYPE_FLOAT, 3, (int64_t[]){CHANNELS, PER, TAPS}, weights);
    op_add(r, GRT_DTYPE_FLOAT, 1, &filters, bias);
    op_run_ok(r, 1);
}

/* Where oneDNN unfolds them, bias and activation are the backend's own pass. */
START_TEST(groups_of_many_channels_take_bias_and_gelu)
{
    enum { INPUTS = 64 * 200, WEIGHTS = 64 * 16 * 3 };
    float *x = window_floats(INPUTS, 1), *weights = window_floats(WEIGHTS, 2);
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] *= 0.125f;
    op_runner plain, fused;
    run_biased_groups(&plain, NULL, x, weights);
    run_biased_groups(&fused, "Gelu", x, weights);
    const float *v = plain.out[0].t.data, *y = fused.out[0].t.data;
    int tail = 0;
    for (int i = 0; i < INPUTS; i++) {
        const double wanted = 0.5 * (double)v[i] * erfc(-(double)v[i] * sqrt(0.5));
        tail += v[i] < -5.0f;
        ck_assert_msg(fabs((double)y[i] - wanted) <= 1e-4 * fabs(wanted) + 1e-6,
                      "Gelu(%.9g) is %.9g, expected %.9g", (double)v[i], (double)y[i], wanted);
    }
    ck_assert_int_gt(tail, INPUTS / 4);
    op_end(&plain);
    op_end(&fused);
    free(x);
    free(weights);
}
END_TEST

/* Windows of 5 to 45 taps, padded unevenly, in groups of few and of many channels, over several images and
 * lines. In two of three, columns = 2 * padding - 1 at the end of a line. */
START_TEST(long_windows_match_their_definition)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        window_begin(seed);
        const int64_t per[] = {1, 8, 16, 20, 32}, groups = window_pick(0, 1) ? 1 : window_pick(2, 4),
                      end = window_pick(4, 20), taps = end + window_pick(1, 25), begin = window_pick(0, end),
                      lines = window_pick(1, 2);
        const int64_t columns = seed % 3 ? 2 * end - 1 : window_pick(end, 3 * end),
                      input = columns - 1 + taps - begin - end;
        const window w = {.spatial = 2,
                          .batch = window_pick(1, 2),
                          .channels = groups * per[window_pick(0, 4)],
                          .filters = groups * window_pick(1, 80),
                          .groups = groups,
                          .in = {lines, input},
                          .kernel = {1, taps},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .pads = {0, begin, 0, end}};
        if (input > 0)
            check_one_channels_last(&w, seed);
    }
}
END_TEST

/* One dim, long or dilated windows, padded more than oneDNN's kernels take: depthwise in every second one. */
START_TEST(lines_match_their_definition)
{
    for (uint32_t seed = 0; seed < 8; seed++) {
        window_begin(seed);
        const int64_t channels = window_pick(1, 40), groups = seed % 2 ? channels : 1,
                      taps = window_pick(2, 31);
        const window w = {.spatial = 1,
                          .batch = window_pick(1, 2),
                          .channels = channels,
                          .filters = groups == 1 ? window_pick(1, 40) : channels,
                          .groups = groups,
                          .in = {window_pick(60, 80)},
                          .kernel = {taps},
                          .stride = {window_pick(1, 2)},
                          .dilation = {taps < 12 ? window_pick(1, 5) : 1},
                          .pads = {window_pick(0, 30), window_pick(0, 30)}};
        check_all(&w, seed);
    }
}
END_TEST

/* One to five results a pixel, lines shorter and longer than a piece of work, padded as far as windows reach.
 */
START_TEST(few_filters_match_their_definition)
{
    for (uint32_t seed = 0; seed < 24; seed++) {
        window_begin(seed);
        const int64_t taps = window_pick(1, 5), step = window_pick(1, 2),
                      columns = seed % 3 ? window_pick(7, 40) : window_pick(150, 200);
        const window w = {
            .spatial = 1 + (int32_t)(seed % 3),
            .batch = window_pick(1, 2),
            .channels = window_pick(16, 40),
            .filters = window_pick(1, 5),
            .groups = 1,
            .in = {seed % 3 ? window_pick(3, 9) : columns, seed % 3 == 1 ? columns : 4, columns},
            .kernel = {seed % 3 ? 3 : taps, seed % 3 == 1 ? taps : 2, taps},
            .stride = {step, step, 1},
            .dilation = {seed % 3 ? step : 1, 1, 1}};
        window padded = w;
        for (int32_t i = 0; i < w.spatial; i++) {
            padded.pads[i] = window_pick(0, w.kernel[i] - 1) + (seed % 3 && i == 0);
            padded.pads[w.spatial + i] = window_pick(0, w.kernel[i] - 1) + (seed % 3 && i == 0);
        }
        check_all(&padded, seed);
    }
}
END_TEST

/* Windows of 3 x 3 over images that are large enough for Winograd's products. */
START_TEST(images_match_their_definition)
{
    for (uint32_t seed = 0; seed < 8; seed++) {
        window_begin(seed);
        const window w = {
            .spatial = 2,
            .batch = window_pick(1, 2),
            .channels = window_pick(16, 40),
            .filters = window_pick(32, 50),
            .groups = 1,
            .in = {window_pick(12, 15), window_pick(12, 20)},
            .kernel = {3, 3},
            .stride = {1, 1},
            .dilation = {1, 1},
            .pads = {window_pick(0, 2), window_pick(0, 2), window_pick(0, 2), window_pick(0, 2)}};
        check_all(&w, seed);
    }
}
END_TEST

/* Volumes whose windows look along some dims only, in every order, with channels enough for products. */
START_TEST(flat_windows_match_their_definition)
{
    for (uint32_t seed = 0; seed < 24; seed++) {
        window_begin(seed);
        window w = {.spatial = 3,
                    .batch = window_pick(1, 2),
                    .channels = window_pick(14, 20),
                    .filters = window_pick(28, 40),
                    .groups = 1};
        for (int32_t i = 0; i < w.spatial; i++) {
            const bool seen = (seed + 1) >> i & 1;
            w.kernel[i] = seen ? window_pick(2, 3) : 1;
            w.stride[i] = seen && !window_pick(0, 3) ? 2 : 1;
            w.dilation[i] = window_pick(1, 2);
            w.pads[i] = seen ? window_pick(0, 2) : 0;
            w.pads[w.spatial + i] = seen ? window_pick(0, 2) : !window_pick(0, 5);
            w.in[i] = window_pick(5, 9);
        }
        check_one_channels_last(&w, seed);
    }
}
END_TEST

START_TEST(convolutions_match_their_definition)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        const window w = window_random(seed);
        check_variants(&w, seed, 0, 1);
    }
}
END_TEST

/* A transposed convolution: the adjoint of the convolution by `window`, from its results, `out`, to its
 * inputs, `in`. Without a rest at the end of its lines. */
static sample sample_of_transpose(const window *w, uint32_t seed)
{
    const int32_t n = w->spatial;
    const int64_t taps = grt_dims_product(w->kernel, 0, n), per = w->channels / w->groups,
                  filters = w->filters / w->groups;
    sample s = {.w = *w, .out_pixels = 1};
    for (int32_t i = 0; i < n; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        s.out[i] = (w->in[i] + w->pads[i] + w->pads[n + i] - reach) / w->stride[i] + 1;
        s.w.in[i] = (s.out[i] - 1) * w->stride[i] + reach - w->pads[i] - w->pads[n + i];
        s.out_pixels *= s.out[i];
        if (s.w.in[i] < 1)
            return s;
    }
    const int64_t in_pixels = grt_dims_product(s.w.in, 0, n);
    s.x = window_floats(w->batch * w->filters * s.out_pixels, seed);
    s.x_last = window_channels_last(s.x, w->batch, w->filters, s.out_pixels);
    s.bias = window_floats(w->channels, seed + 1);
    s.weights = window_floats(w->filters * per * taps, seed + 2);
    s.sums = calloc((size_t)(w->batch * w->channels * in_pixels), sizeof *s.sums);
    ck_assert_ptr_nonnull(s.sums);
    for (int64_t i = 0; i < s.out_pixels * taps; i++) {
        const int64_t p = i / taps, t = i % taps;
        int64_t o[WINDOW_MOST], k[WINDOW_MOST], at;
        window_unflatten(p, s.out, n, o);
        window_unflatten(t, w->kernel, n, k);
        if (!window_position(&s.w, o, k, &at))
            continue;
        for (int64_t b = 0; b < w->batch; b++)
            for (int64_t m = 0; m < w->filters; m++) {
                const double x = (double)s.x[(b * w->filters + m) * s.out_pixels + p];
                double *to = s.sums + (b * w->channels + m / filters * per) * in_pixels + at;
                for (int64_t c = 0; c < per; c++)
                    to[c * in_pixels] += x * (double)s.weights[(m * per + c) * taps + t];
            }
    }
    return s;
}

/* <conv(x), y> = <x, transpose(y)>, tested on every unit vector of y's definition. */
static void check_transpose(const sample *s, uint32_t seed, bool constant, bool last)
{
    const window *w = &s->w;
    const int32_t n = w->spatial;
    const int64_t in_pixels = grt_dims_product(w->in, 0, n);
    int64_t dims[WINDOW_MOST + 2], w_dims[WINDOW_MOST + 2] = {w->filters, w->channels / w->groups};
    memcpy(w_dims + 2, w->kernel, (size_t)n * sizeof *w_dims);
    op_runner r;
    op_begin(&r, last ? "graphrt" : "", "ConvTranspose");
    if (last)
        op_string(&r, "layout", "NHWC");
    r.constants = constant ? 2 : 0;
    r.pack = seed % 4 < 2;
    r.known = seed % 5;
    window_attributes(&r, w);
    op_int(&r, "group", w->groups);
    window_dims(dims, w, w->filters, s->out, last);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, dims, last ? s->x_last : s->x);
    op_add(&r, GRT_DTYPE_FLOAT, n + 2, w_dims, s->weights);
    op_add(&r, GRT_DTYPE_FLOAT, 1, &w->channels, s->bias);
    op_run_ok(&r, 1);
    ck_assert_int_eq(grt_tensor_elements(&r.out[0].t), w->batch * w->channels * in_pixels);
    for (int64_t i = 0; i < w->batch * w->channels * in_pixels; i++) {
        const int64_t c = i / in_pixels % w->channels, b = i / (in_pixels * w->channels);
        const double value = s->sums[i] + (double)s->bias[c];
        const double found =
            (double)((float *)r.out[0].t.data)[last ? (b * in_pixels + i % in_pixels) * w->channels + c : i];
        ck_assert_msg(fabs(found - value) < 2e-5, "seed %u element %lld: %g, expected %g", seed, (long long)i,
                      found, value);
    }
    op_end(&r);
}

/* Of variants 0 to 3: bit 0 constant weights, 1 channels last. */
static void check_transposes(const window *w, uint32_t seed, int first)
{
    sample s = sample_of_transpose(w, seed);
    for (int variant = first; s.sums && variant < 4; variant++)
        check_transpose(&s, seed, variant & 1, variant & 2);
    sample_release(&s);
}

START_TEST(transposed_convolutions_are_adjoint)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        const window w = window_random(seed);
        check_transposes(&w, seed, 0);
    }
}
END_TEST

/* One dim, channels enough for products, more and less padding than the kernel has, every rest of a stride.
 */
START_TEST(transposed_lines_are_adjoint)
{
    for (uint32_t seed = 0; seed < 24; seed++) {
        window_begin(seed);
        const int64_t stride = window_pick(2, 5), taps = stride + window_pick(0, 9);
        const window w = {.spatial = 1,
                          .batch = window_pick(1, 2),
                          .channels = window_pick(8, 40),
                          .filters = window_pick(16, 24),
                          .groups = 1,
                          .in = {window_pick(taps, seed % 4 ? 60 : 900)},
                          .kernel = {taps},
                          .stride = {stride},
                          .dilation = {1},
                          .pads = {window_pick(0, taps - 1), window_pick(0, taps - 1)}};
        check_transposes(&w, seed, 3);
    }
}
END_TEST

/* Outputs so wide that they are computed in blocks of columns: padding at both ends, strides that leave a
 * rest, dilation, a window that is longer than the usual block, several lines, and lines that stand upright.
 */
static const window wide_windows[] = {
    {1, 2, 2, 3, 1, {9000}, {3}, {1}, {1}, {1, 1}},
    {1, 1, 3, 2, 1, {30011}, {5}, {3}, {1}, {2, 0}},
    {1, 2, 1, 8, 1, {9001}, {2}, {1}, {7}, {6, 5}},
    {1, 1, 1, 2, 1, {20000}, {101}, {1}, {30}, {1500, 2999}},
    {1, 1, 18, 18, 2, {9100}, {2}, {1}, {1}, {0, 1}},
    {2, 1, 1, 2, 1, {9000, 1}, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}},
    {2, 2, 1, 2, 1, {2, 17000}, {2, 3}, {1, 1}, {1, 2}, {1, 1, 0, 1}},
    {2, 1, 2, 1, 1, {1, 20000}, {1, 3}, {1, 2}, {1, 1}, {0, 1, 0, 0}},
};
enum { N_WIDE = sizeof wide_windows / sizeof *wide_windows };

START_TEST(wide_convolutions_match_their_definition)
{
    check_variants(&wide_windows[_i], (uint32_t)_i, 1, 2); /* constant weights: oneDNN's */
}
END_TEST

START_TEST(wide_transposed_convolutions_are_adjoint)
{
    check_transposes(&wide_windows[_i], (uint32_t)_i, 3);
}
END_TEST

/* What a convolution takes beside its tensors does not grow with its width. 600,000 columns, 12 MB of
 * tensors; oneDNN alone would take 700 MB for one operation of this width. */
START_TEST(memory_is_bounded_for_wide_convolutions)
{
    enum { WIDTH = 600000, FILTERS = 4, MOST_KILOBYTES = 128 << 10 };
    static float x[WIDTH], weights[FILTERS * 3];
    const int64_t dims[] = {1, WIDTH, 1}, w_dims[] = {FILTERS, 1, 3};
    struct rusage before, after;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    op_runner r;
    op_begin(&r, "graphrt", "Conv");
    op_string(&r, "layout", "NHWC");
    r.threads = 1;
    r.constants = 2;
    op_add(&r, GRT_DTYPE_FLOAT, 3, dims, x);
    op_add(&r, GRT_DTYPE_FLOAT, 3, w_dims, weights);
    op_run_ok(&r, 1);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, MOST_KILOBYTES);
    op_end(&r);
}
END_TEST

START_TEST(wrong_shapes_are_named)
{
    const float data[64] = {0};
    const int64_t x[] = {1, 3, 4, 4}, w[] = {2, 2, 3, 3}, wide[] = {2, 3, 5, 5};
    op_runner r;
    op_begin(&r, "", "Conv");
    op_add(&r, GRT_DTYPE_FLOAT, 4, x, data);
    op_add(&r, GRT_DTYPE_FLOAT, 4, w, data);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "group"));
    op_end(&r);
    op_begin(&r, "", "Conv");
    op_add(&r, GRT_DTYPE_FLOAT, 4, x, data);
    op_add(&r, GRT_DTYPE_FLOAT, 4, wide, data);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "window"));
    op_end(&r);
}
END_TEST

/* Images that are lines, along either dim: one group, groups and depthwise, taps on both sides of where
 * kernels change, and few results. */
static window image_line(uint32_t seed, int at, int64_t taps)
{
    window_begin(seed);
    const int64_t per[] = {1, 4, 16, 24}, n = per[window_pick(0, 3)],
                  groups = seed % 3 ? window_pick(2, 5) : 1, stride = window_pick(1, 3),
                  dilation = seed % 4 ? 1 : window_pick(2, 4), reach = (taps - 1) * dilation + 1;
    window w = {.spatial = 2,
                .batch = window_pick(1, 2),
                .channels = groups * n,
                .filters = groups * (n == 1         ? 1
                                     : seed / 2 % 2 ? window_pick(1, 4)
                                                    : window_pick(16, 20)),
                .groups = groups,
                .in = {1, 1},
                .kernel = {1, 1},
                .stride = {1, 1},
                .dilation = {1, 1}};
    w.in[at] = reach + (window_pick(0, 6) * taps + window_pick(0, 9)) * stride;
    w.kernel[at] = taps;
    w.stride[at] = stride;
    w.dilation[at] = dilation;
    w.pads[at] = window_pick(0, taps);
    w.pads[2 + at] = window_pick(0, taps);
    return w;
}

START_TEST(image_lines_match_their_definition)
{
    static const int64_t taps[] = {2, 3, 7, 15, 16, 21, 57};
    for (uint32_t seed = 0; seed < 84; seed++) {
        const window w = image_line(seed, (int)(seed % 2), taps[seed / 2 % 7]);
        check_one_channels_last(&w, seed);
    }
}
END_TEST

START_TEST(long_depthwise_image_lines_match_their_definition)
{
    for (int at = 0; at < 2; at++)
        for (int64_t taps = 20; taps <= 60; taps += 40) {
            window w = {2, 1, 20, 20, 20, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}};
            w.in[at] = 17 * taps;
            w.kernel[at] = taps;
            w.pads[at] = w.pads[2 + at] = taps / 2;
            check_one_channels_last(&w, (uint32_t)taps);
        }
}
END_TEST

/* Depthwise windows of images: lines of one output to several registers full, taps of less than a register
 * full to several, channels that are whole vectors, ragged, or fewer than one, padding wider than the window.
 */
START_TEST(depthwise_images_match_their_definition)
{
    for (uint32_t seed = 0; seed < 48; seed++) {
        window_begin(seed);
        const int64_t channels = seed % 4 ? window_pick(16, 70) : 16 * window_pick(1, 3),
                      taps = window_pick(2, 16), side = window_pick(5, 8);
        const window w = {.spatial = 2,
                          .batch = window_pick(1, 2),
                          .channels = channels,
                          .filters = channels,
                          .groups = channels,
                          .in = {window_pick(3, 9), window_pick(1, 45)},
                          .kernel = {side, taps},
                          .stride = {window_pick(1, 2), 1},
                          .dilation = {1, 1},
                          .pads = {side, taps + window_pick(-2, 3), side, taps / 2}};
        check_variants(&w, seed, 3, 4);
        check_one_channels_last(&w, seed);
    }
}
END_TEST

/* The lines that a window sees of all channels are more than a cache has: parts of the channels in turn. */
START_TEST(wide_depthwise_images_match_their_definition)
{
    for (int64_t channels = 1296; channels <= 1300; channels += 4) {
        const window w = {2, 1, channels, channels, channels, {4, 30}, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}};
        check_variants(&w, (uint32_t)channels, 3, 4);
        check_one_channels_last(&w, (uint32_t)channels + 1);
    }
}
END_TEST

START_TEST(transposed_image_lines_are_adjoint)
{
    for (uint32_t seed = 0; seed < 24; seed++) {
        window w = image_line(seed, (int)(seed % 2), 2 + seed % 9);
        w.dilation[seed % 2] = 1;
        w.pads[seed % 2] = w.pads[2 + seed % 2] = 1;
        check_transposes(&w, seed, 3);
    }
}
END_TEST

Suite *suite_test_conv(void)
{
    Suite *suite = suite_create("conv");
    TCase *tc = tcase_create("conv");
    tcase_add_test(tc, convolutions_match_their_definition);
    tcase_add_test(tc, long_windows_match_their_definition);
    tcase_add_test(tc, lines_match_their_definition);
    tcase_add_loop_test(tc, wide_convolutions_match_their_definition, 0, N_WIDE);
    tcase_add_loop_test(tc, wide_transposed_convolutions_are_adjoint, 0, N_WIDE);
    tcase_add_test(tc, memory_is_bounded_for_wide_convolutions);
    tcase_add_test(tc, few_filters_match_their_definition);
    tcase_add_test(tc, images_match_their_definition);
    tcase_add_test(tc, flat_windows_match_their_definition);
    tcase_add_test(tc, groups_match_their_definition);
    tcase_add_test(tc, groups_of_many_channels_take_bias_and_gelu);
    tcase_add_test(tc, transposed_convolutions_are_adjoint);
    tcase_add_test(tc, transposed_lines_are_adjoint);
    tcase_add_test(tc, image_lines_match_their_definition);
    tcase_add_test(tc, long_depthwise_image_lines_match_their_definition);
    tcase_add_test(tc, depthwise_images_match_their_definition);
    tcase_add_test(tc, wide_depthwise_images_match_their_definition);
    tcase_add_test(tc, transposed_image_lines_are_adjoint);
    tcase_add_test(tc, wrong_shapes_are_named);
    suite_add_tcase(suite, tc);
    return suite;
}
