/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QGlobalAveragePool and QSoftmax: means and Softmax of 8-bit tensors. Sums of means
 * are integers; Softmax looks its exponentials up. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/byte_rounding.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/pool.h"
#include "backends/shared/quantised.h"
#include "backends/shared/softmax.h"
#include "backends/shared/softmax_units.h"

#include "src/base/int64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inputs. */
enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO, SOFTMAX_Y_SCALE = 2, SOFTMAX_Y_ZERO };
/* Sums of so many bytes fit into 32 bits. */
enum { MOST_TERMS = 1 << 23, PART = 256 };

static float qpool_float_of(const grt_tensor *t)
{
    return *(const float *)t->data;
}

/* Bytes are made unsigned by `flip`, and so is the zero point. */
typedef struct average {
    cpu_byte_rounding y;
    uint8_t flip;
    int32_t zero;
    float scale; /* x's over y's */
} average;

static average read_average(const grt_run *r)
{
    const bool is_signed = r->in[X]->dtype == GRT_DTYPE_INT8;
    return (average){.y = cpu_byte_rounding_of(r->in[Y_ZERO]),
                     .flip = is_signed ? 0x80 : 0,
                     .zero = cpu_byte_of(r->in[X_ZERO]) + (is_signed ? 128 : 0),
                     .scale = qpool_float_of(r->in[X_SCALE]) / qpool_float_of(r->in[Y_SCALE])};
}

static grt_status qpool_reshape_global(grt_reshape *r)
{
    cpu_images *s = malloc(sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    *s = cpu_images_of(r->desc, r->in[X]);
    r->shape = s;
    return GRT_OK;
}

/* Adds rows of `n` bytes, `step` apart. */
CPU_BODY add_rows_body(const uint8_t *x, int64_t rows, int64_t step, uint8_t flip, int64_t n, int32_t *sums)
{
    for (int64_t k = 0; k < rows; k++)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) sums[i] += x[k * step + i] ^ flip;
}
CPU_DISPATCH(add_rows, (const uint8_t *x, int64_t rows, int64_t step, uint8_t flip, int64_t n, int32_t *sums),
             (x, rows, step, flip, n, sums))

/* Eight bytes at a time, in lanes of 16 bits. */
static inline __attribute__((always_inline)) int32_t qpool_sum_few(const uint8_t *x, int64_t n, uint8_t flip)
{
    const uint64_t lanes = 0x00FF00FF00FF00FFu, flips = 0x0101010101010101u * flip;
    uint64_t sums = 0, word;
    int32_t total = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, x + i, sizeof word);
        word ^= flips;
        sums += (word & lanes) + (word >> 8 & lanes);
    }
    for (; i < n; i++)
        total += x[i] ^ flip;
    return total + (int32_t)((sums & 0xFFFF) + (sums >> 16 & 0xFFFF) + (sums >> 32 & 0xFFFF) + (sums >> 48));
}

/* Sums of `n` planes of `size` bytes each. */
CPU_BODY add_planes_body(const uint8_t *x, int64_t n, int64_t step, int64_t size, uint8_t flip, int32_t *sums)
{
    enum { FEW = 512 }; /* 64 words: no lane overflows */
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *plane = x + i * step;
        int32_t sum = 0;
        if (size <= FEW)
            sum = qpool_sum_few(plane, size, flip);
        else
            _Pragma("omp simd reduction(+ : sum)") for (int64_t k = 0; k < size; k++) sum += plane[k] ^ flip;
        sums[i] += sum;
    }
}
CPU_DISPATCH(add_planes,
             (const uint8_t *x, int64_t n, int64_t step, int64_t size, uint8_t flip, int32_t *sums),
             (x, n, step, size, flip, sums))

/* Sums are of at most MOST_TERMS bytes: images of more are rare, and added up part by part. */
static uint8_t mean_of_many(const average *a, int64_t total, int64_t count)
{
    const double mean = (double)(total - count * a->zero) / (double)count;
    return cpu_round_to_byte(&a->y, (float)mean * a->scale);
}

static void average_channels(const cpu_images *s, const average *a, const uint8_t *image, int64_t c,
                             uint8_t *y)
{
    const int64_t n = grt_min64(PART, s->channels - c);
    int64_t totals[PART] = {0};
    for (int64_t from = 0; from < s->pixels; from += MOST_TERMS) {
        int32_t sums[PART] = {0};
        const int64_t pixels = grt_min64(MOST_TERMS, s->pixels - from);
        if (s->last)
            add_rows(image + from * s->channels + c, pixels, s->channels, a->flip, n, sums);
        else
            add_planes(image + c * s->pixels + from, n, s->pixels, pixels, a->flip, sums);
        for (int64_t i = 0; i < n; i++)
            totals[i] += sums[i];
    }
    for (int64_t i = 0; i < n; i++)
        y[c + i] = s->pixels ? mean_of_many(a, totals[i], s->pixels) : (uint8_t)a->y.zero;
}

static grt_status qpool_run_global(const grt_run *r)
{
    const cpu_images *s = r->shape;
    const average a = read_average(r);
    const uint8_t *x = r->in[X]->data;
    uint8_t *y = r->out[0]->data;
    const int64_t blocks = (s->channels + PART - 1) / PART;
#pragma omp parallel for num_threads(r->threads) if (s->batch * s->channels * s->pixels > 4 * CPU_GRAIN)
    for (int64_t i = 0; i < s->batch * blocks; i++)
        average_channels(s, &a, x + i / blocks * s->pixels * s->channels, i % blocks * PART,
                         y + i / blocks * s->channels);
    return GRT_OK;
}

/* exp(-i * scale) for i from 0 on, as a number and in units. */
typedef struct exponentials {
    float of[256];
    int32_t units[256];
} exponentials;

static void fill_exponentials(float scale, exponentials *e)
{
    for (int i = 0; i < 256; i++) {
        e->units[i] = grt_softmax_units(i, scale);
        e->of[i] = (float)(e->units[i] / GRT_SOFTMAX_UNITS);
    }
}

/* The table, if the scale is known. */
static grt_status qpool_create_softmax(const grt_kernel_node *node, void **out_state)
{
    if (!node->in[X_SCALE].data)
        return GRT_OK;
    exponentials *e = malloc(sizeof *e);
    if (!e)
        return grt_fail_memory(sizeof *e);
    fill_exponentials(qpool_float_of(&node->in[X_SCALE]), e);
    *out_state = e;
    return GRT_OK;
}

typedef struct softmax_of_bytes {
    const exponentials *e;
    cpu_byte_rounding y;
    uint8_t flip;
    float y_scale;
} softmax_of_bytes;

static inline __attribute__((always_inline)) float softmax_factor(const softmax_of_bytes *s, int64_t sum)
{
    return (float)(GRT_SOFTMAX_UNITS / ((double)sum * (double)s->y_scale));
}

CPU_BODY softmax_row_of_bytes_body(const softmax_of_bytes *s, const uint8_t *x, int64_t n, uint8_t *y)
{
    const cpu_byte_rounding to = s->y;
    const exponentials *e = s->e;
    const uint8_t flip = s->flip;
    uint8_t largest = 0;
    int64_t sum = 0;
    _Pragma("omp simd reduction(max : largest)") for (int64_t i = 0; i < n; i++)
    {
        const uint8_t v = x[i] ^ flip;
        largest = v > largest ? v : largest;
    }
    _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum +=
        e->units[largest - (x[i] ^ flip)];
    const float factor = softmax_factor(s, sum);
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
        cpu_round_to_byte(&to, e->of[largest - (x[i] ^ flip)] * factor);
}
CPU_DISPATCH(softmax_row_of_bytes, (const softmax_of_bytes *s, const uint8_t *x, int64_t n, uint8_t *y),
             (s, x, n, y))

/* Up to PART neighbouring columns, whose rows are `step` apart. */
CPU_BODY softmax_columns_of_bytes_body(const softmax_of_bytes *s, const uint8_t *x, int64_t size,
                                       int64_t step, int64_t n, uint8_t *y)
{
    const cpu_byte_rounding to = s->y;
    const exponentials *e = s->e;
    const uint8_t flip = s->flip;
    uint8_t largest[PART] = {0};
    int64_t sums[PART] = {0};
    float factors[PART];
    for (int64_t k = 0; k < size; k++)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)
        {
            const uint8_t v = x[k * step + i] ^ flip;
            largest[i] = v > largest[i] ? v : largest[i];
        }
    for (int64_t k = 0; k < size; k++)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) sums[i] +=
            e->units[largest[i] - (x[k * step + i] ^ flip)];
    for (int64_t i = 0; i < n; i++)
        factors[i] = softmax_factor(s, sums[i]);
    for (int64_t k = 0; k < size; k++)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[k * step + i] =
            cpu_round_to_byte(&to, e->of[largest[i] - (x[k * step + i] ^ flip)] * factors[i]);
}
CPU_DISPATCH(softmax_columns_of_bytes,
             (const softmax_of_bytes *s, const uint8_t *x, int64_t size, int64_t step, int64_t n, uint8_t *y),
             (s, x, size, step, n, y))

static grt_status qpool_run_softmax(const grt_run *r)
{
    const grt_softmax *s = r->shape;
    exponentials own;
    if (!r->state)
        fill_exponentials(qpool_float_of(r->in[X_SCALE]), &own);
    const softmax_of_bytes of = {.e = r->state ? r->state : &own,
                                 .y = cpu_byte_rounding_of(r->in[SOFTMAX_Y_ZERO]),
                                 .flip = r->in[X]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                                 .y_scale = qpool_float_of(r->in[SOFTMAX_Y_SCALE])};
    const uint8_t *x = r->in[X]->data;
    uint8_t *y = r->out[0]->data;
    const int64_t parts = (s->inner + PART - 1) / PART;
#pragma omp parallel for num_threads(r->threads) if (s->outer * s->size * s->inner > CPU_GRAIN)
    for (int64_t i = 0; i < s->outer * parts; i++) {
        const int64_t column = i % parts * PART, at = i / parts * s->size * s->inner + column;
        if (s->inner == 1)
            softmax_row_of_bytes(&of, x + at, s->size, y + at);
        else
            softmax_columns_of_bytes(&of, x + at, s->size, s->inner, grt_min64(PART, s->inner - column),
                                     y + at);
    }
    return GRT_OK;
}

static bool qpool_supports(const grt_kernel_node *node, grt_text *why)
{
    const bool softmax = !strcmp(node->desc->op, "QSoftmax");
    return grt_qbytes_fit(node, 1u << X_SCALE | 1u << (softmax ? (int)SOFTMAX_Y_SCALE : (int)Y_SCALE), why);
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QGlobalAveragePool",
     .supports = qpool_supports,
     .reshape = qpool_reshape_global,
     .release_shape = free,
     .run = qpool_run_global},
    {.domain = "graphrt",
     .op = "QSoftmax",
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = qpool_supports,
     .create = qpool_create_softmax,
     .destroy = free,
     .reshape = grt_softmax_reshape,
     .release_shape = free,
     .run = qpool_run_softmax},
};
CPU_KERNELS(qpool, rows);
