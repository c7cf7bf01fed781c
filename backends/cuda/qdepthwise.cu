/* SPDX-License-Identifier: Apache-2.0 */
/* See qdepthwise.h. A thread has some channels of neighbouring pixels of a line, so that weights are read
 * once. Windows of three and five columns are read once a line, too, and turned: four columns of a channel
 * are multiplied at once. */
#include "backends/cuda/qdepthwise.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/divider.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/walk.h"

namespace
{

enum { PIXELS = 4 };

struct arrays {
    const uint8_t *x, *residual;
    cuda_qdepthwise_weights w;
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
                    w[k] = a.w.numbers[(int64_t)(r * d.kernel[1] + s) * d.channels + channel + k];
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

/* Items of turn_windows, fastest first: four channels, strips of PIXELS pixels, lines, images. */
struct turned_work {
    int items;
    divider channels, strips, lines;
};

/* Four bytes of each of four words become words of the first, second, third and fourth bytes. */
__device__ __forceinline__ void turn_bytes(const uint32_t *from, uint32_t *to)
{
    const uint32_t a = __byte_perm(from[0], from[1], 0x5140), b = __byte_perm(from[2], from[3], 0x5140),
                   c = __byte_perm(from[0], from[1], 0x7362), d = __byte_perm(from[2], from[3], 0x7362);
    to[0] = __byte_perm(a, b, 0x5410);
    to[1] = __byte_perm(a, b, 0x7632);
    to[2] = __byte_perm(c, d, 0x5410);
    to[3] = __byte_perm(c, d, 0x7632);
}

/* sum + x w of four bytes; w is signed. */
template <bool SIGNED> __device__ __forceinline__ int32_t depthwise_add(uint32_t x, uint32_t w, int32_t sum)
{
    int32_t out;
    if constexpr (SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(w), "r"(sum));
    else
        asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(w), "r"(sum));
    return out;
}

/* A line of windows: COLUMNS of each, STEP from one to the next. */
template <int COLUMNS, int STEP> struct turned_line {
    enum {
        READ = (PIXELS - 1) * STEP + COLUMNS,
        FOURS = (READ + 3) / 4,
        WORDS = CUDA_QDEPTHWISE_WORDS(COLUMNS)
    };
    uint32_t of[FOURS + 1][4]; /* by channel; no window begins in the last one */

    /* What lies outside is `fill`. */
    __device__ __forceinline__ void read(const uint8_t *line, int64_t pixel, int first, int end,
                                         uint32_t fill)
    {
        uint32_t word[FOURS * 4];
#pragma unroll
        for (int j = 0; j < FOURS * 4; j++) {
            word[j] = fill;
            if (j < READ && (unsigned)(first + j) < (unsigned)end)
                word[j] = *(const uint32_t *)(line + (first + j) * pixel);
        }
#pragma unroll
        for (int t = 0; t < FOURS; t++)
            turn_bytes(word + 4 * t, of[t]);
#pragma unroll
        for (int k = 0; k < 4; k++)
            of[FOURS][k] = 0;
    }
    /* Four columns of channel k from column `at` on. */
    __device__ __forceinline__ uint32_t four(int at, int k) const
    {
        return at % 4 == 0 ? of[at / 4][k] : __funnelshift_r(of[at / 4][k], of[at / 4 + 1][k], at % 4 * 8);
    }
};

template <int COLUMNS, int STEP, bool SIGNED>
__global__ void __launch_bounds__(CUDA_BLOCK)
    turn_windows(const __grid_constant__ cuda_qdepthwise d, const __grid_constant__ arrays a,
                 const __grid_constant__ turned_work work)
{
    using line_of = turned_line<COLUMNS, STEP>;
    const int i = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    overlap_let_next_begin();
    overlap_wait();
    if (i >= work.items)
        return;
    const int strip = work.channels(i), line = work.strips(strip), image = work.lines(line),
              channel = (i - strip * (d.channels / 4)) * 4,
              across = (strip - line * ((d.out[1] + PIXELS - 1) / PIXELS)) * PIXELS,
              down = line - image * d.out[0];
    const cuda_qhead h = *a.finish.head;
    const uint8_t *x = a.x + image * d.x_image + channel;
    int32_t sum[PIXELS][4] = {}, weights[4] = {};
    for (int r = 0; r < d.kernel[0]; r++) {
        const int row = down * STEP - d.begin[0] + r;
        if ((unsigned)row >= (unsigned)d.in[0])
            continue;
        line_of read;
        read.read(x + (int64_t)row * d.in[1] * d.x_pixel, d.x_pixel, across * STEP - d.begin[1], d.in[1],
                  (uint32_t)(uint8_t)h.x_zero * 0x01010101u);
#pragma unroll
        for (int q = 0; q < line_of::WORDS; q++) {
            const uint4 four =
                *(const uint4 *)(a.w.words + (int64_t)(r * line_of::WORDS + q) * d.channels + channel);
            const uint32_t w[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                weights[k] = depthwise_add<true>(0x01010101u, w[k], weights[k]);
#pragma unroll
                for (int p = 0; p < PIXELS; p++)
                    sum[p][k] = depthwise_add<SIGNED>(read.four(p * STEP + 4 * q, k), w[k], sum[p][k]);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PIXELS; p++) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum[p][k] -= h.x_zero * weights[k];
        if (across + p < d.out[1])
            store_some<4>(d, a, h,
                          image * d.y_image + ((int64_t)down * d.out[1] + across + p) * d.y_pixel + channel,
                          channel, sum[p]);
    }
}

template <int COLUMNS, int STEP>
grt_status launch_turned(const cuda_qdepthwise *d, const arrays &a, int64_t items, cudaStream_t stream)
{
    const int strips = (d->out[1] + PIXELS - 1) / PIXELS;
    const turned_work work = {(int)items, divider::by(d->channels / 4), divider::by(strips),
                              divider::by(d->out[0])};
    const auto kernel = d->x_signed ? turn_windows<COLUMNS, STEP, true> : turn_windows<COLUMNS, STEP, false>;
    CUDA_TRY(overlap_launch(d->overlaps, kernel, (unsigned)((items + CUDA_BLOCK - 1) / CUDA_BLOCK),
                            CUDA_BLOCK, 0, stream, *d, a, work));
    return GRT_OK;
}

/* True for windows of three or five columns one or two apart, and channels that lie side by side in fours. */
bool depthwise_turns(const cuda_qdepthwise *d, const arrays &a, int64_t items)
{
    return a.w.words && (d->kernel[1] == 3 || d->kernel[1] == 5) && d->stride[0] == d->stride[1] &&
           (d->stride[0] == 1 || d->stride[0] == 2) && d->dilation[0] == 1 && d->dilation[1] == 1 &&
           items < INT32_MAX - CUDA_BLOCK;
}

} // namespace

grt_status cuda_qdepthwise_enqueue(const cuda_qdepthwise *d, const void *x, const cuda_qdepthwise_weights *w,
                                   const void *residual, const cuda_qfinish *finish, void *y,
                                   cudaStream_t stream)
{
    const arrays a = {(const uint8_t *)x, (const uint8_t *)residual, *w, y, *finish};
    const int64_t lines = (int64_t)d->images * d->out[0] * ((d->out[1] + PIXELS - 1) / PIXELS),
                  items = lines * d->channels / 4;
    const uintptr_t together = (uintptr_t)x | (uintptr_t)y | (uintptr_t)residual | (uintptr_t)d->channels;
    const bool in_fours = together % 4 == 0 && d->x_channel == 1 && d->y_channel == 1;
    if (in_fours && depthwise_turns(d, a, items)) {
        if (d->kernel[1] == 3)
            return d->stride[1] == 1 ? launch_turned<3, 1>(d, a, items, stream)
                                     : launch_turned<3, 2>(d, a, items, stream);
        return d->stride[1] == 1 ? launch_turned<5, 1>(d, a, items, stream)
                                 : launch_turned<5, 2>(d, a, items, stream);
    }
    if (in_fours)
        sum_windows<4><<<cuda_grid(items), CUDA_BLOCK, 0, stream>>>(*d, a, items);
    else
        sum_windows<1><<<cuda_grid(lines * d->channels), CUDA_BLOCK, 0, stream>>>(*d, a, lines * d->channels);
    CUDA_LAUNCHED();
    return GRT_OK;
}
