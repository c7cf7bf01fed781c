/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization and RMSNormalization: rows over the trailing dims. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer_shape {
    int64_t rows, size;
    double epsilon;
    bool rms;
    bool plain; /* float32 throughout; scale and bias, where given, of `size` values each */
    int32_t rank;
    int64_t dims[GRT_MAX_RANK], scale[GRT_MAX_RANK], bias[GRT_MAX_RANK]; /* strides of the general case */
} layer_shape;

enum { SCALE = 1, BIAS = 2 };

static const grt_tensor *input(const grt_tensor *const *in, int32_t n, int32_t i)
{
    return i < n ? in[i] : NULL;
}

/* Exactly the normalised dims, perhaps behind dims of 1. */
static bool is_row(const grt_tensor *t, const grt_tensor *x, int32_t axis)
{
    const int32_t trailing = x->rank - axis;
    if (t->rank < trailing)
        return false;
    for (int32_t i = 0; i < t->rank - trailing; i++)
        if (t->dims[i] != 1)
            return false;
    return grt_dims_equal(t->dims + t->rank - trailing, trailing, x->dims + axis, trailing);
}

static bool fits(const grt_tensor *t, const grt_tensor *x)
{
    int64_t out[GRT_MAX_RANK];
    int32_t rank;
    return !t || (grt_dims_broadcast(t->dims, t->rank, x->dims, x->rank, out, &rank) &&
                  grt_dims_equal(out, rank, x->dims, x->rank));
}

static grt_status layer_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *scale = r->in[SCALE], *bias = input(r->in, r->n_in, BIAS);
    layer_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (!fits(scale, x) || !fits(bias, x)) {
        free(s);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "%s is %s, which does not broadcast to the input %s",
                           fits(scale, x) ? "the bias" : "the scale",
                           grt_tensor_text(fits(scale, x) ? bias : scale, found), grt_tensor_text(x, wanted));
    }
    const int32_t axis = x->rank ? (int32_t)grt_axis(grt_attr_int(r->desc, "axis", -1), x->rank) : 0;
    s->rows = grt_dims_product(x->dims, 0, axis);
    s->size = grt_dims_product(x->dims, axis, x->rank);
    s->epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f);
    s->rms = !strcmp(r->desc->op, "RMSNormalization");
    s->rank = x->rank;
    memcpy(s->dims, x->dims, sizeof s->dims);
    grt_broadcast_strides(scale->dims, scale->rank, x->rank, s->scale);
    if (bias)
        grt_broadcast_strides(bias->dims, bias->rank, x->rank, s->bias);
    s->plain = x->dtype == GRT_DTYPE_FLOAT && scale->dtype == GRT_DTYPE_FLOAT && is_row(scale, x, axis) &&
               (!bias || (bias->dtype == GRT_DTYPE_FLOAT && is_row(bias, x, axis)));
    r->shape = s;
    return GRT_OK;
}

static void put(const grt_run *r, int32_t i, int64_t row, double value)
{
    if (i < r->n_out && r->out[i])
        grt_element_put(r->out[i], row, value);
}

static void run_row(const grt_run *r, const layer_shape *s, int64_t row)
{
    const grt_tensor *bias = input(r->in, r->n_in, BIAS);
    const float *x = (const float *)r->in[0]->data + row * s->size;
    float mean, variance;
    cpu_norm_stats(x, s->size, s->rms, &mean, &variance);
    const float factor = 1.0f / sqrtf(variance + (float)s->epsilon);
    if (r->out[0])
        cpu_norm_apply(x, (float *)r->out[0]->data + row * s->size, s->size, mean, factor, r->in[SCALE]->data,
                       bias ? bias->data : NULL);
    put(r, 1, row, (double)mean);
    put(r, 2, row, (double)factor);
}

static int64_t offset(const layer_shape *s, const int64_t *strides, int64_t at)
{
    return grt_strided_offset(s->dims, s->rank, strides, at);
}

/* The definition's steps, each result rounded to its type. */
static void run_row_exact(const grt_run *r, const layer_shape *s, int64_t row)
{
    const grt_tensor *x = r->in[0], *bias = input(r->in, r->n_in, BIAS);
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
                        grt_element_get(y, at) * grt_element_get(r->in[SCALE], offset(s, s->scale, at)));
        if (bias)
            grt_element_put(y, at, grt_element_get(y, at) + grt_element_get(bias, offset(s, s->bias, at)));
    }
    put(r, 1, row, mean);
    put(r, 2, row, factor);
}

static grt_status layer_run(const grt_run *r)
{
    const layer_shape *s = r->shape;
#pragma omp parallel for num_threads(r->threads) if (s->rows * s->size > CPU_GRAIN)
    for (int64_t row = 0; row < s->rows; row++)
        if (s->plain)
            run_row(r, s, row);
        else
            run_row_exact(r, s, row);
    return GRT_OK;
}

#define ROW(name)                                                                            \
    {                                                                                        \
        .domain = "", .op = name, .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS}, \
        .reshape = layer_reshape, .release_shape = free, .run = layer_run                    \
    }

static const grt_kernel_row rows[] = {ROW("LayerNormalization"), ROW("RMSNormalization")};
CPU_KERNELS(layer_norm, rows);
