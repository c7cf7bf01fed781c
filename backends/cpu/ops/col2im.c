/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: columns of windows are added into the images that they came from. */
#include "backends/cpu/move.h"

#include "backends/cpu/convert.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/threads.h"
#include "backends/shared/col2im.h"
#include "src/base/checked.h"
#include "src/base/element.h"

#include <string.h>

/* 16-bit floats are added as float32, and rounded once: a plane and a row of columns for each thread. */
static bool col2im_is_widened(const grt_tensor *in)
{
    return in->dtype == GRT_DTYPE_FLOAT16 || in->dtype == GRT_DTYPE_BFLOAT16;
}

static int64_t plane_pixels(const grt_tensor *out)
{
    return grt_dims_product(out->dims, 2, out->rank);
}

static grt_status reshape_col2im(grt_reshape *r)
{
    if (!col2im_is_widened(r->in[0]) ||
        grt_tensor_elements(r->in[0]) == 0) /* whose dims may be mere claims */
        return GRT_OK;
    const int64_t each = grt_add_saturated(plane_pixels(r->out[0]), r->in[0]->dims[2]);
    if (!grt_mul_size((size_t)grt_mul_saturated(each, r->threads), sizeof(float), &r->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return GRT_OK;
}

static grt_status create_col2im(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(grt_col2im), out_state));
    grt_col2im_read_attributes(node->desc, *out_state);
    return GRT_OK;
}

/* What one tap adds to a plane of float32: lines of places, of which the last dim's lie a stride apart. */
CPU_BODY col2im_tap_body(const grt_col2im *c, int64_t tap, const int64_t *dims, const float *from,
                         float *plane)
{
    const int32_t n = c->spatial;
    const int64_t *steps = c->steps;
    int64_t shift[GRT_MAX_RANK], place[GRT_MAX_RANK] = {0}, lines = 1;
    for (int32_t k = n - 1; k >= 0; k--) {
        shift[k] = tap % c->kernel[k] * c->dilations[k] - c->pads[k];
        tap /= c->kernel[k];
        lines *= k < n - 1 ? steps[k] : 1;
    }
    const int64_t width = steps[n - 1], stride = c->strides[n - 1], first = shift[n - 1];
    const int64_t low = first < 0 ? (-first + stride - 1) / stride : 0,
                  high = dims[n - 1] > first ? (dims[n - 1] - first - 1) / stride + 1 : 0;
    const int64_t count = (high < width ? high : width) - low;
    for (int64_t line = 0; line < lines && count > 0; line++, from += width) {
        int64_t at = 0;
        bool inside = true;
        for (int32_t k = 0; k < n - 1; k++) {
            const int64_t y = place[k] * c->strides[k] + shift[k];
            inside = inside && y >= 0 && y < dims[k];
            at = (at + y) * dims[k + 1];
        }
        const float *v = from + low;
        float *to = plane + (inside ? at + first + low * stride : 0);
        if (stride == 1) {
#pragma omp simd
            for (int64_t i = 0; i < (inside ? count : 0); i++)
                to[i] += v[i];
        } else {
            for (int64_t i = 0; inside && i < count; i++)
                to[i * stride] += v[i];
        }
        for (int32_t k = n - 2; k >= 0 && ++place[k] == steps[k]; k--)
            place[k] = 0;
    }
}
CPU_DISPATCH(col2im_tap,
             (const grt_col2im *c, int64_t tap, const int64_t *dims, const float *from, float *plane),
             (c, tap, dims, from, plane))

/* Element i of the columns of one plane goes to the image from `at` on, unless it lies in the padding. */
static void col2im_add(const grt_col2im *c, grt_tensor *out, const int64_t *strides, int64_t at, int64_t i,
                       double value)
{
    int64_t tap = i / c->places, place = i % c->places;
    bool inside = true;
    for (int32_t k = c->spatial - 1; k >= 0; k--) {
        const int64_t y =
            place % c->steps[k] * c->strides[k] + tap % c->kernel[k] * c->dilations[k] - c->pads[k];
        inside = inside && y >= 0 && y < out->dims[k + 2];
        at += y * strides[k + 2];
        place /= c->steps[k];
        tap /= c->kernel[k];
    }
    if (inside)
        grt_element_put(out, at, grt_element_get(out, at) + value);
}

static void col2im_plane(const grt_col2im *c, const int64_t *dims, const float *from, float *plane)
{
    for (int64_t tap = 0; tap < c->taps && c->places > 0; tap++)
        col2im_tap(c, tap, dims, from + tap * c->places, plane);
}

/* The plane that begins at element `at`, from the columns that begin at `from`. */
static void col2im_widened(const grt_col2im *c, const grt_tensor *in, int64_t from, grt_tensor *out,
                           int64_t at, int64_t pixels, float *plane)
{
    const size_t size = grt_dtype_size(in->dtype);
    float *row = plane + pixels;
    memset(plane, 0, (size_t)pixels * sizeof(float));
    for (int64_t tap = 0; tap < c->taps && c->places > 0; tap++) {
        cpu_widen(in->dtype, cpu_at_const(in->data, from + tap * c->places, size), 0, c->places, row);
        col2im_tap(c, tap, out->dims + 2, row, plane);
    }
    cpu_narrow(out->dtype, plane, pixels, cpu_at(out->data, at, size), 0, (cpu_convert_options){0});
}

static grt_status run_col2im(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    grt_col2im c = *(const grt_col2im *)run->state;
    GRT_TRY(grt_col2im_fit(run->desc, in, run->in[2], out, &c));
    int64_t strides[GRT_MAX_RANK];
    grt_dims_strides(out->dims, out->rank, strides);
    if (grt_tensor_elements(out))
        memset(out->data, 0, grt_tensor_bytes(out));
    if (grt_tensor_elements(in) == 0)
        return GRT_OK;
    const int64_t planes = in->dims[0] * out->dims[1], columns = c.taps * c.places,
                  pixels = plane_pixels(out);
    const bool widened = col2im_is_widened(in) && c.spatial > 0,
               floats = in->dtype == GRT_DTYPE_FLOAT && c.spatial > 0;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (grt_tensor_elements(in) > CPU_GRAIN)
    for (int64_t plane = 0; plane < planes; plane++) {
        const int64_t at = plane * strides[1], from = plane * columns;
        if (widened)
            col2im_widened(&c, in, from, out, at, pixels,
                           (float *)run->workspace + (pixels + c.places) * cpu_thread());
        else if (floats)
            col2im_plane(&c, out->dims + 2, (const float *)in->data + from, (float *)out->data + at);
        else
            for (int64_t i = 0; i < columns; i++)
                col2im_add(&c, out, strides, at, i, grt_element_get(in, from + i));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Col2Im",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .create = create_col2im,
     .destroy = free,
     .reshape = reshape_col2im,
     .run = run_col2im},
};
CPU_KERNELS(col2im, rows);
