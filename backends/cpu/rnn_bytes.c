/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno", "fp-contract=off")
#endif
#include "backends/cpu/rnn_bytes.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/integer_rows.h"
#include "backends/cpu/qgemm.h"
#include "backends/cpu/qlinear.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 12,
    WIDTH = GRT_QGEMM_WIDTH,
    CHUNK = 4 * WIDTH,      /* columns that are multiplied in one go */
    PARALLEL_WORK = 400000, /* multiply-adds, as of other products of bytes */
};

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

/* As cpu_rnn_bytes_pack packs them. */
static bool init_packed(int64_t k, int64_t n, bool is_signed, int64_t rows, grt_qgemm_b *out)
{
    return rows ? grt_qgemm_b_init_constant(NULL, rows, k, n, is_signed, out)
                : grt_qgemm_b_init(grt_qgemm_kernel_of_few(), k, n, is_signed, out);
}

grt_status cpu_rnn_bytes_pack(const grt_kernel_node *node, const void *weights, int64_t k, int64_t n,
                              bool is_signed, int64_t rows, uint8_t **out_packed)
{
    grt_qgemm_b b;
    if (!init_packed(k, n, is_signed, rows, &b))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, (size_t)b.bytes, (void **)out_packed));
    grt_qgemm_pack(&b, weights, n, 1, *out_packed);
    return GRT_OK;
}

/* Of one thread: a row in bytes; rows as kernels read them; and, where the weights are not packed, the same
 * less the zero point, each with room for one more element, and their products. */
typedef struct thread_scratch {
    uint8_t *bytes, *rows;
    int16_t *values;
    int32_t *products;
} thread_scratch;

typedef struct scratch_layout {
    size_t rows, values, products, bytes;
} scratch_layout;

static bool rnn_bytes_lay_out(int64_t k, int64_t n, scratch_layout *out)
{
    cpu_layout layout = {0};
    const bool fits = k < INT64_MAX / 8;
    cpu_layout_add(&layout, fits ? k : -1, 1);
    out->rows = cpu_layout_add(&layout, fits ? grt_qgemm_row_bytes(k) : -1, ROWS);
    out->values = cpu_layout_add(&layout, fits ? k + 1 : -1, CPU_INTEGER_ROWS * sizeof(int16_t));
    out->products = cpu_layout_add(&layout, n, CPU_INTEGER_ROWS * sizeof(int32_t));
    out->bytes = layout.bytes;
    return !layout.overflow;
}

bool cpu_rnn_bytes_scratch(int64_t k, int64_t n, int threads, size_t *out_bytes)
{
    scratch_layout layout;
    return rnn_bytes_lay_out(k, n, &layout) && grt_mul_size(layout.bytes, (size_t)threads, out_bytes);
}

static thread_scratch rnn_bytes_scratch_of(const cpu_rnn_bytes *b, void *scratch, int thread)
{
    scratch_layout layout = {0};
    rnn_bytes_lay_out(b->k, b->n, &layout);
    char *own = (char *)scratch + (size_t)thread * layout.bytes;
    return (thread_scratch){cpu_workspace_at(own, 0), cpu_workspace_at(own, layout.rows),
                            cpu_workspace_at(own, layout.values), cpu_workspace_at(own, layout.products)};
}

typedef struct range {
    float scale, zero;
} range;

/* 8 bits for n floats; the range always holds 0. */
static range find_range(const float *a, int64_t n)
{
    float low = 0.0f, high = 0.0f;
    cpu_widen_range(a, n, &low, &high);
    range r = {.scale = (high - low) / 255.0f};
    r.scale = r.scale > 0.0f ? r.scale : 1.0f;
    r.zero = rintf(-low / r.scale);
    r.zero = r.zero > 0.0f ? fminf(r.zero, 255.0f) : 0.0f; /* 0 also if infinities gave NaN */
    return r;
}

/* One row; the sum of it less its zero points. */
static int32_t round_row(const float *a, int64_t k, range r, uint8_t *bytes)
{
    uint32_t sum = 0;
    cpu_quantise_bytes(a, k, r.scale, (int32_t)r.zero, false, bytes);
    for (int64_t i = 0; i < k; i++)
        sum += bytes[i];
    return (int32_t)(sum - (uint32_t)k * (uint32_t)r.zero);
}

static int32_t rnn_bytes_zero_of(const cpu_rnn_bytes *b, int64_t column)
{
    const int64_t i = b->zero_each ? column : 0;
    return !b->zero ? 0 : b->is_signed ? ((const int8_t *)b->zero)[i] : ((const uint8_t *)b->zero)[i];
}

/* What packed weights are less than given ones. */
static int32_t rnn_bytes_moved(const cpu_rnn_bytes *b)
{
    return b->is_signed ? 0 : 128;
}

/* Columns [from, to) of a row, of exact products. */
static void rnn_bytes_scale_row(const cpu_rnn_bytes *b, float a_scale, int64_t from, int64_t to,
                                const int32_t *products, const float *bias, float *c)
{
    for (int64_t j = from; j < to; j++) {
        const float scale = a_scale * b->scale[b->scale_each ? j : 0];
        c[j] = (bias ? bias[j] : c[j]) + (float)products[j - from] * scale;
    }
}

typedef struct row_range {
    range range;
    int32_t sum; /* of the rounded row, less its zero points */
} row_range;

/* What is per column of a chunk. */
typedef struct columns {
    const int32_t *sum; /* as B is packed */
    int32_t zero[CHUNK];
    float scale[CHUNK];
} columns;

/* What all columns have in common. */
static void common_columns(const cpu_rnn_bytes *b, columns *out)
{
    for (int64_t j = 0; j < CHUNK; j++) {
        out->zero[j] = b->zero_each ? 0 : rnn_bytes_zero_of(b, 0) - rnn_bytes_moved(b);
        out->scale[j] = b->scale_each ? 0.0f : b->scale[0];
    }
}

static void read_columns(const cpu_rnn_bytes *b, int64_t from, int64_t n, columns *out)
{
    out->sum = grt_qgemm_column_sums(b->packed) + from;
    for (int64_t j = 0; b->zero_each && j < n; j++)
        out->zero[j] = rnn_bytes_zero_of(b, from + j) - rnn_bytes_moved(b);
    if (b->scale_each)
        memcpy(out->scale, b->scale + from, (size_t)n * sizeof *out->scale);
}

/* A row of n columns: sums less what both zero points add, scaled, added to `base`, which may be `out`.
 * Blocks of WIDTH sums are `step` apart. */
CPU_BODY add_scaled_sums_body(const columns *of, int64_t n, uint32_t row_zero, uint32_t row_sum, float scale,
                              const int32_t *sums, int64_t step, const float *base, float *out)
{
    for (int64_t x = 0; x < n; x += WIDTH, sums += step) {
        const int64_t cols = n - x < WIDTH ? n - x : WIDTH;
#pragma omp simd
        for (int64_t j = 0; j < cols; j++) {
            const uint32_t v =
                (uint32_t)sums[j] - row_zero * (uint32_t)of->sum[x + j] - row_sum * (uint32_t)of->zero[x + j];
            out[x + j] = base[x + j] + (float)(int32_t)v * (scale * of->scale[x + j]);
        }
    }
}
CPU_DISPATCH(add_scaled_sums,
             (const columns *of, int64_t n, uint32_t row_zero, uint32_t row_sum, float scale,
              const int32_t *sums, int64_t step, const float *base, float *out),
             (of, n, row_zero, row_sum, scale, sums, step, base, out))

/* With packed weights: sums of what kernels read, corrected for both zero points. `own_columns` begins with a
 * whole block. */
static void multiply_packed(const cpu_rnn_bytes *b, int rows, const row_range *own, const void *a,
                            cpu_rnn_columns own_columns, bool backwards, const float *bias, float *c)
{
    _Alignas(64) int32_t sums[ROWS * CHUNK];
    const grt_qgemm_b packed = {.k = b->k, .n = b->n, .is_signed = b->is_signed};
    const int64_t chunks = (own_columns.end - own_columns.first + CHUNK - 1) / CHUNK;
    columns of;
    common_columns(b, &of);
    for (int64_t x = 0; x < chunks; x++) {
        const int64_t from = own_columns.first + (backwards ? chunks - 1 - x : x) * CHUNK;
        const int64_t n = own_columns.end - from < CHUNK ? own_columns.end - from : CHUNK;
        read_columns(b, from, n, &of);
        grt_qgemm_sums(&packed, b->packed, a, rows, from, n, sums);
        for (int i = 0; i < rows; i++) {
            float *to = c + i * b->n + from;
            add_scaled_sums(&of, n, (uint32_t)own[i].range.zero, (uint32_t)own[i].sum, own[i].range.scale,
                            sums + i * WIDTH, rows * WIDTH, bias ? bias + from : to, to);
        }
    }
}

static void less_zero(const uint8_t *bytes, int64_t k, float zero, int16_t *values)
{
    for (int64_t i = 0; i < k; i++)
        values[i] = (int16_t)(bytes[i] - (int16_t)zero);
}

/* With weights as they are given, for one row. */
static void multiply_given(const cpu_rnn_bytes *b, const row_range *own, const thread_scratch *t,
                           const float *bias, float *c)
{
    less_zero(t->bytes, b->k, own->range.zero, t->values);
    cpu_integer_rows(t->values, b->k + 1, 1, b->weights, b->is_signed, b->k, b->n, t->products);
    for (int64_t j = 0; j < b->n; j++)
        t->products[j] =
            (int32_t)((uint32_t)t->products[j] - (uint32_t)own->sum * (uint32_t)rnn_bytes_zero_of(b, j));
    rnn_bytes_scale_row(b, own->range.scale, 0, b->n, t->products, bias, c);
}

/* Up to ROWS rows. */
static void rnn_bytes_run_rows(const cpu_rnn_bytes *b, int rows, const float *a, const range *all,
                               cpu_rnn_columns own_columns, bool backwards, const float *bias, float *c,
                               const thread_scratch *t)
{
    const int64_t k = b->k, stride = grt_qgemm_row_bytes(k);
    const grt_qgemm_b packed = {.k = k, .n = b->n, .is_signed = b->is_signed};
    row_range own[ROWS];
    for (int i = 0; i < rows; i++) {
        own[i].range = all ? *all : find_range(a + i * k, k);
        own[i].sum = round_row(a + i * k, k, own[i].range, t->bytes);
        if (b->packed)
            grt_qgemm_put_row(&packed, t->bytes, t->rows + i * stride);
        else
            multiply_given(b, &own[i], t, bias, c + i * b->n);
    }
    if (b->packed)
        multiply_packed(b, rows, own, t->rows, own_columns, backwards, bias, c);
}

/* ---- many rows ---- */

/* Rows of floats to be rounded in one range. */
typedef struct rounding {
    const float *a;
    int64_t k;
    range range;
} rounding;

static void fill_rounded(const void *user, int64_t row, int64_t rows, uint8_t *out, int64_t ld)
{
    const rounding *r = user;
    for (int64_t i = 0; i < rows; i++)
        cpu_quantise_bytes(r->a + (row + i) * r->k, r->k, r->range.scale, (int32_t)r->range.zero, false,
                           out + i * ld);
}

static bool rnn_bytes_run_layout(int64_t n, size_t product, cpu_layout *layout, size_t at[5])
{
    *layout = (cpu_layout){0};
    for (int i = 0; i < 4; i++)
        at[i] = cpu_layout_add(layout, grt_qgemm_padded(n), sizeof(float));
    at[4] = cpu_layout_add(layout, product <= INT64_MAX ? (int64_t)product : -1, 1);
    return !layout->overflow;
}

static grt_qgemm product_of_many(const grt_qgemm_b *b, int64_t m)
{
    return (grt_qgemm){.m = m, .fill = fill_rounded, .b = b, .finish.y_dtype = GRT_DTYPE_FLOAT, .ldy = b->n};
}

bool cpu_rnn_bytes_run_scratch(int64_t rows, int64_t m, int64_t k, int64_t n, int threads, size_t *out_bytes)
{
    grt_qgemm_b b;
    cpu_layout layout;
    size_t product, at[5], few;
    if (!init_packed(k, n, false, rows, &b) || !cpu_rnn_bytes_scratch(k, n, threads, &few))
        return false;
    const grt_qgemm g = product_of_many(&b, m);
    if (!grt_qgemm_scratch_bytes(&g, threads, &product) || !rnn_bytes_run_layout(n, product, &layout, at))
        return false;
    *out_bytes = layout.bytes > few ? layout.bytes : few;
    return true;
}

static void run_many(const cpu_rnn_bytes *b, int64_t m, const float *a, range all, const float *bias,
                     float *c, void *scratch, int threads)
{
    grt_qgemm_b packed;
    cpu_layout layout;
    size_t at[5];
    if (!init_packed(b->k, b->n, b->is_signed, b->rows, &packed) ||
        !rnn_bytes_run_layout(b->n, 0, &layout, at))
        return; /* cpu_rnn_bytes_run_scratch has refused such sizes */
    const rounding rows = {a, b->k, all};
    const grt_qgemm_params params = {.a_zero = (int32_t)all.zero,
                                     .a_scale = all.scale,
                                     .b_zero = b->zero,
                                     .b_zero_each = b->zero_each,
                                     .b_scale = b->scale,
                                     .b_scale_each = b->scale_each,
                                     .bias = bias,
                                     .y_scale = 1.0f};
    const grt_qgemm_columns made = {cpu_workspace_at(scratch, at[0]), cpu_workspace_at(scratch, at[1]),
                                    cpu_workspace_at(scratch, at[2]), cpu_workspace_at(scratch, at[3])};
    grt_qgemm g = product_of_many(&packed, m);
    g.user = &rows;
    g.packed = b->packed;
    g.y = c;
    grt_qgemm_set_columns(&packed, b->packed, &params, &made);
    grt_qgemm_use_columns(&packed, &params, &made, &g.finish);
    grt_qgemm_run(&g, cpu_workspace_at(scratch, at[4]), threads);
}

void cpu_rnn_bytes_run(const cpu_rnn_bytes *b, int64_t m, int64_t ranged, const float *a, const float *bias,
                       float *c, void *scratch, int threads)
{
    const int64_t k = b->k, n = b->n;
    const range all = find_range(a, ranged * k);
    if (b->packed && b->rows) {
        run_many(b, m, a, all, bias, c, scratch, threads);
        return;
    }
#pragma omp parallel for num_threads(threads) if (m > ROWS && m * n * k > PARALLEL_WORK)
    for (int64_t row = 0; row < m; row += ROWS) {
        const int rows = m - row < ROWS ? (int)(m - row) : ROWS;
        const thread_scratch own = rnn_bytes_scratch_of(b, scratch, cpu_thread());
        const bool backwards = b->backwards != (row / ROWS % 2 != 0);
        rnn_bytes_run_rows(b, rows, a + row * k, &all, (cpu_rnn_columns){0, n}, backwards, bias, c + row * n,
                           &own);
    }
}

/* ---- columns ---- */

void cpu_rnn_bytes_run_columns(const cpu_rnn_bytes *b, int64_t m, const float *a, cpu_rnn_columns own_columns,
                               float *c, void *scratch, int thread)
{
    const thread_scratch own = rnn_bytes_scratch_of(b, scratch, thread);
    for (int64_t row = 0; row < m; row += ROWS) {
        const int rows = m - row < ROWS ? (int)(m - row) : ROWS;
        const bool backwards = b->backwards != (row / ROWS % 2 != 0);
        rnn_bytes_run_rows(b, rows, a + row * b->k, NULL, own_columns, backwards, NULL, c + row * b->n, &own);
    }
}
