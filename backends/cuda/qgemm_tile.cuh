/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of products of bytes share: how tiles come to shared memory. A form F has CHUNKS of
 * CUDA_QCHUNK bytes of a row in a stage, PIXELS rows of x and then FILTERS of w, and THREADS. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_TILE_CUH
#define GRT_BACKENDS_CUDA_QGEMM_TILE_CUH

#include "backends/cuda/divider.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/qgemm_sizes.h"
#include "backends/cuda/tensor_core.cuh"
#include "src/base/tensor.h"

namespace
{

enum { TILE = 16 };

/* Rows that are read together lie in different banks. */
template <class F> __device__ __forceinline__ int place(int row, int chunk)
{
    return row * F::CHUNKS + (chunk ^ (row / (8 / F::CHUNKS) % F::CHUNKS));
}

/* One item, with what all threads divide by. */
struct view {
    const uint8_t *x, *w, *residual;
    void *y;
    cuda_qfinish finish;
    divider line, image; /* by the pixels of a line of the result, by its lines */
    bool in_place;       /* pixel i of the result is made of pixel i of x alone */
    bool dense;          /* the result's pixels are equally far from each other in all images */
};

view view_of(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
             const cuda_qfinish *finish, void *y)
{
    view v = {(const uint8_t *)x, (const uint8_t *)w, (const uint8_t *)residual, y, *finish};
    const int64_t in = (int64_t)g->in[0] * g->in[1], out = (int64_t)g->out[0] * g->out[1];
    v.line = divider::by(g->out[1]);
    v.image = divider::by(g->out[0]);
    v.in_place = g->kernel[0] == 1 && g->kernel[1] == 1 && g->stride[0] == 1 && g->stride[1] == 1 &&
                 g->begin[0] == 0 && g->begin[1] == 0 && in == out &&
                 (g->images == 1 || g->x_image == in * g->x_pixel);
    v.dense = g->images == 1 || g->y_image == out * g->y_pixel;
    return v;
}

/* What is of one item alone. */
__device__ __forceinline__ int64_t depth_of(const cuda_qgemm &g)
{
    return (int64_t)g.kernel[0] * g.kernel[1] * g.chunks;
}

__device__ __forceinline__ view item_of(const cuda_qgemm &g, const view &all)
{
    view v = all;
    if (g.items == 1)
        return v;
    const int64_t item = blockIdx.y, w_item = grt_strided_offset(g.dims, g.lead, g.w_strides, item);
    v.x += grt_strided_offset(g.dims, g.lead, g.x_strides, item) * g.x_item;
    v.w += w_item * g.n * depth_of(g) * CUDA_QCHUNK;
    v.y = (char *)v.y + item * g.y_item * g.y_size;
    v.residual += item * g.y_item * g.y_size;
    v.finish.offset += w_item * g.n;
    v.finish.zero += w_item * g.n;
    v.finish.scale += w_item * g.n;
    v.finish.bias += w_item * g.n;
    return v;
}

/* The filter that lies in a row of a stage: in such an order that the sums of a lane, two of each eight of 32
 * columns, are of eight filters side by side. */
__device__ __forceinline__ int filter_of(int row)
{
    return (row & ~31) | (row >> 1 & 3) << 3 | (row >> 3 & 3) << 1 | (row & 1);
}

/* What a thread fetches: always the same rows, and the same chunk of each stage. Where a row is read from is
 * found when its tap begins. */
template <class F> struct fetcher {
    enum { STEP = F::CHUNKS * CUDA_QCHUNK };
    const uint8_t *x[F::X_EACH], *w[F::W_EACH];                  /* what is fetched next; x NULL: outside */
    uint32_t outside;                                            /* what windows see outside of the image */
    int32_t row[F::X_EACH], column[F::X_EACH], image[F::X_EACH]; /* where the window begins */
    bool there[F::W_EACH];
    int32_t chunk, tap_row, tap_column, at, last; /* of the tap; of all chunks */

    /* Of the chunks from `skip` on, before `end`: multiples of CHUNKS, or the last. Reads no memory. */
    __device__ __forceinline__ void begin(const cuda_qgemm &g, const view &v, int first_pixel,
                                          int first_filter, int skip, int end)
    {
        const int r = threadIdx.x / F::CHUNKS, per_filter = g.kernel[0] * g.kernel[1] * g.chunks,
                  pixels = g.images * g.out[0] * g.out[1];
        last = end;
        outside = 0;
        at = skip + threadIdx.x % F::CHUNKS;
        chunk = at % g.chunks;
        tap_row = at / g.chunks / g.kernel[1];
        tap_column = at / g.chunks % g.kernel[1];
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            const int pixel = first_pixel + r + i * F::STEP_ROWS, line = v.line(pixel);
            const bool inside = pixel < pixels;
            image[i] = inside ? v.image(line) : 0;
            row[i] = inside ? (line - image[i] * g.out[0]) * g.stride[0] - g.begin[0] : INT32_MIN / 2;
            column[i] = (pixel - line * g.out[1]) * g.stride[1] - g.begin[1];
        }
#pragma unroll
        for (int i = 0; i < F::W_EACH; i++) {
            const int filter = first_filter + filter_of(r + i * F::STEP_ROWS);
            there[i] = filter < g.n;
            w[i] = v.w + ((int64_t)(there[i] ? filter : 0) * per_filter + at) * CUDA_QCHUNK;
        }
        if (!v.in_place) {
            locate(g, v);
            return;
        }
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            const int pixel = first_pixel + r + i * F::STEP_ROWS;
            x[i] = pixel < pixels ? v.x + pixel * g.x_pixel + at * CUDA_QCHUNK : NULL;
        }
    }

    __device__ __forceinline__ void locate(const cuda_qgemm &g, const view &v)
    {
        const int down = tap_row * g.dilation[0], across = tap_column * g.dilation[1];
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            const int p = row[i] + down, q = column[i] + across;
            const bool inside = (unsigned)p < (unsigned)g.in[0] && (unsigned)q < (unsigned)g.in[1];
            const uint8_t *from =
                v.x + image[i] * g.x_image + ((int64_t)p * g.in[1] + q) * g.x_pixel + chunk * CUDA_QCHUNK;
            x[i] = inside ? from : NULL;
        }
    }

    /* The first stages. Weights and epilogue may be known while the kernel in front of this one still
     * writes x. */
    __device__ __forceinline__ void fetch_first(const cuda_qgemm &g, const view &v, uint4 *stages)
    {
        if (!g.is_constant)
            overlap_wait();
#pragma unroll
        for (int k = 0; k < F::AHEAD - 1; k++)
            if (at - (int)threadIdx.x % F::CHUNKS + k * F::CHUNKS < last)
                fetch_filters(stages + k * F::STAGE, at + k * F::CHUNKS < last);
        outside = *(const uint32_t *)v.finish.head->outside;
        overlap_wait();
#pragma unroll
        for (int k = 0; k < F::AHEAD - 1; k++) {
            if (at - (int)threadIdx.x % F::CHUNKS < last)
                fetch_pixels(g, v, stages + k * F::STAGE);
            commit();
        }
    }

    __device__ __forceinline__ void fetch_stage(const cuda_qgemm &g, const view &v, uint4 *stage)
    {
        fetch_filters(stage, at < last);
        fetch_pixels(g, v, stage);
    }

    __device__ __forceinline__ void fetch_filters(uint4 *stage, bool some)
    {
        uint4 *to = stage + place<F>(threadIdx.x / F::CHUNKS, threadIdx.x % F::CHUNKS);
#pragma unroll
        for (int i = 0; i < F::W_EACH; i++) {
            fetch(to + (F::PIXELS + i * F::STEP_ROWS) * F::CHUNKS, w[i], some && there[i]);
            w[i] += STEP;
        }
    }

    __device__ __forceinline__ void fetch_pixels(const cuda_qgemm &g, const view &v, uint4 *stage)
    {
        const bool some = at < last;
        uint4 *to = stage + place<F>(threadIdx.x / F::CHUNKS, threadIdx.x % F::CHUNKS);
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            if (x[i]) {
                fetch(to + i * F::STEP_ROWS * F::CHUNKS, x[i], some);
                x[i] += STEP;
            } else {
                const uint32_t word = some ? outside : 0;
                to[i * F::STEP_ROWS * F::CHUNKS] = make_uint4(word, word, word, word);
            }
        }
        at += F::CHUNKS;
        chunk += F::CHUNKS;
        if (chunk < g.chunks || at >= last)
            return;
        while (chunk >= g.chunks) {
            chunk -= g.chunks;
            if (++tap_column == g.kernel[1]) {
                tap_column = 0;
                tap_row++;
            }
        }
        locate(g, v);
    }
};

} // namespace

#endif
