/* SPDX-License-Identifier: Apache-2.0 */
/* See pixel_product.h. A block has a tile of the result; tiles of both operands come to shared memory in
 * stages, and results leave by 16 bytes a lane. */
#include "backends/cuda/pixel_product.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/tensor_core.cuh"

namespace
{

enum { THREADS = 128, MOST_CHANNELS = 384, EACH = 8 /* numbers fetched at once */ };

struct sizes {
    int pixels, channels, out_channels, columns; /* columns: of tiles */
    grt_act act;
};

/* Warps ROWS x COLUMNS, each with M x N tiles of 16 x 8 results; DEPTH channels a stage. */
template <int ROWS, int COLUMNS, int M, int N, int DEPTH, int STAGES> struct form {
    enum {
        WARP_COLUMNS = COLUMNS,
        TILES_M = M,
        TILES_N = N,
        STEPS = DEPTH / 16,
        DEEP = DEPTH,
        AHEAD = STAGES,
        PIXELS = ROWS * M * 16,
        CHANNELS = COLUMNS * N * 8,
        CHUNKS = DEPTH / EACH, /* of a row in shared memory */
        STAGE = (PIXELS + CHANNELS) * CHUNKS
    };
    static_assert(ROWS * COLUMNS * 32 == THREADS && N % 4 == 0 && STAGE * STAGES * 16 <= 48 << 10, "");
};
using large = form<4, 1, 2, 12, 32, 3>;
using small = form<2, 2, 1, 4, 64, 3>;

/* Where chunk `chunk` of a row lies: rows that are read together lie in different banks. */
template <class F> __device__ __forceinline__ int cuda_pixel_product_place(int row, int chunk)
{
    return row * F::CHUNKS + (chunk ^ (row / (8 / F::CHUNKS) % F::CHUNKS));
}

/* Up to four pairs of numbers, zeros behind them. */
__device__ __forceinline__ void fetch_pairs(uint4 *to, const uint32_t *from, int pairs)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int bytes = i < pairs ? 4 : 0;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at + 4 * i),
                     "l"(i < pairs ? from + i : from), "r"(bytes)
                     : "memory");
    }
}

/* A stage: PIXELS rows of x, then CHANNELS rows of w; zeros outside. PAIRS: by 4 bytes, as rows are not
 * aligned to more. */
template <class T, class F, bool PAIRS>
__device__ __forceinline__ void fetch_stage(const sizes &s, int first_pixel, int first_channel, int depth,
                                            const T *x, const T *w, uint4 *to)
{
#pragma unroll
    for (int k = 0; k < (F::STAGE + THREADS - 1) / THREADS; k++) {
        const int i = k * THREADS + threadIdx.x, row = i / F::CHUNKS, chunk = i % F::CHUNKS;
        if (F::STAGE % THREADS && i >= F::STAGE)
            break;
        const bool is_pixel = row < F::PIXELS;
        const int index = is_pixel ? first_pixel + row : first_channel + row - F::PIXELS,
                  at = depth + chunk * EACH;
        const bool there = index < (is_pixel ? s.pixels : s.out_channels) && at < s.channels;
        const T *from = is_pixel ? x : w;
        if constexpr (PAIRS)
            fetch_pairs(to + cuda_pixel_product_place<F>(row, chunk),
                        (const uint32_t *)(there ? from + (size_t)index * s.channels + at : from),
                        there ? (s.channels - at) / 2 : 0);
        else
            fetch(to + cuda_pixel_product_place<F>(row, chunk),
                  there ? from + (size_t)index * s.channels + at : from, there);
    }
}

template <class T, class F>
__device__ __forceinline__ void multiply_stage(const uint4 *stage, int row, int column, float *sum)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < F::STEPS; step++) {
        uint32_t a[F::TILES_M][4];
#pragma unroll
        for (int m = 0; m < F::TILES_M; m++)
            load_matrices(
                a[m], stage + cuda_pixel_product_place<F>(row + m * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
        for (int n = 0; n < F::TILES_N; n += 2) {
            uint32_t b[4];
            load_matrices(
                b, stage + cuda_pixel_product_place<F>(F::PIXELS + column + n * 8 + lane / 16 * 8 + lane % 8,
                                                       step * 2 + lane / 8 % 2));
#pragma unroll
            for (int m = 0; m < F::TILES_M; m++) {
                tensor_core<T>::mma(sum + (m * F::TILES_N + n) * 4, a[m], b);
                tensor_core<T>::mma(sum + (m * F::TILES_N + n + 1) * 4, a[m], b + 2);
            }
        }
    }
}

/* The warp's sums, finished, from (pixel, channel) on. */
template <class T, class F, bool PAIRS>
__device__ __forceinline__ void store_tile(const sizes &s, float (&sum)[F::TILES_M * F::TILES_N * 4],
                                           int pixel, int channel, const T *bias, T *y)
{
    const int lane = threadIdx.x % 32, quad = lane & 3;
    if (bias) {
#pragma unroll
        for (int n = 0; n < F::TILES_N; n++) {
            const int at = channel + n * 8 + quad * 2;
            if (at >= s.out_channels)
                break;
            const float low = cuda_widen(bias[at]), high = cuda_widen(bias[at + 1]);
#pragma unroll
            for (int m = 0; m < F::TILES_M; m++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum[(m * F::TILES_N + n) * 4 + i] += i % 2 ? high : low;
        }
    }
    cuda_activate_all<T>(s.act, sum);
#pragma unroll
    for (int m = 0; m < F::TILES_M; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = pixel + m * 16 + lane / 4 + 8 * r;
#pragma unroll
            for (int n = 0; PAIRS && n < F::TILES_N; n++) {
                const float *v = sum + (m * F::TILES_N + n) * 4 + 2 * r;
                const int at = channel + n * 8 + quad * 2;
                if (row < s.pixels && at < s.out_channels)
                    tensor_core<T>::store(y + (size_t)row * s.out_channels + at, v[0], v[1]);
            }
#pragma unroll
            for (int n = 0; !PAIRS && n < F::TILES_N; n += 4) {
                uint32_t pair[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float *v = sum + (m * F::TILES_N + n + i) * 4 + 2 * r;
                    pair[i] = tensor_core<T>::pair(v[0], v[1]);
                }
                exchange(pair, quad);
                const int at = channel + (n + quad) * 8;
                if (row < s.pixels && at < s.out_channels)
                    *(uint4 *)(y + (size_t)row * s.out_channels + at) =
                        make_uint4(pair[0], pair[1], pair[2], pair[3]);
            }
        }
}

template <class T, class F, bool PAIRS>
__global__ void __launch_bounds__(THREADS)
    cuda_pixel_product_multiply(const __grid_constant__ sizes s, const T *x, const T *w, const T *bias, T *y)
{
    __shared__ uint4 stages[F::AHEAD][F::STAGE];
    const int warp = threadIdx.x / 32, row = warp / F::WARP_COLUMNS * F::TILES_M * 16,
              column = warp % F::WARP_COLUMNS * F::TILES_N * 8;
    /* Neighbours share pixels, which are more than weights. */
    const int first_pixel = blockIdx.x / s.columns * F::PIXELS,
              first_channel = blockIdx.x % s.columns * F::CHANNELS;
    float sum[F::TILES_M * F::TILES_N * 4] = {};
#pragma unroll
    for (int k = 0; k < F::AHEAD - 1; k++) {
        if (k * F::DEEP < s.channels)
            fetch_stage<T, F, PAIRS>(s, first_pixel, first_channel, k * F::DEEP, x, w, stages[k]);
        commit();
    }
    int now = 0, next = F::AHEAD - 1;
    for (int depth = 0; depth < s.channels; depth += F::DEEP) {
        wait_for<F::AHEAD - 2>();
        __syncthreads(); /* this stage is there, and all have done with the one that is fetched into */
        const int ahead = depth + (F::AHEAD - 1) * F::DEEP;
        if (ahead < s.channels)
            fetch_stage<T, F, PAIRS>(s, first_pixel, first_channel, ahead, x, w, stages[next]);
        commit();
        multiply_stage<T, F>(stages[now], row, column, sum);
        now = now + 1 == F::AHEAD ? 0 : now + 1;
        next = next + 1 == F::AHEAD ? 0 : next + 1;
    }
    store_tile<T, F, PAIRS>(s, sum, first_pixel + row, first_channel + column, bias, y);
}

template <class F> int64_t cuda_pixel_product_tiles_of(const cuda_pixel_product *p)
{
    return ((p->pixels + F::PIXELS - 1) / F::PIXELS) * ((p->out_channels + F::CHANNELS - 1) / F::CHANNELS);
}

template <class T, class F>
void cuda_pixel_product_launch(const cuda_pixel_product *p, const void *x, const void *w, const void *bias,
                               void *y, cudaStream_t stream)
{
    const sizes s = {(int)p->pixels, (int)p->channels, (int)p->out_channels,
                     (int)((p->out_channels + F::CHANNELS - 1) / F::CHANNELS), p->act};
    if (!cuda_pixel_product_is_whole(p))
        cuda_pixel_product_multiply<T, F, true>
            <<<(unsigned)cuda_pixel_product_tiles_of<F>(p), THREADS, 0, stream>>>(
                s, (const T *)x, (const T *)w, (const T *)bias, (T *)y);
    else
        cuda_pixel_product_multiply<T, F, false>
            <<<(unsigned)cuda_pixel_product_tiles_of<F>(p), THREADS, 0, stream>>>(
                s, (const T *)x, (const T *)w, (const T *)bias, (T *)y);
}

template <class T>
void cuda_pixel_product_launch_type(const cuda_pixel_product *p, const void *x, const void *w,
                                    const void *bias, void *y, cudaStream_t stream)
{
    if (cuda_pixel_product_tiles_of<large>(p) >= p->multiprocessors)
        cuda_pixel_product_launch<T, large>(p, x, w, bias, y, stream);
    else
        cuda_pixel_product_launch<T, small>(p, x, w, bias, y, stream);
}

} // namespace

bool cuda_pixel_product_is_whole(const cuda_pixel_product *p)
{
    return p->channels % EACH == 0 && p->out_channels % EACH == 0;
}

bool cuda_pixel_product_fits(const cuda_pixel_product *p)
{
    return (p->dtype == GRT_DTYPE_FLOAT16 || p->dtype == GRT_DTYPE_BFLOAT16) && p->pixels > 0 &&
           p->pixels < INT32_MAX / 2 && p->channels > 0 && p->channels <= MOST_CHANNELS &&
           p->channels % 2 == 0 && p->out_channels > 0 && p->out_channels <= 1 << 20 &&
           p->out_channels % 2 == 0 && cuda_pixel_product_tiles_of<small>(p) < INT32_MAX &&
           (cuda_pixel_product_is_whole(p) || cuda_pixel_product_tiles_of<small>(p) >= p->multiprocessors);
}

bool cuda_pixel_product_run(const cuda_pixel_product *p, const void *x, const void *w, const void *bias,
                            void *y, cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(w) || !cuda_is_vector(y))
        return false;
    if (p->dtype == GRT_DTYPE_FLOAT16)
        cuda_pixel_product_launch_type<__half>(p, x, w, bias, y, stream);
    else
        cuda_pixel_product_launch_type<__nv_bfloat16>(p, x, w, bias, y, stream);
    return true;
}
