/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization and RMSNormalization: rows over the trailing dims. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/norm.h"
#include "backends/shared/norm.h"
#include "src/base/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer_shape {
    grt_layer_norm norm;
    bool plain; /* float32 throughout; scale and bias are rows */
} layer_shape;

static bool is_float_row(const grt_tensor *t, const grt_norm_factor *factor)
{
    return !t || (t->dtype == GRT_DTYPE_FLOAT && factor->is_row);
}

static grt_status layer_norm_reshape(grt_reshape *r)
{
    layer_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_layer_norm_fit(r, &s->norm);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    s->plain = r->in[0]->dtype == GRT_DTYPE_FLOAT && is_float_row(r->in[GRT_NORM_SCALE], &s->norm.scale) &&
               is_float_row(grt_reshape_in(r, GRT_NORM_BIAS), &s->norm.bias);
    r->shape = s;
    return GRT_OK;
}

static void layer_norm_put(const grt_run *r, int32_t i, int64_t row, double value)
{
    if (i < r->n_out && r->out[i])
        grt_element_put(r->out[i], row, value);
}

/* Rows that are normalised by one call. */
enum { CHUNK_ROWS = 64 };

static void layer_norm_run_chunk(const grt_run *r, const grt_layer_norm *s, int64_t first, int64_t rows)
{
    const grt_tensor *bias = grt_run_in(r, GRT_NORM_BIAS);
    const cpu_norm norm = {.size = s->size,
                           .rms = s->rms,
                           .epsilon = (float)s->epsilon,
                           .scale = r->in[GRT_NORM_SCALE]->data,
                           .bias = bias ? bias->data : NULL};
    float means[CHUNK_ROWS], factors[CHUNK_ROWS];
    cpu_norm_rows(&norm, (const float *)r->in[0]->data + first * s->size,
                  r->out[0] ? (float *)r->out[0]->data + first * s->size : NULL, rows, means, factors);
    for (int64_t i = 0; i < rows; i++) {
        layer_norm_put(r, 1, first + i, (double)means[i]);
        layer_norm_put(r, 2, first + i, (double)factors[i]);
    }
}

static double factor_at(const grt_tensor *t, const grt_layer_norm *s, const int64_t *strides, int64_t at)
{
    return grt_element_get(t, grt_strided_offset(s->dims, s->rank, strides, at));
}

/* The definition's steps, each result rounded to its type. */
static void layer_norm_run_row_exact(const grt_run *r, const grt_layer_norm *s, int64_t row)
{
    const grt_tensor *x = r->in[0], *bias = grt_run_in(r, GRT_NORM_BIAS);
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; !s->rms && i < s->size; i++)
        mean += grt_element_get(x, row * s->size + i);
    mean /= s->rms ? 1.0 : (double)s->size;
    for (int64_t i = 0; i < s->size; i++) {
        const double d = grt_element_get(x, row * s->size + i) - mean;
        squares += d * d;
    }
    const double factor = 1.0 / sqrt(squares / (double)s->size + s->epsilon);
    grt_tensor *y = r->out[0];
    for (int64_t i = 0; y && i < s->size; i++) {
        const int64_t at = row * s->size + i;
        grt_element_put(y, at, (grt_element_get(x, at) - mean) * factor);
        grt_element_put(y, at,
                        grt_element_get(y, at) * factor_at(r->in[GRT_NORM_SCALE], s, s->scale.strides, at));
        if (bias)
            grt_element_put(y, at, grt_element_get(y, at) + factor_at(bias, s, s->bias.strides, at));
    }
    layer_norm_put(r, 1, row, mean);
    layer_norm_put(r, 2, row, factor);
}

static grt_status layer_norm_run(const grt_run *r)
{
    const layer_shape *s = r->shape;
    const grt_layer_norm *norm = &s->norm;
    const bool many = norm->rows * norm->size > CPU_GRAIN;
    /* Long rows are pieces of work of their own. */
    const int64_t fit = norm->size > 0 ? CPU_GRAIN / 4 / norm->size : 1,
                  chunk = !s->plain || fit < 1 ? 1
                          : fit < CHUNK_ROWS   ? fit
                                               : CHUNK_ROWS,
                  chunks = (norm->rows + chunk - 1) / chunk;
#pragma omp parallel for num_threads(r->threads) if (many)
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t first = i * chunk, left = norm->rows - first;
        if (s->plain)
            layer_norm_run_chunk(r, norm, first, left < chunk ? left : chunk);
        else
            layer_norm_run_row_exact(r, norm, first);
    }
    return GRT_OK;
}

#define ROW(name)                                                                   \
    {                                                                               \
        .domain = "", .op = name, .types = {CPU_FLOATS, CPU_FLOATS, CPU_FLOATS},    \
        .reshape = layer_norm_reshape, .release_shape = free, .run = layer_norm_run \
    }

static const grt_kernel_row rows[] = {ROW("LayerNormalization"), ROW("RMSNormalization")};
CPU_KERNELS(layer_norm, rows);
