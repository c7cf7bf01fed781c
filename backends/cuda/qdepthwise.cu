/* SPDX-License-Identifier: Apache-2.0 */
/* See qdepthwise.h. A thread has some channels of neighbouring pixels of a line, so that weights are read
 * once. */
#include "backends/cuda/qdepthwise.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/walk.h"

namespace
{

enum { PIXELS = 4 };

struct arrays {
    const uint8_t *x, *residual;
    const int16_t *w;
    void *y;
    cuda_qfinish finish;
};

/* V channels side by side. */
template <int V> __device__ __forceinline__ uint32_t load_some(const uint8_t *from)
{
    if constexpr (V == 4)
        return *(const uint32_t *)from;
    else
        return *from;
}

template <int V>
__device__ __forceinline__ void store_some(const cuda_qdepthwise &d, const arrays &a, const cuda_qhead &h,
                                           int64_t at, int channel, const int32_t *sum)
{
    float v[V];
    uint32_t word = 0;
    const cuda_qresidual rule(h, d.residual, d.sum);
    const cuda_qlimits limits(h, d.sum);
    const uint32_t residual = d.residual == GRT_DTYPE_NONE ? 0 : load_some<V>(a.residual + at) ^ rule.flip;
#pragma unroll
    for (int k = 0; k < V; k++) {
        const int c = channel + k;
        v[k] = cuda_qscaled(sum[k] - a.finish.offset[c], a.finish.scale[c], a.finish.bias[c]);
        if (d.act.kind != GRT_ACT_NONE)
            v[k] = cuda_activate<float>(d.act, v[k]) / h.y_unit;
        if (d.residual != GRT_DTYPE_NONE)
            v[k] = rule.add(h, v[k], residual, k);
        if (d.y != GRT_DTYPE_UINT8 && d.y != GRT_DTYPE_INT8)
            cuda_store<float>(a.y, d.y, at + k, v[k]);
        else
            word |= (limits.byte(v[k]) & 0xFF) << (8 * k);
    }
    if (d.y != GRT_DTYPE_UINT8 && d.y != GRT_DTYPE_INT8)
        return;
    if constexpr (V == 4)
        *(uint32_t *)((uint8_t *)a.y + at) = word;
    else
        ((uint8_t *)a.y)[at] = (uint8_t)word;
}

template <int V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    sum_windows(const __grid_constant__ cuda_qdepthwise d, const __grid_constant__ arrays a, int64_t n)
{
    const cuda_qhead h = *a.finish.head;
    const int groups = d.channels / V, strips = (d.out[1] + PIXELS - 1) / PIXELS;
    CUDA_ITEMS (i, n) {
        const int channel = (int)(i % groups) * V, across = (int)(i / groups % strips) * PIXELS,
                  down = (int)(i / groups / strips % d.out[0]), image = (int)(i / groups / strips / d.out[0]);
        const uint8_t *x = a.x + image * d.x_image + channel * d.x_channel;
        int32_t sum[PIXELS][V] = {};
        for (int r = 0; r < d.kernel[0]; r++) {
            const int row = down * d.stride[0] - d.begin[0] + r * d.dilation[0];
            if ((unsigned)row >= (unsigned)d.in[0])
                continue;
            for (int s = 0; s < d.kernel[1]; s++) {
                int32_t w[V];
#pragma unroll
                for (int k = 0; k < V; k++)
                    w[k] = a.w[(int64_t)(r * d.kernel[1] + s) * d.channels + channel + k];
#pragma unroll
                for (int p = 0; p < PIXELS; p++) {
                    const int column = (across + p) * d.stride[1] - d.begin[1] + s * d.dilation[1];
                    if ((unsigned)column >= (unsigned)d.in[1])
                        continue;
                    const uint32_t bytes = load_some<V>(x + ((int64_t)row * d.in[1] + column) * d.x_pixel);
#pragma unroll
                    for (int k = 0; k < V; k++)
                        sum[p][k] += (cuda_qwhole(bytes, k, d.x_signed) - h.x_zero) * w[k];
                }
            }
        }
#pragma unroll
        for (int p = 0; p < PIXELS; p++)
            if (across + p < d.out[1])
                store_some<V>(d, a, h,
                              image * d.y_image + ((int64_t)down * d.out[1] + across + p) * d.y_pixel +
                                  channel * d.y_channel,
                              channel, sum[p]);
    }
}

} // namespace

grt_status cuda_qdepthwise_enqueue(const cuda_qdepthwise *d, const void *x, const int16_t *w,
                                   const void *residual, const cuda_qfinish *finish, void *y,
                                   cudaStream_t stream)
{
    const arrays a = {(const uint8_t *)x, (const uint8_t *)residual, w, y, *finish};
    const int64_t lines = (int64_t)d->images * d->out[0] * ((d->out[1] + PIXELS - 1) / PIXELS);
    const uintptr_t together = (uintptr_t)x | (uintptr_t)y | (uintptr_t)residual | (uintptr_t)d->channels;
    if (together % 4 == 0 && d->x_channel == 1 && d->y_channel == 1)
        sum_windows<4>
            <<<cuda_grid(lines * d->channels / 4), CUDA_BLOCK, 0, stream>>>(*d, a, lines * d->channels / 4);
    else
        sum_windows<1><<<cuda_grid(lines * d->channels), CUDA_BLOCK, 0, stream>>>(*d, a, lines * d->channels);
    CUDA_LAUNCHED();
    return GRT_OK;
}
