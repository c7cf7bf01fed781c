/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: columns of windows are added into the images that they came from. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/threads.h"
#include "backends/shared/col2im.h"
#include "src/base/element.h"

#include <string.h>

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
    const int64_t planes = in->dims[0] * out->dims[1], columns = c.taps * c.places;
    const bool floats = in->dtype == GRT_DTYPE_FLOAT && c.spatial > 0;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (grt_tensor_elements(in) > CPU_GRAIN)
    for (int64_t plane = 0; plane < planes; plane++) {
        const int64_t at = plane * strides[1], from = plane * columns;
        for (int64_t tap = 0; floats && tap < c.taps && c.places > 0; tap++)
            col2im_tap(&c, tap, out->dims + 2, (const float *)in->data + from + tap * c.places,
                       (float *)out->data + at);
        for (int64_t i = 0; !floats && i < columns; i++)
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
     .run = run_col2im},
};
CPU_KERNELS(col2im, rows);
