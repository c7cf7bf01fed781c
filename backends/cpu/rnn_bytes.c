/* SPDX-License-Identifier: Apache-2.0 */
/* See rnn_bytes.h. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/rnn_bytes.h"

#include "backends/cpu/integer_rows.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL = 16 }; /* columns */

static bool one_or_each(const grt_tensor *t, int64_t directions, int64_t n)
{
    const int64_t found = grt_tensor_elements(t);
    return found == directions || found == directions * n;
}

bool cpu_rnn_bytes_fit(const grt_tensor *weights, const grt_tensor *scale, const grt_tensor *zero,
                       int64_t directions, int64_t k, int64_t n)
{
    return weights->rank == 3 && weights->dims[0] == directions && weights->dims[1] == k &&
           weights->dims[2] == n && one_or_each(scale, directions, n) &&
           (!zero || (zero->dtype == weights->dtype && one_or_each(zero, directions, n)));
}

cpu_rnn_bytes cpu_rnn_bytes_of(const grt_tensor *weights, const grt_tensor *scale, const grt_tensor *zero,
                               int64_t direction)
{
    const int64_t k = weights->dims[1], n = weights->dims[2];
    const bool scale_each = grt_tensor_elements(scale) != weights->dims[0],
               zero_each = zero && grt_tensor_elements(zero) != weights->dims[0];
    return (cpu_rnn_bytes){
        .k = k,
        .n = n,
        .weights = (const uint8_t *)weights->data + direction * k * n,
        .zero = zero ? (const uint8_t *)zero->data + direction * (zero_each ? n : 1) : NULL,
        .scale = (const float *)scale->data + direction * (scale_each ? n : 1),
        .is_signed = weights->dtype == GRT_DTYPE_INT8,
        .zero_each = zero_each,
        .scale_each = scale_each,
    };
}

uint8_t *cpu_rnn_bytes_pack(const void *weights, int64_t k, int64_t n)
{
    const size_t panels = ((size_t)n + PANEL - 1) / PANEL;
    size_t bytes;
    if (!grt_mul_size(panels * PANEL, (size_t)k, &bytes))
        return NULL;
    uint8_t *packed = calloc(bytes + !bytes, 1);
    const uint8_t *from = weights;
    for (size_t p = 0; packed && p < panels; p++)
        for (int64_t i = 0; i < k; i++) {
            const int64_t first = (int64_t)p * PANEL, left = n - first;
            memcpy(packed + ((int64_t)p * k + i) * PANEL, from + i * n + first,
                   left < PANEL ? (size_t)left : PANEL);
        }
    return packed;
}

/* Of one thread: a few rounded rows, each with room for one more element, and their products. */
typedef struct thread_scratch {
    int16_t *values;
    int32_t *products;
} thread_scratch;

static bool lay_out(int64_t k, int64_t n, size_t *out_products, size_t *out_bytes)
{
    cpu_layout layout = {0};
    cpu_layout_add(&layout, k < INT64_MAX ? k + 1 : -1, CPU_INTEGER_ROWS * sizeof(int16_t));
    *out_products = cpu_layout_add(&layout, n, CPU_INTEGER_ROWS * sizeof(int32_t));
    *out_bytes = layout.bytes;
    return !layout.overflow;
}

bool cpu_rnn_bytes_scratch(int64_t k, int64_t n, int threads, size_t *out_bytes)
{
    size_t products, one;
    return lay_out(k, n, &products, &one) && grt_mul_size(one, (size_t)threads, out_bytes);
}

static thread_scratch scratch_of(const cpu_rnn_bytes *b, void *scratch, int thread)
{
    size_t products = 0, bytes = 0;
    lay_out(b->k, b->n, &products, &bytes);
    char *own = (char *)scratch + (size_t)thread * bytes;
    return (thread_scratch){cpu_at(own, 0), cpu_at(own, products)};
}

typedef struct range {
    float scale, zero;
} range;

/* 8 bits for n floats; the range always holds 0. */
static range find_range(const float *a, int64_t n)
{
    float low = 0.0f, high = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        low = a[i] < low ? a[i] : low;
        high = a[i] > high ? a[i] : high;
    }
    range r = {.scale = (high - low) / 255.0f};
    r.scale = r.scale > 0.0f ? r.scale : 1.0f;
    r.zero = rintf(-low / r.scale);
    r.zero = r.zero > 0.0f ? fminf(r.zero, 255.0f) : 0.0f; /* 0 also if infinities gave NaN */
    return r;
}

/* One row, less the zero point; the sum of it. */
static int32_t round_row(const float *a, int64_t k, range r, int16_t *values)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < k; i++) {
        float q = rintf(a[i] / r.scale) + r.zero;
        q = q > 0.0f ? q : 0.0f;
        values[i] = (int16_t)((q < 255.0f ? q : 255.0f) - r.zero);
    }
    for (int64_t i = 0; i < k; i++)
        sum += (uint32_t)(int32_t)values[i];
    return (int32_t)sum;
}

static int32_t zero_of(const cpu_rnn_bytes *b, int64_t column)
{
    const int64_t i = b->zero_each ? column : 0;
    return !b->zero ? 0 : b->is_signed ? ((const int8_t *)b->zero)[i] : ((const uint8_t *)b->zero)[i];
}

static void scale_row(const cpu_rnn_bytes *b, float a_scale, int32_t row_sum, const int32_t *products,
                      const float *bias, float *c)
{
    for (int64_t j = 0; j < b->n; j++) {
        const uint32_t shift = (uint32_t)row_sum * (uint32_t)zero_of(b, j);
        const float scale = a_scale * b->scale[b->scale_each ? j : 0];
        c[j] = (bias ? bias[j] : c[j]) + (float)(int32_t)((uint32_t)products[j] - shift) * scale;
    }
}

/* products[rows, n] */
static void multiply(const cpu_rnn_bytes *b, int rows, int16_t *values, int32_t *products)
{
    const int64_t k = b->k, n = b->n;
    if (!b->panels) {
        cpu_integer_rows(values, k + 1, rows, b->weights, b->is_signed, k, n, products);
        return;
    }
    for (int64_t from = 0; from < n; from += PANEL) {
        int32_t part[CPU_INTEGER_ROWS * PANEL];
        const size_t columns = n - from < PANEL ? (size_t)(n - from) : PANEL;
        cpu_integer_rows(values, k + 1, rows, b->panels + from * k, b->is_signed, k, PANEL, part);
        for (int i = 0; i < rows; i++)
            memcpy(products + i * n + from, part + i * PANEL, columns * sizeof *part);
    }
}

/* Up to CPU_INTEGER_ROWS rows; `values` has room for them. */
static void run_rows(const cpu_rnn_bytes *b, int rows, const float *a, const range *all, const float *bias,
                     float *c, int16_t *values, int32_t *products)
{
    const int64_t k = b->k, stride = k + 1;
    int32_t sums[CPU_INTEGER_ROWS];
    range own[CPU_INTEGER_ROWS];
    for (int i = 0; i < rows; i++) {
        own[i] = all ? *all : find_range(a + i * k, k);
        sums[i] = round_row(a + i * k, k, own[i], values + i * stride);
    }
    multiply(b, rows, values, products);
    for (int i = 0; i < rows; i++)
        scale_row(b, own[i].scale, sums[i], products + i * b->n, bias, c + i * b->n);
}

void cpu_rnn_bytes_run(const cpu_rnn_bytes *b, int64_t m, const float *a, bool apart, const float *bias,
                       float *c, void *scratch, int threads)
{
    const int64_t k = b->k, n = b->n;
    const range all = apart ? (range){0} : find_range(a, m * k);
#pragma omp parallel for num_threads(threads) if (m * n * k > CPU_GRAIN)
    for (int64_t row = 0; row < m; row += CPU_INTEGER_ROWS) {
        const int rows = m - row < CPU_INTEGER_ROWS ? (int)(m - row) : CPU_INTEGER_ROWS;
        thread_scratch own = scratch_of(b, scratch, cpu_thread());
        run_rows(b, rows, a + row * k, apart ? NULL : &all, bias, c + row * n, own.values, own.products);
    }
}
