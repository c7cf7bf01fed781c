/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul: 8-bit numbers less their zero points, summed in
 * int32. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/integer_rows.h"
#include "backends/cpu/threads.h"
#include "backends/shared/integer.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

static const grt_tensor *integer_input(const grt_run *run, int32_t i)
{
    return grt_integer_in(run->in, run->n_in, i);
}

static int32_t integer_load(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* Zero point or scale i of a matrix. */
static int32_t integer_zero_at(const grt_tensor *zero, int64_t per_matrix, int64_t matrix, int64_t i)
{
    return !zero ? 0
                 : integer_load(zero, grt_integer_level(grt_tensor_elements(zero), per_matrix, matrix, i));
}

static double scale_at(const grt_tensor *scale, int64_t per_matrix, int64_t matrix, int64_t i)
{
    return grt_element_get(scale, grt_integer_level(grt_tensor_elements(scale), per_matrix, matrix, i));
}

/* sums[i] += factor * (t[from + i * step] - zero), one loop per type. Sums wrap around like the int32 that
 * they are. */
static void add_scaled(int32_t *sums, int64_t n, int32_t factor, const grt_tensor *t, int64_t from,
                       int64_t step, int32_t zero)
{
    uint32_t *out = (uint32_t *)sums, f = (uint32_t)factor, z = (uint32_t)zero;
    if (t->dtype == GRT_DTYPE_INT8) {
        const int8_t *in = (const int8_t *)t->data + from;
        for (int64_t i = 0; i < n; i++)
            out[i] += f * ((uint32_t)in[i * step] - z);
    } else if (step == 1) {
        const uint8_t *in = (const uint8_t *)t->data + from;
        for (int64_t i = 0; i < n; i++)
            out[i] += f * (in[i] - z);
    } else {
        const uint8_t *in = (const uint8_t *)t->data + from;
        for (int64_t i = 0; i < n; i++)
            out[i] += f * (in[i * step] - z);
    }
}

static void store_quantised(grt_tensor *y, int64_t i, double value, int32_t zero)
{
    grt_element_put(y, i, nearbyint(value) + zero); /* limited to the type's range */
}

static grt_status integer_conv_reshape(grt_reshape *reshape)
{
    GRT_TRY(grt_integer_conv_reshape(reshape));
    const grt_integer_conv *shape = reshape->shape;
    if (grt_mul_size((size_t)shape->w.out_pixels * sizeof(int32_t), (size_t)reshape->threads,
                     &reshape->workspace_bytes))
        return GRT_OK;
    free(reshape->shape);
    reshape->shape = NULL;
    return grt_fail_memory(SIZE_MAX);
}

/* Output positions [*from, *to) of dim i that read inside the input with tap k. */
static void positions(const cpu_window *w, int32_t i, int64_t k, int64_t *from, int64_t *to)
{
    int64_t first = k * w->dilation[i] - w->begin[i],
            room = w->in[i] - first; /* o * stride + first lies in [0, in) */
    *from = first < 0 ? (-first + w->stride[i] - 1) / w->stride[i] : 0;
    *to = room > 0 ? (room + w->stride[i] - 1) / w->stride[i] : 0;
    *to = *to < w->out[i] ? *to : w->out[i];
    *from = *from < *to ? *from : *to;
}

/* sums += weight * (input shifted by a tap), over the output positions where it lies inside. */
static void integer_add_tap(const cpu_window *w, const grt_tensor *x, int64_t plane, int32_t x_zero,
                            int64_t tap, int32_t weight, int32_t *sums)
{
    int64_t from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], k[CPU_MAX_SPATIAL], o[CPU_MAX_SPATIAL];
    int32_t last = w->spatial - 1;
    for (int32_t i = last; i >= 0; i--) {
        k[i] = tap % w->kernel[i];
        tap /= w->kernel[i];
        positions(w, i, k[i], &from[i], &to[i]);
        if (from[i] == to[i])
            return;
        o[i] = from[i];
    }
    for (;;) {
        int64_t in_row = 0, out_row = 0;
        for (int32_t i = 0; i < last; i++) {
            in_row = (in_row + o[i] * w->stride[i] - w->begin[i] + k[i] * w->dilation[i]) * w->in[i + 1];
            out_row = (out_row + o[i]) * w->out[i + 1];
        }
        in_row += plane - w->begin[last] + k[last] * w->dilation[last];
        add_scaled(sums + out_row + from[last], to[last] - from[last], weight, x,
                   in_row + from[last] * w->stride[last], w->stride[last], x_zero);
        int32_t i = last - 1;
        while (i >= 0 && ++o[i] == to[i]) {
            o[i] = from[i];
            i--;
        }
        if (i < 0)
            return;
    }
}

static void store_plane(const grt_run *run, const grt_integer_places *at, int64_t channel, int64_t plane,
                        int64_t n, const int32_t *sums)
{
    grt_tensor *y = run->out[0];
    if (!at->scale_y) {
        memcpy((int32_t *)y->data + plane, sums, (size_t)n * sizeof *sums);
        return;
    }
    const grt_tensor *bias = integer_input(run, at->bias);
    int64_t add = bias ? grt_tensor_int(bias, channel) : 0;
    double scale = scale_at(run->in[at->scale_a], 0, 0, 0) * scale_at(run->in[at->scale_b], 0, 0, channel) /
                   scale_at(run->in[at->scale_y], 0, 0, 0);
    for (int64_t i = 0; i < n; i++)
        store_quantised(y, plane + i, (double)(sums[i] + add) * scale,
                        integer_zero_at(integer_input(run, at->zero_y), 0, 0, 0));
}

static grt_status integer_conv_run(const grt_run *run)
{
    const grt_integer_places *at = grt_integer_places_of(run->desc);
    const grt_integer_conv *shape = run->shape;
    const cpu_window *w = &shape->w;
    const grt_tensor *x = run->in[0], *weights = run->in[at->b], *w_zeros = integer_input(run, at->zero_b);
    int32_t x_zero = integer_zero_at(integer_input(run, at->zero_a), 0, 0, 0);
    int64_t planes = shape->batch * shape->out_channels, per_group = shape->out_channels / shape->groups;
#pragma omp parallel for num_threads( \
    run->threads) if (planes * shape->in_channels * w->taps * w->out_pixels > CPU_GRAIN)
    for (int64_t plane = 0; plane < planes; plane++) {
        int32_t *sums = (int32_t *)run->workspace + cpu_thread() * w->out_pixels;
        int64_t batch = plane / shape->out_channels, channel = plane % shape->out_channels;
        int64_t first = (batch * shape->groups + channel / per_group) * shape->in_channels;
        memset(sums, 0, (size_t)w->out_pixels * sizeof *sums);
        for (int64_t c = 0; c < shape->in_channels; c++)
            for (int64_t tap = 0; tap < w->taps; tap++) {
                int32_t weight = integer_load(weights, (channel * shape->in_channels + c) * w->taps + tap) -
                                 integer_zero_at(w_zeros, 0, 0, channel);
                if (weight)
                    integer_add_tap(w, x, (first + c) * w->in_pixels, x_zero, tap, weight, sums);
            }
        store_plane(run, at, channel, plane * w->out_pixels, w->out_pixels, sums);
    }
    return GRT_OK;
}

/* Sums of a few rows, and the rows' values minus zero points. */
static size_t thread_bytes(const grt_integer_matmul *shape)
{
    const size_t sums = (size_t)shape->n * sizeof(int32_t), values = ((size_t)shape->k + 1) * sizeof(int16_t);
    return (CPU_INTEGER_ROWS * (sums + values) + 63) & ~(size_t)63;
}

static grt_status matrix_reshape(grt_reshape *reshape)
{
    GRT_TRY(grt_integer_matmul_reshape(reshape));
    reshape->workspace_bytes = thread_bytes(reshape->shape) * (size_t)reshape->threads;
    return GRT_OK;
}

/* Where an item of the batch has its matrices. */
static void find_matrices(const grt_integer_matmul *shape, int64_t item, int64_t *a_item, int64_t *b_item)
{
    *a_item = grt_strided_offset(shape->dims, shape->lead, shape->a, item);
    *b_item = grt_strided_offset(shape->dims, shape->lead, shape->b, item);
}

/* values: of the row, less the zero point; their sum. */
static int32_t load_row(const grt_tensor *a, int64_t from, int64_t k, int32_t zero, int16_t *values)
{
    uint32_t sum = 0;
    if (a->dtype == GRT_DTYPE_INT8)
        for (int64_t i = 0; i < k; i++)
            values[i] = (int16_t)(((const int8_t *)a->data)[from + i] - zero);
    else
        for (int64_t i = 0; i < k; i++)
            values[i] = (int16_t)(((const uint8_t *)a->data)[from + i] - zero);
    for (int64_t i = 0; i < k; i++)
        sum += (uint32_t)(int32_t)values[i];
    return (int32_t)sum;
}

/* B's zero points are subtracted once per row, times the sum of the row. */
static void take_zeros_off(const grt_integer_matmul *shape, const grt_tensor *zero_b, int64_t b_item,
                           int32_t row_sum, int32_t *sums)
{
    for (int64_t j = 0; zero_b && j < shape->n; j++) {
        uint32_t zero = (uint32_t)integer_zero_at(zero_b, shape->n, b_item, j);
        sums[j] = (int32_t)((uint32_t)sums[j] - (uint32_t)row_sum * zero);
    }
}

static void store_row(const grt_run *run, const grt_integer_places *at, int64_t item, int64_t a_item,
                      int64_t b_item, int64_t row, const int32_t *sums)
{
    const grt_integer_matmul *shape = run->shape;
    const int64_t n = shape->n;
    int64_t out = (item * shape->m + row) * n;
    if (!at->scale_y) {
        memcpy((int32_t *)run->out[0]->data + out, sums, (size_t)n * sizeof *sums);
        return;
    }
    const grt_tensor *scale_a = run->in[at->scale_a], *scale_b = run->in[at->scale_b],
                     *scale_y = run->in[at->scale_y];
    const grt_tensor *zero_y = run->in[at->zero_y];
    double scale = scale_at(scale_a, shape->m, a_item, row) / scale_at(scale_y, shape->m, item, row);
    for (int64_t j = 0; j < n; j++)
        store_quantised(run->out[0], out + j, (double)sums[j] * scale * scale_at(scale_b, n, b_item, j),
                        integer_zero_at(zero_y, shape->m, item, row));
}

/* Rows from `row` on, of one matrix. */
static void matrix_rows(const grt_run *run, const grt_integer_places *at, int64_t item, int64_t row, int rows,
                        void *workspace)
{
    const grt_integer_matmul *shape = run->shape;
    const grt_tensor *a = run->in[0], *b = run->in[at->b], *zero_a = integer_input(run, at->zero_a),
                     *zero_b = integer_input(run, at->zero_b);
    const int64_t n = shape->n, k = shape->k, stride = k + 1;
    int32_t *sums = workspace, row_sums[CPU_INTEGER_ROWS];
    int16_t *values = (int16_t *)(sums + CPU_INTEGER_ROWS * n);
    int64_t a_item, b_item;
    find_matrices(shape, item, &a_item, &b_item);
    for (int i = 0; i < rows; i++)
        row_sums[i] = load_row(a, (a_item * shape->m + row + i) * k, k,
                               integer_zero_at(zero_a, shape->m, a_item, row + i), values + i * stride);
    cpu_integer_rows(values, stride, rows, (const uint8_t *)b->data + b_item * k * n,
                     b->dtype == GRT_DTYPE_INT8, k, n, sums);
    for (int i = 0; i < rows; i++) {
        take_zeros_off(shape, zero_b, b_item, row_sums[i], sums + i * n);
        store_row(run, at, item, a_item, b_item, row + i, sums + i * n);
    }
}

static grt_status matrix_run(const grt_run *run)
{
    const grt_integer_places *at = grt_integer_places_of(run->desc);
    const grt_integer_matmul *shape = run->shape;
    const int64_t blocks = (shape->m + CPU_INTEGER_ROWS - 1) / CPU_INTEGER_ROWS, all = shape->batch * blocks;
#pragma omp parallel for num_threads(run->threads) if (shape->batch * shape->m * shape->n * shape->k > \
                                                       CPU_GRAIN)
    for (int64_t block = 0; block < all; block++) {
        const int64_t row = block % blocks * CPU_INTEGER_ROWS, rows = shape->m - row;
        matrix_rows(run, at, block / blocks, row, rows < CPU_INTEGER_ROWS ? (int)rows : CPU_INTEGER_ROWS,
                    (char *)run->workspace + (size_t)cpu_thread() * thread_bytes(shape));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ConvInteger",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES},
     .reshape = integer_conv_reshape,
     .release_shape = free,
     .run = integer_conv_run},
    {.domain = "",
     .op = "MatMulInteger",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES},
     .reshape = matrix_reshape,
     .release_shape = free,
     .run = matrix_run},
    {.domain = "",
     .op = "QLinearConv",
     .supports = grt_qlinear_supports,
     .reshape = integer_conv_reshape,
     .release_shape = free,
     .run = integer_conv_run},
    {.domain = "",
     .op = "QLinearMatMul",
     .supports = grt_qlinear_supports,
     .reshape = matrix_reshape,
     .release_shape = free,
     .run = matrix_run},
};
CPU_KERNELS(integer, rows);
