/* SPDX-License-Identifier: Apache-2.0 */
/* The product of 8-bit matrices on each instruction set of this machine, against sums in 64 bits. */
#include "backends/cpu/amx.h"
#include "backends/cpu/qgemm.h"
#include "backends/cpu/qgemm_kernel.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    int64_t m, n, k, lda, ldy;
    bool a_signed, b_signed, trans_b;
    uint8_t *a, *b, *b_zero, *residual;
    float *b_scale, *bias, *wanted; /* wanted: [m][n], see define */
    grt_qgemm_params params;
    grt_qgemm_finish finish;
} problem;

static uint32_t state;

static int64_t pick(int64_t n)
{
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 8) % n;
}

static uint8_t *random_bytes(int64_t n, bool extreme)
{
    uint8_t *data = malloc((size_t)n + 1);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (uint8_t)(extreme ? (pick(2) ? 0xff : 0x80) : pick(256));
    return data;
}

/* The least byte of a type has no opposite: kernels take matrices without it another way. */
static void leave_out_least(uint8_t *data, int64_t n, bool is_signed)
{
    const uint8_t least = is_signed ? 0x80 : 0;
    for (int64_t i = 0; i < n; i++)
        data[i] = data[i] == least ? least + 1 : data[i];
}

static int32_t byte_at(const uint8_t *data, bool is_signed, int64_t i)
{
    return is_signed ? ((const int8_t *)data)[i] : data[i];
}

static void choose_finish(problem *p)
{
    grt_qgemm_finish *f = &p->finish;
    const grt_dtype types[] = {GRT_DTYPE_UINT8, GRT_DTYPE_INT8, GRT_DTYPE_FLOAT};
    f->y_dtype = types[pick(3)];
    const bool is_signed = f->y_dtype == GRT_DTYPE_INT8;
    if (f->y_dtype != GRT_DTYPE_FLOAT) {
        f->y_zero = (int32_t)pick(256) - (is_signed ? 128 : 0);
        f->low = (float)((is_signed ? -128 : 0) - f->y_zero);
        f->high = (float)((is_signed ? 127 : 255) - f->y_zero);
        p->params.y_scale = 37.5f;
        if (pick(2)) { /* limits of an activation */
            f->low += 0.25f * (float)pick(80);
            f->high -= 0.25f * (float)pick(80);
        }
    } else {
        p->params.y_scale = 1.0f;
        f->act.kind = pick(2) ? GRT_ACT_RELU : GRT_ACT_NONE;
    }
    if (pick(2)) {
        f->residual = p->residual;
        f->ldr = p->n;
        f->r_dtype = pick(2) ? GRT_DTYPE_INT8 : GRT_DTYPE_UINT8;
        f->r_zero = (int32_t)pick(100);
        f->r_scale = 0.03f;
    }
}

/* Bytes of sums alone, which kernels may keep in registers. */
static void choose_plain(problem *p)
{
    while (p->finish.y_dtype == GRT_DTYPE_FLOAT) {
        memset(&p->finish, 0, sizeof p->finish);
        choose_finish(p);
    }
    p->finish.residual = NULL;
    p->b_signed = true;
    p->params.b_zero = NULL;
    p->params.b_zero_each = false;
}

static void choose(problem *p, uint32_t seed)
{
    state = seed * 2654435761u;
    const bool big = seed % 17 == 0, broad = seed % 34 == 0, extreme = seed % 5 == 0;
    memset(p, 0, sizeof *p);
    p->m = 1 + pick(big ? 300 : 40);
    p->n = 1 + pick(broad ? 1500 : big ? 200 : 80);
    p->k = 1 + pick(broad ? 90 : big ? 1500 : 70);
    p->lda = p->k + pick(3);
    p->ldy = p->n + pick(3);
    p->a_signed = pick(2) != 0;
    p->b_signed = pick(2) != 0;
    p->trans_b = pick(2) != 0;
    p->a = random_bytes(p->m * p->lda, extreme);
    p->b = random_bytes(p->k * p->n, extreme);
    if (pick(2))
        leave_out_least(p->b, p->k * p->n, p->b_signed);
    p->b_zero = random_bytes(p->n, false);
    p->residual = random_bytes(p->m * p->n, false);
    p->b_scale = malloc((size_t)p->n * sizeof(float));
    p->bias = malloc((size_t)p->n * sizeof(float));
    for (int64_t j = 0; j < p->n; j++) {
        p->b_scale[j] = 0.001f * (float)(1 + pick(50));
        p->bias[j] = (float)pick(1000) - 500.0f;
    }
    p->params = (grt_qgemm_params){.a_zero = (int32_t)pick(256) - (p->a_signed ? 128 : 0),
                                   .a_signed = p->a_signed,
                                   .a_scale = 0.75f,
                                   .b_scale = p->b_scale,
                                   .b_scale_each = pick(2) != 0,
                                   .bias = pick(2) ? p->bias : NULL};
    p->params.b_zero = pick(3) ? p->b_zero : NULL;
    p->params.b_zero_each = p->params.b_zero && pick(2);
    choose_finish(p);
    if (seed % 3 == 0)
        choose_plain(p);
}

static void release(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->b_zero);
    free(p->residual);
    free(p->b_scale);
    free(p->bias);
    free(p->wanted);
}

static int64_t sum_at(const problem *p, int64_t i, int64_t j)
{
    const int32_t b_zero =
        p->params.b_zero ? byte_at(p->b_zero, p->b_signed, p->params.b_zero_each ? j : 0) : 0;
    const uint8_t *a = p->a + i * p->lda, *b = p->b + (p->trans_b ? j * p->k : j);
    const int64_t step = p->trans_b ? 1 : p->n;
    int64_t sum = 0;
    for (int64_t x = 0; x < p->k; x++, b += step)
        sum +=
            (int64_t)(byte_at(a, p->a_signed, x) - p->params.a_zero) * (byte_at(b, p->b_signed, 0) - b_zero);
    return sum;
}

/* The definition, in the order of operations that makes every level's bits the same. */
static float value_at(const problem *p, int64_t i, int64_t j)
{
    const grt_qgemm_finish *f = &p->finish;
    const volatile float scale = p->params.a_scale * p->b_scale[p->params.b_scale_each ? j : 0],
                         unit = scale / p->params.y_scale;
    const volatile float scaled = (float)sum_at(p, i, j) * unit;
    volatile float v = scaled + (p->params.bias ? p->bias[j] / p->params.y_scale : 0.0f);
    if (f->residual) {
        const int32_t r = byte_at(p->residual, f->r_dtype == GRT_DTYPE_INT8, i * p->n + j) - f->r_zero;
        const volatile float of_r = (float)r * f->r_scale;
        v = v + of_r;
    }
    if (f->y_dtype == GRT_DTYPE_FLOAT)
        return f->act.kind == GRT_ACT_RELU && v < 0 ? 0.0f : v;
    return (float)nearbyint((double)fminf(fmaxf(v, f->low), f->high)) + (float)f->y_zero;
}

/* Once for all kernels, when everything has been chosen. */
static void define(problem *p)
{
    p->wanted = malloc((size_t)(p->m * p->n) * sizeof *p->wanted);
    ck_assert_ptr_nonnull(p->wanted);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            p->wanted[i * p->n + j] = value_at(p, i, j);
}

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static float stored(const problem *p, const void *y, int64_t i)
{
    if (p->finish.y_dtype == GRT_DTYPE_FLOAT)
        return ((const float *)y)[i];
    return (float)byte_at(y, p->finish.y_dtype == GRT_DTYPE_INT8, i);
}

/* Bytes between rows must stay as they were. */
static void check_result(const problem *p, const grt_qgemm_kernel *kernel, const void *y, const void *before,
                         uint32_t seed)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->ldy; j++) {
            const float found = stored(p, y, i * p->ldy + j),
                        wanted = j < p->n ? p->wanted[i * p->n + j] : stored(p, before, i * p->ldy + j);
            ck_assert_msg(memcmp(&found, &wanted, sizeof found) == 0 || found == wanted,
                          "problem %u, %s: y[%lld][%lld] is %g, expected %g", seed, kernel->name,
                          (long long)i, (long long)j, (double)found, (double)wanted);
        }
}

static void run_form(problem *p, const grt_qgemm_kernel *kernel, int threads, bool halves, uint32_t seed)
{
    grt_qgemm_b b;
    size_t bytes, y_bytes = (size_t)(p->m * p->ldy) * sizeof(float);
    ck_assert(grt_qgemm_b_init(kernel, p->k, p->n, p->b_signed, &b));
    ck_assert(!halves || grt_qgemm_b_halve(&b));
    void *packed = aligned((size_t)b.bytes), *y = aligned(y_bytes), *before = aligned(y_bytes);
    grt_qgemm_pack(&b, p->b, p->trans_b ? 1 : p->n, p->trans_b ? p->k : 1, packed);
    const size_t padded = (size_t)grt_qgemm_padded(p->n) * sizeof(float);
    const grt_qgemm_columns columns = {aligned(padded), aligned(padded), aligned(padded), aligned(padded)};
    grt_qgemm_set_columns(&b, packed, &p->params, &columns);
    grt_qgemm_use_columns(&b, &p->params, &columns, &p->finish);
    const grt_qgemm g = {.m = p->m,
                         .a = p->a,
                         .lda = p->lda,
                         .a_signed = p->a_signed,
                         .b = &b,
                         .packed = packed,
                         .finish = p->finish,
                         .y = y,
                         .ldy = p->ldy};
    ck_assert(grt_qgemm_scratch_bytes(&g, threads, &bytes));
    char *scratch = aligned(bytes);
    memset(scratch + bytes, 7, 64);
    memset(y, 7, y_bytes);
    memset(before, 7, y_bytes);
    grt_qgemm_run(&g, scratch, threads);
    check_result(p, kernel, y, before, seed);
    for (int i = 0; i < 64; i++)
        ck_assert_msg(scratch[bytes + (size_t)i] == 7, "problem %u, %s: written behind the scratch", seed,
                      kernel->name);
    void *const all[] = {packed,       y,      before, columns.offset, columns.zero, columns.scale,
                         columns.bias, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run_problem(problem *p, const grt_qgemm_kernel *kernel, int threads, uint32_t seed)
{
    run_form(p, kernel, threads, false, seed);
}

START_TEST(every_level_gives_the_defined_bits)
{
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    for (uint32_t seed = 0; seed < 180; seed++) {
        problem p;
        choose(&p, seed);
        define(&p);
        for (int i = 0; kernels[i]; i++) {
            run_problem(&p, kernels[i], 1 + (int)(seed % 3), seed);
            if (kernels[i]->few)
                run_problem(&p, kernels[i]->few, 1 + (int)(seed % 3), seed);
            if (kernels[i]->pairs)
                run_problem(&p, kernels[i]->pairs, 1 + (int)(seed % 3), seed);
        }
        release(&p);
    }
}
END_TEST

/* Of any size, though few are faster for it. */
START_TEST(strassens_products_give_the_defined_bits)
{
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    for (uint32_t seed = 0; seed < 180; seed++) {
        problem p;
        choose(&p, seed);
        define(&p);
        for (int i = 0; kernels[i]; i++)
            if (kernels[i]->pairs) {
                run_form(&p, kernels[i], 1 + (int)(seed % 3), true, seed);
                run_form(&p, kernels[i]->pairs, 1 + (int)(seed % 3), true, seed);
            }
        release(&p);
    }
}
END_TEST

enum { WIDTH = GRT_QGEMM_WIDTH };
#include "tests/unit/tile_model.inc"

/* Blocks of few rows. */
static void multiply_block(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                           int64_t panel_stride, bool onto, int32_t *sums)
{
    (void)onto;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < panels * GRT_QGEMM_NR; j++) {
            const uint8_t *of_a = (const uint8_t *)a + i * lda;
            const int8_t *of_b = (const int8_t *)b + j / GRT_QGEMM_NR * panel_stride + j % GRT_QGEMM_NR * 4;
            int32_t sum = 0;
            for (int64_t x = 0; x < 4 * groups; x++)
                sum += of_a[x] * of_b[x / 4 * GRT_QGEMM_GROUP_BYTES + x % 4];
            sums[i * WIDTH + j] = sum;
        }
}
#include "backends/cpu/qgemm_tiles.inc"

START_TEST(tiles_give_the_defined_bits_on_a_model_of_amx)
{
    const grt_qgemm_kernel kernel = {.name = "model of amx",
                                     .mr = CPU_AMX_BLOCK_ROWS,
                                     .panels = 2,
                                     .step = TILE_ROWS,
                                     .block = multiply_tiles,
                                     .finish = grt_qgemm_kernel_c.finish,
                                     .leave = model_release,
                                     .row_sums = grt_qgemm_kernel_c.row_sums};
    for (uint32_t seed = 0; seed < 60; seed++) {
        problem p;
        choose(&p, seed);
        define(&p);
        run_problem(&p, &kernel, 1, seed);
        release(&p);
        ck_assert_int_eq(model.rows[0], 0); /* released */
    }
    ck_assert_int_gt(model.shaped, 0);
}
END_TEST

/* Two products of 255 and 127 do not fit 16 bits. */
START_TEST(pairs_of_products_do_not_saturate)
{
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    static const uint8_t of_b[] = {0x80, 0x81, 0x7f};
    for (int i = 0; kernels[i]; i++)
        for (int x = 0; x < 6; x++) {
            problem p;
            choose(&p, 1);
            p.a_signed = false;
            p.b_signed = true;
            memset(p.a, x % 2 ? 255 : 0, (size_t)(p.m * p.lda));
            memset(p.b, of_b[x / 2], (size_t)(p.k * p.n));
            p.params = (grt_qgemm_params){.a_scale = 1, .b_scale = p.b_scale, .y_scale = 1};
            p.b_scale[0] = 1;
            p.finish = (grt_qgemm_finish){.y_dtype = GRT_DTYPE_FLOAT};
            define(&p);
            run_problem(&p, kernels[i], 1, 1);
            if (kernels[i]->few)
                run_problem(&p, kernels[i]->few, 1, 1);
            if (kernels[i]->pairs)
                run_problem(&p, kernels[i]->pairs, 1, 1);
            release(&p);
        }
}
END_TEST

/* A strip of `count` pixels on random bytes, by a kernel and by the definition. */
static void check_strip(const grt_qgemm_kernel *kernel, const grt_qgemm_strip *strip)
{
    enum { CHANNELS = 64, MOST_TAPS = 400 };
    static uint8_t x[MOST_TAPS][CHANNELS];
    static char packed[MOST_TAPS * GRT_QGEMM_TAPS_BYTES];
    int16_t w[25][GRT_QGEMM_WIDTH];
    const uint8_t *at[MOST_TAPS];
    int32_t sums[GRT_QGEMM_PIXELS * GRT_QGEMM_WIDTH];
    const int64_t lines = strip->lines, taps = grt_qgemm_strip_columns(strip) * lines;
    const int64_t padded = grt_qgemm_line_groups(kernel, lines) * grt_qgemm_group(kernel);
    char *mixed = malloc((size_t)grt_qgemm_mixed_bytes(kernel, strip));
    ck_assert_int_le(taps, MOST_TAPS);
    memset(packed, 0, sizeof packed);
    for (int64_t t = 0; t < taps; t++) {
        at[t] = x[t];
        for (int c = 0; c < CHANNELS; c++)
            x[t][c] = (uint8_t)pick(256);
    }
    for (int64_t t = 0; t < strip->columns * lines; t++)
        for (int c = 0; c < GRT_QGEMM_WIDTH; c++) {
            w[t][c] = (int16_t)(pick(256) - 128);
            memcpy(packed + grt_qgemm_tap_at(kernel, t / lines * padded + t % lines, c), &w[t][c],
                   kernel->wide ? 2 : 1);
        }
    kernel->windows(strip, at, 32, packed, mixed, sums);
    for (int64_t i = 0; i < strip->count; i++)
        for (int c = 0; c < GRT_QGEMM_WIDTH; c++) {
            int32_t wanted = 0;
            for (int64_t t = 0; t < strip->columns * lines; t++)
                wanted += x[(i * strip->step + t / lines * strip->gap) * lines + t % lines][32 + c] * w[t][c];
            ck_assert_msg(sums[i * GRT_QGEMM_WIDTH + c] == wanted,
                          "%s, pixel %d, channel %d: %d, expected %d", kernel->name, (int)i, c,
                          sums[i * GRT_QGEMM_WIDTH + c], wanted);
        }
    free(mixed);
}

START_TEST(windows_are_summed_by_channel)
{
    static const grt_qgemm_strip strips[] = {{16, 3, 3, 1, 1}, {7, 3, 3, 2, 1}, {1, 5, 5, 1, 1},
                                             {9, 1, 4, 1, 3},  {3, 4, 2, 3, 2}, {14, 2, 1, 4, 1}};
    const grt_qgemm_kernel *const *kernels = grt_qgemm_kernels();
    state = 5;
    for (size_t k = 0; k < sizeof strips / sizeof *strips; k++)
        for (int i = 0; kernels[i]; i++)
            check_strip(kernels[i], &strips[k]);
}
END_TEST

UNIT_SUITE(test_qgemm, NULL, NULL, every_level_gives_the_defined_bits,
           strassens_products_give_the_defined_bits, pairs_of_products_do_not_saturate,
           tiles_give_the_defined_bits_on_a_model_of_amx, windows_are_summed_by_channel)
