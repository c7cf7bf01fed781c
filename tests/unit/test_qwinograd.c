/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolutions of bytes on each instruction set of this machine, against sums in 64 bits. */
#include "backends/cpu/qgemm_kernel.h"
#include "backends/cpu/qwinograd.h"
#include "src/base/int64.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

enum { TAPS = 3, EXTREMES = 4 };

typedef struct problem {
    cpu_window w;
    int64_t images, channels, filters;
    bool x_signed, w_signed;
    uint8_t x_zero; /* x's byte */
    uint8_t *x, *weights, *zeros, *residual;
    cpu_qwinograd_weights of;
    grt_qgemm_finish finish;
} problem;

static uint32_t state;

static int64_t pick(int64_t n)
{
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 8) % n;
}

static void *aligned(int64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* Memory of exactly that size, so that tools see what is read beside it. extreme: of EXTREMES, or all. */
static uint8_t *bytes_of(int64_t n, int64_t extreme)
{
    static const uint8_t ends[EXTREMES] = {0, 0xff, 0x80, 0x7f};
    uint8_t *data = malloc((size_t)n);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n; i++)
        data[i] = extreme < EXTREMES ? ends[extreme] : (uint8_t)pick(256);
    return data;
}

static problem draw(uint32_t seed)
{
    state = seed * 2654435761u;
    problem p = {.w = {.spatial = 2, .in_pixels = 1, .out_pixels = 1, .taps = TAPS * TAPS},
                 .images = 1 + pick(3),
                 .channels = 1 + pick(seed % 4 ? 20 : 70),
                 .filters = 1 + pick(seed % 4 ? 20 : 100),
                 .x_signed = pick(2) != 0,
                 .w_signed = pick(2) != 0,
                 .x_zero = (uint8_t)pick(256)};
    for (int i = 0; i < 2; i++) {
        p.w.kernel[i] = TAPS;
        p.w.stride[i] = p.w.dilation[i] = 1;
        p.w.in[i] = 1 + pick(seed % 3 ? 6 : 40);
        p.w.begin[i] = pick(4) - (p.w.in[i] > TAPS ? 1 : 0);
        p.w.end[i] = grt_max64(pick(4) - 1, TAPS - p.w.in[i] - p.w.begin[i]);
        p.w.out[i] = p.w.in[i] + p.w.begin[i] + p.w.end[i] - TAPS + 1;
        p.w.in_pixels *= p.w.in[i];
        p.w.out_pixels *= p.w.out[i];
    }
    const int64_t ends = seed % 5 ? EXTREMES : pick(EXTREMES);
    p.x = bytes_of(p.images * p.w.in_pixels * p.channels, ends);
    p.weights = bytes_of(p.channels * p.filters * TAPS * TAPS, seed % 5 ? EXTREMES : pick(EXTREMES));
    p.zeros = bytes_of(p.filters, EXTREMES);
    p.residual = bytes_of(p.images * p.w.out_pixels * p.filters, EXTREMES);
    p.of = (cpu_qwinograd_weights){p.weights, p.w_signed, pick(3) ? p.zeros : NULL, pick(2) != 0};
    return p;
}

static void release(problem *p)
{
    free(p->x);
    free(p->weights);
    free(p->zeros);
    free(p->residual);
}

static int32_t number(const uint8_t *data, bool is_signed, int64_t i)
{
    return is_signed ? (int8_t)data[i] : data[i];
}

/* The sum at position `at` of y. */
static int64_t sum_at(const problem *p, int64_t at)
{
    const int64_t f = at % p->filters, pixel = at / p->filters, col = pixel % p->w.out[1],
                  row = pixel / p->w.out[1] % p->w.out[0], image = pixel / p->w.out_pixels;
    const int32_t x_zero = number(&p->x_zero, p->x_signed, 0),
                  zero = p->of.zero ? number(p->of.zero, p->w_signed, p->of.zero_each ? f : 0) : 0;
    int64_t sum = 0;
    for (int64_t t = 0; t < TAPS * TAPS; t++) {
        const int64_t i = row + t / TAPS - p->w.begin[0], j = col + t % TAPS - p->w.begin[1];
        const bool inside = i >= 0 && i < p->w.in[0] && j >= 0 && j < p->w.in[1];
        const int64_t from = ((image * p->w.in[0] + i) * p->w.in[1] + j) * p->channels;
        for (int64_t c = 0; inside && c < p->channels; c++)
            sum += (number(p->x, p->x_signed, from + c) - x_zero) *
                   (number(p->weights, p->w_signed, (f * p->channels + c) * TAPS * TAPS + t) - zero);
    }
    return sum;
}

/* Columns of a result in float32, one residual for all. */
static void set_columns(const problem *p, const int32_t *sums, int32_t *offset, float *scale, float *bias,
                        grt_qgemm_finish *out)
{
    const int32_t x_zero = number(&p->x_zero, p->x_signed, 0) + (p->x_signed ? 128 : 0);
    for (int64_t j = 0; j < grt_qgemm_padded(p->filters); j++) {
        offset[j] = j < p->filters ? x_zero * sums[j] : 0;
        scale[j] = 0.25f;
        bias[j] = (float)(j % 7);
    }
    *out = (grt_qgemm_finish){.offset = offset,
                              .scale = scale,
                              .bias = bias,
                              .y_dtype = GRT_DTYPE_FLOAT,
                              .residual = p->residual,
                              .ldr = p->filters,
                              .r_dtype = GRT_DTYPE_UINT8,
                              .r_zero = 3,
                              .r_scale = 2.0f};
}

static void run_problem(const problem *p, const grt_qgemm_kernel *kernel, int threads, uint32_t seed)
{
    const cpu_qwinograd c = {kernel, p->channels, p->filters};
    const cpu_qwindow window = {.w = &p->w,
                                .x = p->x,
                                .images = p->images,
                                .channels = p->channels,
                                .used = p->channels,
                                .flip = p->x_signed ? 0x80 : 0,
                                .zero = p->x_zero ^ (p->x_signed ? 0x80 : 0)};
    const int64_t n = p->images * p->w.out_pixels * p->filters, padded = grt_qgemm_padded(p->filters) * 4;
    size_t packed_bytes, bytes;
    ck_assert(cpu_qwinograd_packed_bytes(&c, &packed_bytes));
    ck_assert(cpu_qwinograd_scratch_bytes(&c, &p->w, p->images, threads, &bytes));
    char *packed = aligned((int64_t)packed_bytes), *scratch = aligned((int64_t)bytes + 64);
    int32_t *sums = aligned(padded), *offset = aligned(padded);
    float *scale = aligned(padded), *bias = aligned(padded), *y = malloc((size_t)n * sizeof *y + 1);
    grt_qgemm_finish finish;
    memset(scratch, 0xa5, bytes + 64);
    ck_assert(cpu_qwinograd_pack(&c, &p->of, packed, sums));
    set_columns(p, sums, offset, scale, bias, &finish);
    cpu_qwinograd_run(&c, &window, packed, &finish, y, scratch, threads);
    for (int64_t i = 0; i < n; i++) {
        const float wanted =
            (float)sum_at(p, i) * 0.25f + (float)(i % p->filters % 7) + (float)(p->residual[i] - 3) * 2.0f;
        ck_assert_msg(y[i] == wanted, "problem %u, %s: element %lld is %g, expected %g", seed, kernel->name,
                      (long long)i, (double)y[i], (double)wanted);
    }
    for (size_t i = bytes; i < bytes + 64; i++)
        ck_assert_int_eq((uint8_t)scratch[i], 0xa5);
    void *const all[] = {packed, scratch, sums, offset, scale, bias, y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

START_TEST(every_level_gives_the_defined_sums)
{
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    int ran = 0;
    for (uint32_t seed = 0; seed < 90; seed++) {
        problem p = draw(seed);
        for (int i = 0; kernels[i]; i++)
            if (kernels[i]->pairs) {
                run_problem(&p, kernels[i], 1 + (int)(seed % 3), seed);
                ran++;
            }
        release(&p);
    }
    ck_assert_int_ge(ran, 90); /* the portable one at least */
}
END_TEST

/* The largest sums that packing takes, with either sign. */
START_TEST(sums_of_the_largest_weights_are_exact_or_refused)
{
    enum { CHANNELS = 917, TOO_MANY = 918 }; /* of weights of 255 and inputs of 255: 2^29 */
    for (int i = 0; i < 2; i++) {
        problem p = {.w = {.spatial = 2, .in_pixels = 25, .out_pixels = 9, .taps = TAPS * TAPS},
                     .images = 1,
                     .channels = TOO_MANY,
                     .filters = 3};
        for (int d = 0; d < 2; d++) {
            p.w.kernel[d] = p.w.out[d] = TAPS;
            p.w.stride[d] = p.w.dilation[d] = 1;
            p.w.in[d] = 5;
        }
        p.x = bytes_of(p.w.in_pixels * TOO_MANY, 1);
        p.weights = bytes_of((int64_t)TAPS * TAPS * TOO_MANY * p.filters, i);
        p.zeros = bytes_of(p.filters, 1 - i);
        p.residual = bytes_of(p.w.out_pixels * p.filters, EXTREMES);
        p.of = (cpu_qwinograd_weights){.data = p.weights, .zero = p.zeros};
        const cpu_qwinograd c = {&grt_qgemm_kernel_c, TOO_MANY, p.filters};
        size_t bytes;
        ck_assert(cpu_qwinograd_packed_bytes(&c, &bytes));
        char *packed = aligned((int64_t)bytes);
        int32_t sums[GRT_QGEMM_WIDTH];
        ck_assert(!cpu_qwinograd_pack(&c, &p.of, packed, sums));
        free(packed);
        p.channels = CHANNELS;
        const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
        for (int k = 0; kernels[k]; k++)
            if (kernels[k]->pairs)
                run_problem(&p, kernels[k], 1, (uint32_t)i);
        release(&p);
    }
}
END_TEST

START_TEST(convolutions_that_do_not_gain_are_refused)
{
    cpu_window usual = {.spatial = 2};
    for (int d = 0; d < 2; d++) {
        usual.kernel[d] = TAPS;
        usual.stride[d] = usual.dilation[d] = 1;
        usual.out[d] = 14;
    }
    cpu_qwinograd c;
    const grt_qgemm_kernel *kernel = &grt_qgemm_kernel_c;
    ck_assert(cpu_qwinograd_fits(kernel, &usual, 32, 32, &c));
    ck_assert(!cpu_qwinograd_fits(kernel, &usual, 3, 32, &c));
    ck_assert(!cpu_qwinograd_fits(kernel, &usual, 32, 1, &c));
    cpu_window w = usual;
    w.out[0] = 0; /* not known */
    ck_assert(cpu_qwinograd_fits(kernel, &w, 32, 32, &c));
    w.out[0] = 1;
    ck_assert(!cpu_qwinograd_fits(kernel, &w, 32, 32, &c));
    w = usual;
    w.stride[1] = 2;
    ck_assert(!cpu_qwinograd_fits(kernel, &w, 32, 32, &c));
    w = usual;
    w.dilation[0] = 2;
    ck_assert(!cpu_qwinograd_fits(kernel, &w, 32, 32, &c));
    w = usual;
    w.kernel[1] = 1;
    ck_assert(!cpu_qwinograd_fits(kernel, &w, 32, 32, &c));
    const grt_qgemm_kernel without = {.name = "without pairs"};
    ck_assert(!cpu_qwinograd_fits(&without, &usual, 32, 32, &c));
}
END_TEST

UNIT_SUITE(test_qwinograd, NULL, NULL, every_level_gives_the_defined_sums,
           sums_of_the_largest_weights_are_exact_or_refused, convolutions_that_do_not_gain_are_refused)
