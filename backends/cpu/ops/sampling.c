/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv, LpPool, MaxUnpool. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/threads.h"
#include "backends/shared/window.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---- LpPool ---- */

typedef struct lp_shape {
    cpu_window w;
    int64_t planes;
    double p;
} lp_shape;

static grt_status lp_reshape(grt_reshape *reshape)
{
    const grt_tensor *x = reshape->in[0], *y = reshape->out[0];
    lp_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    cpu_window_read(reshape->desc, x->rank - 2, x->dims + 2, y->dims + 2, NULL, false, &shape->w);
    shape->planes = x->dims[0] * x->dims[1];
    shape->p = (double)grt_attr_int(reshape->desc, "p", 2);
    reshape->shape = shape;
    return GRT_OK;
}

/* The norm of one window; o: output position in each dim. */
static double lp_window(const lp_shape *shape, const grt_tensor *x, int64_t plane, int64_t out)
{
    const cpu_window *w = &shape->w;
    int64_t from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], first[CPU_MAX_SPATIAL], k[CPU_MAX_SPATIAL];
    double sum = 0;
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        cpu_window_taps(w, i, out % w->out[i], &from[i], &to[i], &first[i]);
        out /= w->out[i];
        k[i] = from[i];
        if (from[i] == to[i])
            return 0;
    }
    for (;;) {
        int64_t at = 0;
        for (int32_t i = 0; i < w->spatial; i++)
            at = at * w->in[i] + first[i] + k[i] * w->dilation[i];
        double value = fabs(grt_element_get(x, plane * w->in_pixels + at));
        sum += shape->p == 2 ? value * value : shape->p == 1 ? value : pow(value, shape->p);
        int32_t i = w->spatial - 1;
        while (i >= 0 && ++k[i] == to[i]) {
            k[i] = from[i];
            i--;
        }
        if (i < 0)
            return shape->p == 2 ? sqrt(sum) : pow(sum, 1 / shape->p);
    }
}

static grt_status lp_run(const grt_run *run)
{
    const lp_shape *shape = run->shape;
    int64_t pixels = shape->w.out_pixels, n = shape->planes * pixels;
    const bool many = grt_mul_saturated(n, shape->w.taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(run->threads) if (many)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i, lp_window(shape, run->in[0], i / pixels, i % pixels));
    return GRT_OK;
}

/* ---- MaxUnpool ---- */

/* Indices count elements of the shape that kernel, strides and pads give; a larger output_shape pads that. */

typedef struct unpool_shape {
    int32_t rank;
    int64_t dims[GRT_MAX_RANK], elements; /* the shape that indices speak of */
} unpool_shape;

static int64_t entry(const int64_t *values, size_t n, int32_t i, int64_t fallback)
{
    return (size_t)i < n ? values[i] : fallback;
}

static grt_status unpool_reshape(grt_reshape *reshape)
{
    const grt_tensor *x = reshape->in[0], *index = reshape->in[1], *y = reshape->out[0];
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = grt_attr_ints(reshape->desc, "kernel_shape", &n_kernel);
    const int64_t *strides = grt_attr_ints(reshape->desc, "strides", &n_strides);
    const int64_t *pads = grt_attr_ints(reshape->desc, "pads", &n_pads);
    unpool_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    shape->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        int32_t s = i - 2;
        int64_t edge = entry(kernel, n_kernel, s, 1) - entry(pads, n_pads, s, 0) -
                       entry(pads, n_pads, s + x->rank - 2, 0);
        shape->dims[i] = x->dims[i];
        if (i >= 2 && (!grt_mul_i64(x->dims[i] - 1, entry(strides, n_strides, s, 1), &shape->dims[i]) ||
                       !grt_add_i64(shape->dims[i], edge, &shape->dims[i])))
            shape->dims[i] = -1; /* refused below */
    }
    shape->elements = grt_dims_product(shape->dims, 0, shape->rank);
    if (x->rank < 3 || y->rank != x->rank || shape->elements < 0 ||
        !grt_dims_equal(x->dims, x->rank, index->dims, index->rank)) {
        free(shape);
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input and indices must have one shape, with spatial dims that the window fits");
    }
    reshape->shape = shape;
    return GRT_OK;
}

static grt_status unpool_run(const grt_run *run)
{
    const unpool_shape *shape = run->shape;
    const grt_tensor *x = run->in[0];
    grt_tensor *y = run->out[0];
    size_t element = grt_dtype_size(x->dtype), bytes = grt_tensor_bytes(y);
    int64_t n = grt_tensor_elements(x);
    if (bytes)
        memset(y->data, 0, bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = ((const int64_t *)run->in[1]->data)[i], rest = index, at = 0, stride = 1;
        bool inside = index >= 0 && index < shape->elements;
        for (int32_t k = shape->rank - 1; inside && k >= 0; k--) {
            at += rest % shape->dims[k] * stride;
            inside = rest % shape->dims[k] < y->dims[k];
            rest /= shape->dims[k];
            stride *= y->dims[k];
        }
        if (!inside)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "index %lld at element %lld is outside the output", (long long)index,
                               (long long)i);
        memcpy((char *)y->data + (size_t)at * element, (const char *)x->data + (size_t)i * element, element);
    }
    return GRT_OK;
}

/* ---- DeformConv ---- */

enum { X, W, OFFSET, BIAS, MASK };

typedef struct deform_shape {
    cpu_window w;
    int64_t batch, groups, offset_groups, channels, out_channels;
} deform_shape;

static bool deform_supports(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[X].rank == 4 || node->in[X].rank < 0)
        return true;
    if (why)
        grt_text_add(why, "the input has rank %d; images with two spatial dims are supported",
                     node->in[X].rank);
    return false;
}

static bool dims_are(const grt_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[] = {a, b, c, d};
    return !t || grt_dims_equal(t->dims, t->rank, want, 4);
}

static grt_status deform_reshape(grt_reshape *reshape)
{
    const grt_tensor *x = reshape->in[X], *w = reshape->in[W], *y = reshape->out[0];
    const grt_tensor *bias = reshape->n_in > BIAS ? reshape->in[BIAS] : NULL;
    const grt_tensor *mask = reshape->n_in > MASK ? reshape->in[MASK] : NULL;
    int64_t groups = grt_attr_int(reshape->desc, "group", 1),
            offsets = grt_attr_int(reshape->desc, "offset_group", 1);
    bool fits = x->rank == 4 && w->rank == 4 && y->rank == 4 && groups > 0 && offsets > 0 &&
                x->dims[1] == w->dims[1] * groups && w->dims[0] % groups == 0 && x->dims[1] % offsets == 0;
    if (fits) {
        int64_t taps = w->dims[2] * w->dims[3];
        fits = dims_are(reshape->in[OFFSET], x->dims[0], offsets * taps * 2, y->dims[2], y->dims[3]) &&
               dims_are(mask, x->dims[0], offsets * taps, y->dims[2], y->dims[3]) &&
               (!bias || grt_tensor_elements(bias) == w->dims[0]);
    }
    if (!fits)
        return grt_fail_op(
            reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
            "input, weight, offset, bias and mask do not fit together; see DeformConv's definition");
    deform_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    cpu_window_read(reshape->desc, 2, x->dims + 2, y->dims + 2, w->dims + 2, false, &shape->w);
    shape->batch = x->dims[0];
    shape->groups = groups;
    shape->offset_groups = offsets;
    shape->channels = x->dims[1];
    shape->out_channels = w->dims[0];
    size_t samples;
    if (!grt_mul_size((size_t)shape->channels * sizeof(double), (size_t)shape->w.taps, &samples) ||
        !grt_mul_size(samples, (size_t)reshape->threads, &reshape->workspace_bytes)) {
        free(shape);
        return grt_fail_memory(SIZE_MAX);
    }
    reshape->shape = shape;
    return GRT_OK;
}

/* A pixel; 0 outside the image. */
static double pixel(const cpu_window *w, const grt_tensor *x, int64_t plane, int64_t row, int64_t column)
{
    if (row < 0 || row >= w->in[0] || column < 0 || column >= w->in[1])
        return 0;
    return grt_element_get(x, plane * w->in_pixels + row * w->in[1] + column);
}

static double sample(const cpu_window *w, const grt_tensor *x, int64_t plane, double row, double column)
{
    if (!(row > -1 && row < (double)w->in[0] && column > -1 && column < (double)w->in[1]))
        return 0; /* NaN too */
    int64_t r = (int64_t)floor(row), c = (int64_t)floor(column);
    double down = row - (double)r, right = column - (double)c;
    double upper = (1 - right) * pixel(w, x, plane, r, c) + right * pixel(w, x, plane, r, c + 1);
    double lower = (1 - right) * pixel(w, x, plane, r + 1, c) + right * pixel(w, x, plane, r + 1, c + 1);
    return (1 - down) * upper + down * lower;
}

/* What all taps of all channels see at output pixel `at`. */
static void deform_samples(const grt_run *run, int64_t batch, int64_t at, double *samples)
{
    const deform_shape *shape = run->shape;
    const cpu_window *w = &shape->w;
    const grt_tensor *mask = run->n_in > MASK ? run->in[MASK] : NULL;
    int64_t pixels = w->out_pixels, per_offset = shape->channels / shape->offset_groups;
    for (int64_t g = 0; g < shape->offset_groups; g++)
        for (int64_t tap = 0; tap < w->taps; tap++) {
            int64_t offset = ((batch * shape->offset_groups + g) * w->taps + tap) * 2 * pixels + at;
            double row =
                (double)(at / w->out[1] * w->stride[0] - w->begin[0] + tap / w->kernel[1] * w->dilation[0]);
            double column =
                (double)(at % w->out[1] * w->stride[1] - w->begin[1] + tap % w->kernel[1] * w->dilation[1]);
            row += grt_element_get(run->in[OFFSET], offset);
            column += grt_element_get(run->in[OFFSET], offset + pixels);
            double factor =
                mask ? grt_element_get(mask,
                                       ((batch * shape->offset_groups + g) * w->taps + tap) * pixels + at)
                     : 1;
            for (int64_t c = g * per_offset; c < (g + 1) * per_offset; c++)
                samples[c * w->taps + tap] =
                    factor * sample(w, run->in[X], batch * shape->channels + c, row, column);
        }
}

static grt_status deform_run(const grt_run *run)
{
    const deform_shape *shape = run->shape;
    const grt_tensor *bias = run->n_in > BIAS ? run->in[BIAS] : NULL;
    int64_t pixels = shape->w.out_pixels, n = shape->batch * pixels, taps = shape->w.taps;
    int64_t group_in = shape->channels / shape->groups, group_out = shape->out_channels / shape->groups;
#pragma omp parallel for num_threads(run->threads) if (n * taps * shape->channels > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++) {
        double *samples = (double *)run->workspace + cpu_thread() * shape->channels * taps;
        int64_t batch = i / pixels, at = i % pixels;
        deform_samples(run, batch, at, samples);
        for (int64_t o = 0; o < shape->out_channels; o++) {
            const double *seen = samples + o / group_out * group_in * taps;
            double sum = bias ? grt_element_get(bias, o) : 0;
            for (int64_t k = 0; k < group_in * taps; k++)
                sum += seen[k] * grt_element_get(run->in[W], o * group_in * taps + k);
            grt_element_put(run->out[0], (batch * shape->out_channels + o) * pixels + at, sum);
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "DeformConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = deform_supports,
     .reshape = deform_reshape,
     .release_shape = free,
     .run = deform_run},
    {.domain = "",
     .op = "LpPool",
     .types = {GRT_SET_FLOATS},
     .reshape = lp_reshape,
     .release_shape = free,
     .run = lp_run},
    {.domain = "",
     .op = "MaxUnpool",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .reshape = unpool_reshape,
     .release_shape = free,
     .run = unpool_run},
};
CPU_KERNELS(sampling, rows);
