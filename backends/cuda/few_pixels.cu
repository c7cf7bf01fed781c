/* SPDX-License-Identifier: Apache-2.0 */
/* See few_pixels.h. A warp has one output channel of a few pixels, so that it reads that channel's weights
 * once for them; lanes share the sum. */
#include "backends/cuda/few_pixels.h"

#include "backends/cuda/activate.cuh"

namespace
{

enum { WARPS = 4, AT_ONCE = 4, MOST_PIXELS = 64, MOST_MULTIPLICATIONS = 4 << 20 };

struct sizes {
    int pixels, channels, out_channels; /* channels: in units of what is read at once */
    grt_act act;
};

template <class T, int N> struct alignas(N * sizeof(T)) pack {
    T v[N];
};

/* N numbers are read at once; a warp has PIXELS pixels. */
template <class T, int N, int PIXELS>
__global__ void __launch_bounds__(WARPS * 32)
    cuda_few_pixels_multiply(const __grid_constant__ sizes s, const pack<T, N> *x, const pack<T, N> *w,
                             const T *bias, const T *residual, T *y)
{
    const int lane = threadIdx.x % 32, channel = blockIdx.x * WARPS + threadIdx.x / 32,
              first = blockIdx.y * PIXELS;
    if (channel >= s.out_channels)
        return;
    const pack<T, N> *weights = w + (size_t)channel * s.channels, *from[PIXELS];
    float sum[PIXELS] = {};
#pragma unroll
    for (int p = 0; p < PIXELS; p++) /* behind the last pixel the last one again, which is not stored */
        from[p] = x + (size_t)(first + p < s.pixels ? first + p : s.pixels - 1) * s.channels;
#pragma unroll AT_ONCE
    for (int i = lane; i < s.channels; i += 32) {
        const pack<T, N> weight = weights[i];
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            const pack<T, N> number = from[p][i];
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[p] += cuda_widen(number.v[k]) * cuda_widen(weight.v[k]);
        }
    }
    float mine = 0;
#pragma unroll
    for (int p = 0; p < PIXELS; p++) {
        const float whole = cuda_warp_reduce<cuda_sum>(sum[p]);
        mine = lane == p ? whole : mine;
    }
    if (lane >= PIXELS || first + lane >= s.pixels)
        return;
    const size_t at = (size_t)(first + lane) * s.out_channels + channel;
    if (bias)
        mine += cuda_widen(bias[channel]);
    if (residual)
        mine += cuda_widen(residual[at]);
    y[at] = cuda_narrow<T, float>(cuda_activate_rare(s.act, mine));
}

struct pointers {
    const void *x, *w, *bias, *residual;
    void *y;
};

template <class T, int N, int PIXELS>
void cuda_few_pixels_launch(sizes s, const pointers &at, cudaStream_t stream)
{
    using P = pack<T, N>;
    s.channels /= N;
    const dim3 grid((unsigned)(s.out_channels + WARPS - 1) / WARPS,
                    (unsigned)(s.pixels + PIXELS - 1) / PIXELS);
    cuda_few_pixels_multiply<T, N, PIXELS><<<grid, WARPS * 32, 0, stream>>>(
        s, (const P *)at.x, (const P *)at.w, (const T *)at.bias, (const T *)at.residual, (T *)at.y);
}

template <class T> void cuda_few_pixels_launch_type(const sizes &s, const pointers &at, cudaStream_t stream)
{
    enum { N = 16 / sizeof(T) };
    const bool vectors = s.channels % N == 0 && cuda_is_vector(at.x) && cuda_is_vector(at.w);
    if (vectors && s.pixels > 1)
        cuda_few_pixels_launch<T, N, 4>(s, at, stream);
    else if (vectors)
        cuda_few_pixels_launch<T, N, 1>(s, at, stream);
    else if (s.pixels > 1)
        cuda_few_pixels_launch<T, 1, 4>(s, at, stream);
    else
        cuda_few_pixels_launch<T, 1, 1>(s, at, stream);
}

} // namespace

bool cuda_few_pixels_fits(const cuda_few_pixels *p)
{
    const int64_t most = 1 << 20;
    return (p->dtype == GRT_DTYPE_FLOAT || p->dtype == GRT_DTYPE_FLOAT16 || p->dtype == GRT_DTYPE_BFLOAT16) &&
           p->pixels > 0 && p->pixels <= MOST_PIXELS && p->channels > 0 && p->channels <= most &&
           p->out_channels > 0 && p->out_channels <= most &&
           p->channels * p->out_channels <= MOST_MULTIPLICATIONS / p->pixels;
}

void cuda_few_pixels_run(const cuda_few_pixels *p, const void *x, const void *w, const void *bias,
                         const void *residual, void *y, cudaStream_t stream)
{
    const sizes s = {(int)p->pixels, (int)p->channels, (int)p->out_channels, p->act};
    const pointers at = {x, w, bias, residual, y};
    if (p->dtype == GRT_DTYPE_FLOAT)
        cuda_few_pixels_launch_type<float>(s, at, stream);
    else if (p->dtype == GRT_DTYPE_FLOAT16)
        cuda_few_pixels_launch_type<__half>(s, at, stream);
    else
        cuda_few_pixels_launch_type<__nv_bfloat16>(s, at, stream);
}
