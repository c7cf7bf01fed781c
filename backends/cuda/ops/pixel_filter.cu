/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::PixelFilter. With channels last a thread has a vector of a group's channels of one pixel; else one
 * result. */
#include "backends/cuda/number.cuh"

extern "C" {
#include "backends/shared/pixel_filter.h"
#include "backends/shared/window.h"
}

#include <stdlib.h>

namespace
{

enum { FILTER_THREADS = 256 };

struct pixel_filter {
    int channels, groups, each, taps, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    uint32_t n; /* threads with work */
};

template <class T, int V> struct alignas(V * sizeof(T)) filter_channels {
    T v[V];
};

template <class T, int V>
__global__ void __launch_bounds__(FILTER_THREADS)
    filter_pixels(const __grid_constant__ pixel_filter f, const filter_channels<T, V> *x, const T *w,
                  filter_channels<T, V> *y)
{
    using W = typename cuda_wide<T>::type;
    const uint32_t i = blockIdx.x * FILTER_THREADS + threadIdx.x;
    if (i >= f.n)
        return;
    const int vectors = f.channels / V;
    const uint32_t pixel = i / vectors, line = pixel / f.out[1];
    const int vector = (int)(i - pixel * vectors), column = (int)(pixel - line * f.out[1]),
              row = (int)(line % f.out[0]), group = vector * V / f.each;
    const T *weights = w + ((size_t)pixel * f.groups + group) * f.taps;
    const filter_channels<T, V> *image = x + (size_t)(line / f.out[0]) * f.in[0] * f.in[1] * vectors + vector;
    W sum[V] = {};
    for (int a = 0; a < f.kernel[0]; a++) {
        const int down = row * f.stride[0] - f.begin[0] + a * f.dilation[0];
        if (down < 0 || down >= f.in[0])
            continue;
        const int left = column * f.stride[1] - f.begin[1];
#pragma unroll 4
        for (int b = 0; b < f.kernel[1]; b++) {
            const int at = left + b * f.dilation[1];
            if (at < 0 || at >= f.in[1])
                continue;
            const filter_channels<T, V> pack = image[(size_t)(down * f.in[1] + at) * vectors];
            const W weight = cuda_widen(weights[a * f.kernel[1] + b]);
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] += weight * (W)cuda_widen(pack.v[k]);
        }
    }
    filter_channels<T, V> result;
#pragma unroll
    for (int k = 0; k < V; k++)
        result.v[k] = cuda_narrow<T, W>(sum[k]);
    y[i] = result;
}

/* Channels first. */
template <class T>
__global__ void __launch_bounds__(FILTER_THREADS)
    filter_planes(const __grid_constant__ pixel_filter f, const T *x, const T *w, T *y)
{
    using W = typename cuda_wide<T>::type;
    const uint32_t i = blockIdx.x * FILTER_THREADS + threadIdx.x;
    if (i >= f.n)
        return;
    const int out = f.out[0] * f.out[1], in = f.in[0] * f.in[1];
    const uint32_t plane = i / out;
    const int pixel = (int)(i - plane * out), row = pixel / f.out[1], column = pixel - row * f.out[1],
              channel = (int)(plane % f.channels);
    const T *weights =
        w + ((size_t)(plane / f.channels) * f.groups + channel / f.each) * f.taps * out + pixel;
    const T *from = x + (size_t)plane * in;
    W sum = 0;
    for (int a = 0; a < f.kernel[0]; a++) {
        const int down = row * f.stride[0] - f.begin[0] + a * f.dilation[0];
        for (int b = 0; b < f.kernel[1]; b++) {
            const int at = column * f.stride[1] - f.begin[1] + b * f.dilation[1];
            if (down >= 0 && down < f.in[0] && at >= 0 && at < f.in[1])
                sum += (W)cuda_widen(from[down * f.in[1] + at]) *
                       (W)cuda_widen(weights[(size_t)(a * f.kernel[1] + b) * out]);
        }
    }
    y[i] = cuda_narrow<T, W>(sum);
}

unsigned filter_blocks(const pixel_filter &f)
{
    return (f.n + FILTER_THREADS - 1) / FILTER_THREADS;
}

/* False: channels or pointers are no whole vectors. */
template <class T, int V> bool filter_by_vectors(pixel_filter f, const grt_run *r)
{
    typedef filter_channels<T, V> pack;
    if (f.each % V || ((uintptr_t)r->in[0]->data | (uintptr_t)r->out[0]->data) % sizeof(pack))
        return false;
    f.n /= V;
    filter_pixels<T, V><<<filter_blocks(f), FILTER_THREADS, 0, (cudaStream_t)r->stream>>>(
        f, (const pack *)r->in[0]->data, (const T *)r->in[1]->data, (pack *)r->out[0]->data);
    return true;
}

template <class T> void filter_launch(const pixel_filter &f, bool last, const grt_run *r)
{
    enum { MOST = 16 / sizeof(T) };
    if (!last)
        filter_planes<T><<<filter_blocks(f), FILTER_THREADS, 0, (cudaStream_t)r->stream>>>(
            f, (const T *)r->in[0]->data, (const T *)r->in[1]->data, (T *)r->out[0]->data);
    else if (!filter_by_vectors<T, MOST>(f, r) && !filter_by_vectors<T, 2>(f, r))
        filter_by_vectors<T, 1>(f, r);
}

grt_status check_filter_window(const grt_reshape *r)
{
    const int32_t at = grt_channels_last(r->desc) ? 1 : 2;
    cpu_window w;
    cpu_window_read(r->desc, 2, r->in[0]->dims + at, r->out[0]->dims + at, nullptr, false, &w);
    return cpu_window_is_small(&w)
               ? GRT_OK
               : grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                             "windows and padding of more than 2^29 are not supported by the CUDA backend");
}

/* Sizes of what memory holds fit in 31 bits as numbers. */
grt_status cuda_pixel_filter_reshape(grt_reshape *r)
{
    const grt_tensor *const all[] = {r->in[0], r->in[1], r->out[0]};
    for (const grt_tensor *t : all)
        if (grt_tensor_elements(t) >= INT32_MAX) {
            char found[GRT_TYPE_TEXT_SIZE];
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                               "a tensor is %s; the CUDA backend supports fewer than 2^31 elements",
                               grt_tensor_text(t, found));
        }
    GRT_TRY(check_filter_window(r));
    return grt_pixel_filter_reshape(r);
}

grt_status cuda_pixel_filter_run(const grt_run *r)
{
    const grt_pixel_filter *from = (const grt_pixel_filter *)r->shape;
    if (from->n == 0)
        return GRT_OK;
    pixel_filter f = {(int)from->channels, (int)from->groups, (int)(from->channels / from->groups),
                      (int)(from->kernel[0] * from->kernel[1])};
    for (int k = 0; k < 2; k++) {
        f.in[k] = (int)from->in[k];
        f.out[k] = (int)from->out[k];
        f.kernel[k] = (int)from->kernel[k];
        f.stride[k] = (int)from->stride[k];
        f.dilation[k] = (int)from->dilation[k];
        f.begin[k] = (int)from->begin[k];
    }
    f.n = (uint32_t)from->n;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, filter_launch<T>(f, from->last, r));
    CUDA_LAUNCHED();
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "PixelFilter",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .reshape = cuda_pixel_filter_reshape,
     .release_shape = free,
     .run = cuda_pixel_filter_run},
};

} // namespace
CUDA_KERNELS(pixel_filter, rows);
