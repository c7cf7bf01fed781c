/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::ConvTranspose: channels last, which plans made for other devices hold. A thread per output element
 * gathers what falls on it. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/window.h"

namespace
{

struct deconv_shape {
    cpu_window w;
    int64_t batch, groups, in_channels, out_channels; /* channels: per group */
};

bool supports(const grt_kernel_node *node, grt_text *why)
{
    bool same = node->in[1].dtype == node->in[0].dtype &&
                (!grt_node_has(node, 2) || node->in[2].dtype == node->in[0].dtype);
    if (same && grt_channels_last(node->desc))
        return true;
    if (why)
        grt_text_add(why, "channels last, with weight and bias of the input's type");
    return false;
}

grt_status reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0], *bias = r->n_in > 2 ? r->in[2] : NULL;
    int64_t groups = grt_attr_int(r->desc, "group", 1);
    int32_t last = x->rank - 1;
    if (x->rank < 3 || w->rank != x->rank || y->rank != x->rank || groups < 1 || w->dims[0] % groups ||
        x->dims[last] != w->dims[0] || y->dims[last] != w->dims[1] * groups ||
        (bias && grt_tensor_elements(bias) != y->dims[last]))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input, weight and bias do not fit together");
    deconv_shape *s;
    GRT_TRY(cuda_state(&s));
    cpu_window_read(r->desc, x->rank - 2, x->dims + 1, y->dims + 1, w->dims + 2, true, &s->w);
    s->batch = x->dims[0];
    s->groups = groups;
    s->in_channels = w->dims[0] / groups;
    s->out_channels = w->dims[1];
    r->shape = s;
    return GRT_OK;
}

template <class T> grt_status run_typed(const grt_run *r)
{
    typedef typename cuda_wide<T>::type F;
    const deconv_shape s = *(const deconv_shape *)r->shape;
    const T *x = (const T *)r->in[0]->data, *weight = (const T *)r->in[1]->data;
    const T *bias = r->n_in > 2 && r->in[2] ? (const T *)r->in[2]->data : NULL;
    T *y = (T *)r->out[0]->data;
    const int64_t channels = s.groups * s.out_channels, inputs = s.groups * s.in_channels;
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cpu_window &w = s.w;
        int64_t channel = i % channels, place = i / channels % w.out_pixels,
                batch = i / channels / w.out_pixels;
        int64_t group = channel / s.out_channels, first = group * s.in_channels;
        F sum = bias ? (F)cuda_widen(bias[channel]) : (F)0;
        for (int64_t tap = 0; tap < w.taps; tap++) {
            int64_t rest = tap, left = place, from = 0, scale = 1;
            bool hit = true;
            for (int32_t k = w.spatial - 1; k >= 0 && hit; k--) {
                int64_t at = left % w.out[k] + w.begin[k] - rest % w.kernel[k] * w.dilation[k];
                left /= w.out[k];
                rest /= w.kernel[k];
                hit = at >= 0 && at % w.stride[k] == 0 && at / w.stride[k] < w.in[k];
                from += at / w.stride[k] * scale;
                scale *= w.in[k];
            }
            if (!hit)
                continue;
            const T *pixel = x + (batch * w.in_pixels + from) * inputs + first;
            const T *taps = weight + (first * s.out_channels + channel % s.out_channels) * w.taps + tap;
            for (int64_t c = 0; c < s.in_channels; c++)
                sum += (F)cuda_widen(pixel[c]) * (F)cuda_widen(taps[c * s.out_channels * w.taps]);
        }
        y[i] = cuda_narrow<T, F>(sum);
    });
}

grt_status run(const grt_run *r)
{
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, return run_typed<T>(r))
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "ConvTranspose",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = supports,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
};

} // namespace
CUDA_KERNELS(conv_transpose_last, rows);
