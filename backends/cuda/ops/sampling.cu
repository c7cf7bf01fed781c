/* SPDX-License-Identifier: Apache-2.0 */
/* LpPool, MaxUnpool, DeformConv: a thread per output element gathers what makes it. */
#include "backends/cuda/each.cuh"
#include "backends/shared/sampling.h"

namespace
{

grt_status run_lp(const grt_run *r)
{
    const cpu_window w = ((const grt_lp_pool *)r->shape)->w;
    const double p = ((const grt_lp_pool *)r->shape)->p;
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

/* An index outside the output is reported and skipped. */
grt_status run_unpool(const grt_run *r)
{
    const grt_unpool s = *(const grt_unpool *)r->shape;
    const cuda_dims to = cuda_dims_of(r->out[0]);
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int64_t *index = (const int64_t *)r->in[1]->data;
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "I", &watch));
    if (grt_tensor_bytes(r->out[0]))
        CUDA_TRY(cudaMemsetAsync(out.data, 0, grt_tensor_bytes(r->out[0]), cuda_stream(r)));
    return cuda_each(r, grt_tensor_elements(r->in[0]), [=] __device__(int64_t i) {
        const int64_t at = grt_unpool_place(&s, index[i], to.d);
        if (at >= 0)
            out.put(at, in.get(i));
        else
            cuda_tell(watch, index[i], i, 0, s.elements - 1);
    });
}

grt_status run_deform(const grt_run *r)
{
    const grt_deform s = *(const grt_deform *)r->shape;
    const cuda_any x = cuda_any_in(r, GRT_DEFORM_X), weight = cuda_any_in(r, GRT_DEFORM_W),
                   offset = cuda_any_in(r, GRT_DEFORM_OFFSET), bias = cuda_any_in(r, GRT_DEFORM_BIAS),
                   mask = cuda_any_in(r, GRT_DEFORM_MASK), out = cuda_any_out(r, 0);
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
                const double row = grt_deform_row(&w, at, tap) + offset.get(cell * 2 * w.out_pixels + at);
                const double column =
                    grt_deform_column(&w, at, tap) + offset.get((cell * 2 + 1) * w.out_pixels + at);
                double factor = mask ? mask.get(cell * w.out_pixels + at) : 1;
                sum += factor *
                       grt_deform_sample(&w, x.dtype, x.data, batch * s.channels + first + c, row, column) *
                       weight.get((o * group_in + c) * w.taps + tap);
            }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LpPool",
     .types = {GRT_SET_FLOATS},
     .reshape = grt_lp_pool_reshape,
     .release_shape = free,
     .run = run_lp},
    {.domain = "",
     .op = "MaxUnpool",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .reshape = grt_unpool_reshape,
     .release_shape = free,
     .run = run_unpool},
    {.domain = "",
     .op = "DeformConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = grt_deform_supports,
     .reshape = grt_deform_reshape,
     .release_shape = free,
     .run = run_deform},
};

} // namespace
CUDA_KERNELS(sampling, rows);
