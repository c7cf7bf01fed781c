/* SPDX-License-Identifier: Apache-2.0 */
/* LpPool, MaxUnpool, DeformConv: a thread per output element gathers what makes it. */
#include "backends/cuda/each.cuh"
#include "backends/shared/window.h"
#include "src/base/checked.h"

namespace
{

/* ---- LpPool ---- */

grt_status reshape_lp(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0];
    cpu_window *w;
    GRT_TRY(cuda_state(&w));
    cpu_window_read(r->desc, x->rank - 2, x->dims + 2, y->dims + 2, NULL, false, w);
    r->shape = w;
    return GRT_OK;
}

grt_status create_lp(const grt_kernel_node *node, void **out_state)
{
    double *p;
    GRT_TRY(cuda_state(&p));
    *p = (double)grt_attr_int(node->desc, "p", 2);
    *out_state = p;
    return GRT_OK;
}

grt_status run_lp(const grt_run *r)
{
    const cpu_window w = *(const cpu_window *)r->shape;
    const double p = *(const double *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        double sum = 0;
        int64_t plane = i / w.out_pixels;
        for (int64_t tap = 0; tap < w.taps; tap++) {
            int64_t rest = tap, place = i % w.out_pixels, at = 0, scale = 1;
            bool inside = true;
            for (int32_t k = w.spatial - 1; k >= 0 && inside; k--) {
                int64_t x = place % w.out[k] * w.stride[k] - w.begin[k] + rest % w.kernel[k] * w.dilation[k];
                place /= w.out[k];
                rest /= w.kernel[k];
                inside = x >= 0 && x < w.in[k];
                at += x * scale;
                scale *= w.in[k];
            }
            double v = inside ? fabs(in.get(plane * w.in_pixels + at)) : 0;
            sum += p == 2 ? v * v : p == 1 ? v : inside ? pow(v, p) : 0;
        }
        out.put(i, p == 2 ? sqrt(sum) : pow(sum, 1 / p));
    });
}

/* ---- MaxUnpool ---- */

/* Indices count elements of the shape that kernel, strides and pads give; a larger output_shape pads that. */

int64_t entry(const int64_t *values, size_t n, int32_t i, int64_t fallback)
{
    return i >= 0 && (size_t)i < n ? values[i] : fallback;
}

grt_status reshape_unpool(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *index = r->in[1], *y = r->out[0];
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = grt_attr_ints(r->desc, "kernel_shape", &n_kernel);
    const int64_t *strides = grt_attr_ints(r->desc, "strides", &n_strides);
    const int64_t *pads = grt_attr_ints(r->desc, "pads", &n_pads);
    cuda_dims d = {x->rank, {}};
    for (int32_t i = 0; i < x->rank; i++) {
        int32_t s = i - 2;
        int64_t edge = entry(kernel, n_kernel, s, 1) - entry(pads, n_pads, s, 0) -
                       entry(pads, n_pads, s + x->rank - 2, 0);
        d[i] = x->dims[i];
        if (i >= 2 && (!grt_mul_i64(x->dims[i] - 1, entry(strides, n_strides, s, 1), &d[i]) ||
                       !grt_add_i64(d[i], edge, &d[i])))
            d[i] = -1; /* refused below */
    }
    if (x->rank < 3 || y->rank != x->rank || grt_dims_product(d.d, 0, d.rank) < 0 ||
        !grt_dims_equal(x->dims, x->rank, index->dims, index->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input and indices must have one shape, with spatial dims that the window fits");
    cuda_dims *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = d;
    r->shape = kept;
    return GRT_OK;
}

/* An index outside the output is reported and skipped. */
grt_status run_unpool(const grt_run *r)
{
    const cuda_dims d = *(const cuda_dims *)r->shape, to = cuda_dims_of(r->out[0]);
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int64_t *index = (const int64_t *)r->in[1]->data, elements = grt_dims_product(d.d, 0, d.rank);
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "I", &watch));
    if (grt_tensor_bytes(r->out[0]))
        CUDA_TRY(cudaMemsetAsync(out.data, 0, grt_tensor_bytes(r->out[0]), cuda_stream(r)));
    return cuda_each(r, grt_tensor_elements(r->in[0]), [=] __device__(int64_t i) {
        int64_t rest = index[i], at = 0, stride = 1;
        bool inside = rest >= 0 && rest < elements;
        for (int32_t k = d.rank - 1; inside && k >= 0; k--) {
            at += rest % d[k] * stride;
            inside = rest % d[k] < to[k];
            rest /= d[k];
            stride *= to[k];
        }
        if (inside)
            out.put(at, in.get(i));
        else
            cuda_tell(watch, index[i], i, 0, elements - 1);
    });
}

/* ---- DeformConv ---- */

enum { X, W, OFFSET, BIAS, MASK };

struct deform_shape {
    cpu_window w;
    int64_t groups, offset_groups, channels, out_channels;
};

bool supports_deform(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[X].rank == 4 || node->in[X].rank < 0)
        return true;
    if (why)
        grt_text_add(why, "the input has rank %d; images with two spatial dims are supported",
                     node->in[X].rank);
    return false;
}

bool dims_are(const grt_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[] = {a, b, c, d};
    return !t || grt_dims_equal(t->dims, t->rank, want, 4);
}

grt_status reshape_deform(grt_reshape *r)
{
    const grt_tensor *x = r->in[X], *w = r->in[W], *y = r->out[0];
    const grt_tensor *bias = r->n_in > BIAS ? r->in[BIAS] : NULL, *mask = r->n_in > MASK ? r->in[MASK] : NULL;
    int64_t groups = grt_attr_int(r->desc, "group", 1), offsets = grt_attr_int(r->desc, "offset_group", 1);
    bool fits = x->rank == 4 && w->rank == 4 && y->rank == 4 && groups > 0 && offsets > 0 &&
                x->dims[1] == w->dims[1] * groups && w->dims[0] % groups == 0 && x->dims[1] % offsets == 0;
    if (fits) {
        int64_t taps = w->dims[2] * w->dims[3];
        fits = dims_are(r->in[OFFSET], x->dims[0], offsets * taps * 2, y->dims[2], y->dims[3]) &&
               dims_are(mask, x->dims[0], offsets * taps, y->dims[2], y->dims[3]) &&
               (!bias || grt_tensor_elements(bias) == w->dims[0]);
    }
    if (!fits)
        return grt_fail_op(
            r->desc, GRT_STATUS_INVALID_ARGUMENT,
            "input, weight, offset, bias and mask do not fit together; see DeformConv's definition");
    deform_shape *sh;
    GRT_TRY(cuda_state(&sh));
    cpu_window_read(r->desc, 2, x->dims + 2, y->dims + 2, w->dims + 2, false, &sh->w);
    sh->groups = groups;
    sh->offset_groups = offsets;
    sh->channels = x->dims[1];
    sh->out_channels = w->dims[0];
    r->shape = sh;
    return GRT_OK;
}

__device__ double image_pixel(const cpu_window &w, const cuda_any &x, int64_t plane, int64_t row,
                              int64_t column)
{
    bool inside = row >= 0 && row < w.in[0] && column >= 0 && column < w.in[1];
    return inside ? x.get(plane * w.in_pixels + row * w.in[1] + column) : 0;
}

__device__ double image_at(const cpu_window &w, const cuda_any &x, int64_t plane, double row, double column)
{
    if (!(row > -1 && row < (double)w.in[0] && column > -1 && column < (double)w.in[1]))
        return 0; /* NaN too */
    int64_t a = (int64_t)floor(row), c = (int64_t)floor(column);
    double down = row - (double)a, right = column - (double)c;
    double upper = (1 - right) * image_pixel(w, x, plane, a, c) + right * image_pixel(w, x, plane, a, c + 1);
    double lower =
        (1 - right) * image_pixel(w, x, plane, a + 1, c) + right * image_pixel(w, x, plane, a + 1, c + 1);
    return (1 - down) * upper + down * lower;
}

grt_status run_deform(const grt_run *r)
{
    const deform_shape s = *(const deform_shape *)r->shape;
    const cuda_any x = cuda_any_in(r, X), weight = cuda_any_in(r, W), offset = cuda_any_in(r, OFFSET),
                   bias = cuda_any_in(r, BIAS), mask = cuda_any_in(r, MASK), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cpu_window &w = s.w;
        int64_t at = i % w.out_pixels, o = i / w.out_pixels % s.out_channels,
                batch = i / w.out_pixels / s.out_channels;
        int64_t group_in = s.channels / s.groups, first = o / (s.out_channels / s.groups) * group_in;
        double sum = bias ? bias.get(o) : 0;
        for (int64_t c = 0; c < group_in; c++)
            for (int64_t tap = 0; tap < w.taps; tap++) {
                int64_t g = (first + c) / (s.channels / s.offset_groups),
                        cell = (batch * s.offset_groups + g) * w.taps + tap;
                double row =
                    (double)(at / w.out[1] * w.stride[0] - w.begin[0] + tap / w.kernel[1] * w.dilation[0]);
                double column =
                    (double)(at % w.out[1] * w.stride[1] - w.begin[1] + tap % w.kernel[1] * w.dilation[1]);
                row += offset.get(cell * 2 * w.out_pixels + at);
                column += offset.get((cell * 2 + 1) * w.out_pixels + at);
                double factor = mask ? mask.get(cell * w.out_pixels + at) : 1;
                sum += factor * image_at(w, x, batch * s.channels + first + c, row, column) *
                       weight.get((o * group_in + c) * w.taps + tap);
            }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LpPool",
     .types = {GRT_SET_FLOATS},
     .create = create_lp,
     .destroy = free,
     .reshape = reshape_lp,
     .release_shape = free,
     .run = run_lp},
    {.domain = "",
     .op = "MaxUnpool",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .reshape = reshape_unpool,
     .release_shape = free,
     .run = run_unpool},
    {.domain = "",
     .op = "DeformConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = supports_deform,
     .reshape = reshape_deform,
     .release_shape = free,
     .run = run_deform},
};

} // namespace
CUDA_KERNELS(sampling, rows);
