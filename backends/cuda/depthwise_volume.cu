/* SPDX-License-Identifier: Apache-2.0 */
/* See depthwise_volume.h. A thread has a vector of channels, as wide as their number allows, of one result;
 * of windows three wide with stride 1, of four neighbours, which share what they read. */
#include "backends/cuda/depthwise_volume.h"

#include "backends/cuda/activate.cuh"
#include "src/base/checked.h"

namespace
{

enum { VOLUME_THREADS = 256, NEIGHBOURS = 4, THREE = 3 };

struct volume {
    int vectors; /* of a pixel's channels */
    int in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
    int groups; /* of neighbours in a line of results */
    uint32_t n; /* threads with work */
    grt_act act;
};

template <class T, int V> struct alignas(V * sizeof(T)) channels_of {
    T v[V];
};

template <class T, int V>
__device__ __forceinline__ void add_product(float *sum, const channels_of<T, V> &x,
                                            const channels_of<T, V> &w)
{
#pragma unroll
    for (int k = 0; k < V; k++)
        sum[k] += cuda_widen(x.v[k]) * cuda_widen(w.v[k]);
}

template <class T, int V>
__device__ __forceinline__ void finish(const volume &s, const float *sum, const channels_of<T, V> *residual,
                                       channels_of<T, V> *y)
{
    channels_of<T, V> more = {}, result;
    if (residual)
        more = *residual;
#pragma unroll
    for (int k = 0; k < V; k++)
        result.v[k] = cuda_narrow<T, float>(
            cuda_activate<float>(s.act, residual ? sum[k] + cuda_widen(more.v[k]) : sum[k]));
    *y = result;
}

/* P results side by side; of more than one, with THREE taps, stride 1 and no dilation along the line. */
template <class T, int V, int P>
__global__ void __launch_bounds__(VOLUME_THREADS)
    convolve_volume(const __grid_constant__ volume s, const channels_of<T, V> *x, const channels_of<T, V> *w,
                    const channels_of<T, V> *bias, const channels_of<T, V> *residual, channels_of<T, V> *y)
{
    const uint32_t i = blockIdx.x * VOLUME_THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const int vector = (int)(i % s.vectors);
    uint32_t rest = i / s.vectors;
    const int column = (int)(rest % s.groups) * P;
    rest /= s.groups;
    const uint32_t line = rest;
    const int row = (int)(rest % s.out[1]);
    rest /= s.out[1];
    const int plane = (int)(rest % s.out[0]), image = (int)(rest / s.out[0]);
    float sum[P][V] = {};
    if (bias) {
        const channels_of<T, V> start = bias[vector];
#pragma unroll
        for (int p = 0; p < P; p++)
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[p][k] = cuda_widen(start.v[k]);
    }
    for (int a = 0; a < s.kernel[0]; a++) {
        const int deep = plane * s.stride[0] - s.begin[0] + a * s.dilation[0];
        if (deep < 0 || deep >= s.in[0])
            continue;
        for (int b = 0; b < s.kernel[1]; b++) {
            const int high = row * s.stride[1] - s.begin[1] + b * s.dilation[1];
            if (high < 0 || high >= s.in[1])
                continue;
            const channels_of<T, V> *from =
                x + (size_t)((image * s.in[0] + deep) * s.in[1] + high) * s.in[2] * s.vectors + vector;
            const channels_of<T, V> *taps =
                w + (size_t)(a * s.kernel[1] + b) * s.kernel[2] * s.vectors + vector;
            if constexpr (P == 1) {
                for (int c = 0; c < s.kernel[2]; c++) {
                    const int at = column * s.stride[2] - s.begin[2] + c * s.dilation[2];
                    if (at >= 0 && at < s.in[2])
                        add_product<T, V>(sum[0], from[(size_t)at * s.vectors], taps[(size_t)c * s.vectors]);
                }
            } else {
                channels_of<T, V> tap[THREE];
#pragma unroll
                for (int c = 0; c < THREE; c++)
                    tap[c] = taps[(size_t)c * s.vectors];
#pragma unroll
                for (int c = 0; c < P + THREE - 1; c++) {
                    const int at = column - s.begin[2] + c;
                    if (at < 0 || at >= s.in[2])
                        continue;
                    const channels_of<T, V> pack = from[(size_t)at * s.vectors];
#pragma unroll
                    for (int p = 0; p < P; p++)
                        if (c - p >= 0 && c - p < THREE)
                            add_product<T, V>(sum[p], pack, tap[c - p]);
                }
            }
        }
    }
    const size_t at = ((size_t)line * s.out[2] + column) * s.vectors + vector;
#pragma unroll
    for (int p = 0; p < P; p++)
        if (column + p < s.out[2])
            finish<T, V>(s, sum[p], residual ? residual + at + (size_t)p * s.vectors : nullptr,
                         y + at + (size_t)p * s.vectors);
}

bool shares_reads(const cuda_conv_windows *c)
{
    return c->kernel[2] == THREE && c->stride[2] == 1 && c->dilation[2] == 1;
}

struct volume_pointers {
    const void *x, *w, *bias, *residual;
    void *y;
};

template <class T, int V>
bool volume_launch(const cuda_depthwise_volume *d, const volume_pointers &at, cudaStream_t stream)
{
    typedef channels_of<T, V> pack;
    const cuda_conv_windows *c = &d->windows;
    const uintptr_t bits =
        (uintptr_t)at.x | (uintptr_t)at.w | (uintptr_t)at.bias | (uintptr_t)at.residual | (uintptr_t)at.y;
    if (bits % sizeof(pack))
        return false;
    volume s = {(int)(d->channels / V)};
    for (int k = 0; k < 3; k++) {
        s.in[k] = (int)c->in[k];
        s.out[k] = (int)c->out[k];
        s.kernel[k] = (int)c->kernel[k];
        s.stride[k] = (int)c->stride[k];
        s.dilation[k] = (int)c->dilation[k];
        s.begin[k] = (int)c->begin[k];
    }
    s.act = d->act;
    const int side = shares_reads(c) ? NEIGHBOURS : 1;
    s.groups = (s.out[2] + side - 1) / side;
    s.n = (uint32_t)(d->batch * s.out[0] * s.out[1] * s.groups * s.vectors);
    auto kernel = side > 1 ? convolve_volume<T, V, NEIGHBOURS> : convolve_volume<T, V, 1>;
    kernel<<<(s.n + VOLUME_THREADS - 1) / VOLUME_THREADS, VOLUME_THREADS, 0, stream>>>(
        s, (const pack *)at.x, (const pack *)at.w, (const pack *)at.bias, (const pack *)at.residual,
        (pack *)at.y);
    return true;
}

template <class T>
bool volume_by_width(const cuda_depthwise_volume *d, const volume_pointers &at, cudaStream_t stream)
{
    enum { MOST = 16 / sizeof(T) };
    if (d->channels % MOST == 0)
        return volume_launch<T, MOST>(d, at, stream);
    if (d->channels % (MOST / 2) == 0)
        return volume_launch<T, MOST / 2>(d, at, stream);
    return d->channels % 2 == 0 ? volume_launch<T, 2>(d, at, stream) : volume_launch<T, 1>(d, at, stream);
}

} // namespace

bool cuda_depthwise_volume_fits(const cuda_depthwise_volume *d)
{
    const int64_t most = INT32_MAX / 2, side = 1 << 20;
    const cuda_conv_windows *c = &d->windows;
    int64_t in = d->batch, out = d->batch;
    for (int k = 0; k < 3; k++)
        if (c->in[k] < 1 || c->out[k] < 1 || c->kernel[k] > side || c->stride[k] > side ||
            c->dilation[k] > side || c->begin[k] > side || c->begin[k] < -side ||
            c->kernel[k] * c->dilation[k] > most || c->out[k] > most / c->stride[k] ||
            !grt_mul_i64(in, c->in[k], &in) || in > most || !grt_mul_i64(out, c->out[k], &out) || out > most)
            return false;
    return (d->dtype == GRT_DTYPE_FLOAT || d->dtype == GRT_DTYPE_FLOAT16 || d->dtype == GRT_DTYPE_BFLOAT16) &&
           d->batch > 0 && d->channels > 0 && grt_mul_i64(in, d->channels, &in) &&
           grt_mul_i64(out, d->channels, &out) && in <= most && out <= most;
}

bool cuda_depthwise_volume_run(const cuda_depthwise_volume *d, const void *x, const void *w, const void *bias,
                               const void *residual, void *y, cudaStream_t stream)
{
    const volume_pointers at = {x, w, bias, residual, y};
    if (d->dtype == GRT_DTYPE_FLOAT)
        return volume_by_width<float>(d, at, stream);
    if (d->dtype == GRT_DTYPE_FLOAT16)
        return volume_by_width<__half>(d, at, stream);
    return volume_by_width<__nv_bfloat16>(d, at, stream);
}
