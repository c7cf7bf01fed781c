/* SPDX-License-Identifier: Apache-2.0 */
/* See depthwise.h. A thread has 16 bytes of channels of one pixel, or of WIDE pixels in a row, which share
 * what they read. */
#include "backends/cuda/depthwise.h"

#include "backends/cuda/activate.cuh"

namespace
{

enum { THREADS = 128, WIDE = 4 };

struct plane {
    int vectors, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2], strips;
    uint32_t n; /* threads */
    grt_act act;
};

/* KERNEL, STRIDE: of the window, where they are known (then the dilation is 1); else 0. */
template <class T, int KERNEL, int STRIDE, int PIXELS>
__global__ void __launch_bounds__(THREADS)
    convolve(const __grid_constant__ plane s, const cuda_vector<T> *x, const cuda_vector<T> *w,
             const cuda_vector<T> *bias, const cuda_vector<T> *residual, cuda_vector<T> *y)
{
    using V = cuda_vector<T>;
    enum { N = V::N };
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const uint32_t vector = i % s.vectors, rest = i / s.vectors, strip = rest % s.strips,
                   line = rest / s.strips;
    const int row = (int)(line % s.out[0]) * s.stride[0] - s.begin[0];
    const int first = (int)strip * PIXELS * (STRIDE ? STRIDE : s.stride[1]) - s.begin[1];
    const V *image = x + (size_t)(line / s.out[0]) * s.in[0] * s.in[1] * s.vectors + vector;
    float sum[PIXELS][N] = {};
    if (bias) {
        const V b = bias[vector];
#pragma unroll
        for (int k = 0; k < PIXELS; k++)
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[k][j] = cuda_widen(b.v[j]);
    }
    for (int a = 0; a < (KERNEL ? KERNEL : s.kernel[0]); a++) {
        const int p = row + a * s.dilation[0];
        if (p < 0 || p >= s.in[0])
            continue;
        const V *from = image + (size_t)p * s.in[1] * s.vectors;
        if constexpr (PIXELS > 1) {
            V filter[KERNEL];
#pragma unroll
            for (int b = 0; b < KERNEL; b++)
                filter[b] = w[(a * KERNEL + b) * s.vectors + vector];
#pragma unroll
            for (int c = 0; c < (PIXELS - 1) * STRIDE + KERNEL; c++) {
                const int q = first + c;
                if (q < 0 || q >= s.in[1])
                    continue;
                const V pack = from[(size_t)q * s.vectors];
#pragma unroll
                for (int k = 0; k < PIXELS; k++) {
                    const int b = c - k * STRIDE;
                    if (b < 0 || b >= KERNEL)
                        continue;
#pragma unroll
                    for (int j = 0; j < N; j++)
                        sum[k][j] += cuda_widen(pack.v[j]) * cuda_widen(filter[b].v[j]);
                }
            }
        } else {
            for (int b = 0; b < (KERNEL ? KERNEL : s.kernel[1]); b++) {
                const int q = first + b * s.dilation[1];
                if (q < 0 || q >= s.in[1])
                    continue;
                const V pack = from[(size_t)q * s.vectors],
                        filter = w[(a * (KERNEL ? KERNEL : s.kernel[1]) + b) * s.vectors + vector];
#pragma unroll
                for (int j = 0; j < N; j++)
                    sum[0][j] += cuda_widen(pack.v[j]) * cuda_widen(filter.v[j]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
        const int column = (int)strip * PIXELS + k;
        if (column >= s.out[1])
            continue;
        const size_t at = ((size_t)line * s.out[1] + column) * s.vectors + vector;
        V result, more = {};
        if (residual)
            more = residual[at];
#pragma unroll
        for (int j = 0; j < N; j++)
            result.v[j] =
                cuda_narrow<T, float>(cuda_activate<float>(s.act, sum[k][j] + cuda_widen(more.v[j])));
        y[at] = result;
    }
}

template <class T> int vectors_of(const cuda_depthwise *d)
{
    return (int)(d->channels / cuda_vector<T>::N);
}

template <class T>
void launch(const cuda_depthwise *d, const void *x, const void *w, const void *bias, const void *residual,
            void *y, cudaStream_t stream)
{
    enum { WORTH_SHARING = 1 << 18 }; /* threads; with fewer, each pixel has its own */
    using V = cuda_vector<T>;
    plane s = {};
    s.vectors = vectors_of<T>(d);
    for (int k = 0; k < 2; k++) {
        s.in[k] = (int)d->in[k];
        s.out[k] = (int)d->out[k];
        s.kernel[k] = (int)d->kernel[k];
        s.stride[k] = (int)d->stride[k];
        s.dilation[k] = (int)d->dilation[k];
        s.begin[k] = (int)d->begin[k];
    }
    s.act = d->act;
    const bool threes = s.kernel[0] == 3 && s.kernel[1] == 3 && s.dilation[0] == 1 && s.dilation[1] == 1;
    const int64_t pixels = d->batch * d->out[0] * d->out[1];
    const bool share =
        threes && (s.stride[1] == 1 || s.stride[1] == 2) && pixels * s.vectors >= WORTH_SHARING;
    s.strips = share ? (s.out[1] + WIDE - 1) / WIDE : s.out[1];
    s.n = (uint32_t)(d->batch * d->out[0] * s.strips * s.vectors);
    const unsigned blocks = (s.n + THREADS - 1) / THREADS;
    const V *from = (const V *)x, *filters = (const V *)w, *b = (const V *)bias, *r = (const V *)residual;
    if (share && s.stride[1] == 1)
        convolve<T, 3, 1, WIDE><<<blocks, THREADS, 0, stream>>>(s, from, filters, b, r, (V *)y);
    else if (share)
        convolve<T, 3, 2, WIDE><<<blocks, THREADS, 0, stream>>>(s, from, filters, b, r, (V *)y);
    else if (threes)
        convolve<T, 3, 0, 1><<<blocks, THREADS, 0, stream>>>(s, from, filters, b, r, (V *)y);
    else
        convolve<T, 0, 0, 1><<<blocks, THREADS, 0, stream>>>(s, from, filters, b, r, (V *)y);
}

} // namespace

bool cuda_depthwise_fits(const cuda_depthwise *d)
{
    const int64_t n = 16 / (int64_t)grt_dtype_size(d->dtype), most = 1 << 24;
    if (d->dtype == GRT_DTYPE_DOUBLE || d->channels % n || d->channels <= 0 || d->batch <= 0)
        return false;
    for (int k = 0; k < 2; k++)
        if (d->in[k] <= 0 || d->out[k] <= 0 || d->in[k] > most || d->out[k] > most || d->kernel[k] > 1024 ||
            d->stride[k] > 64 || d->dilation[k] > 1024 || d->begin[k] > most || d->begin[k] < -most)
            return false;
    return d->out[0] * d->out[1] < INT32_MAX / (d->channels / n + 1) / d->batch;
}

bool cuda_depthwise_run(const cuda_depthwise *d, const void *x, const void *w, const void *bias,
                        const void *residual, void *y, cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(w) || !cuda_is_vector(bias) || !cuda_is_vector(residual) ||
        !cuda_is_vector(y))
        return false;
    if (d->dtype == GRT_DTYPE_FLOAT)
        launch<float>(d, x, w, bias, residual, y, stream);
    else if (d->dtype == GRT_DTYPE_FLOAT16)
        launch<__half>(d, x, w, bias, residual, y, stream);
    else
        launch<__nv_bfloat16>(d, x, w, bias, residual, y, stream);
    return true;
}
