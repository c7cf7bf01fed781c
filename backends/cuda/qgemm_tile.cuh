/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of products of bytes share: how tiles come to shared memory, and how sums leave. A form F has
 * CHUNKS of CUDA_QCHUNK bytes of a row in a stage, PIXELS rows of x and then FILTERS of w, and THREADS; an
 * epilogue is of TILES_M x TILES_N tiles of 16 x 8 sums as tensor cores leave them. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_TILE_CUH
#define GRT_BACKENDS_CUDA_QGEMM_TILE_CUH

#include "backends/cuda/activate.cuh"
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

/* One item, with what a thread divides by once. */
struct view {
    const uint8_t *x, *w, *residual;
    void *y;
    cuda_qfinish finish;
};

/* What is of one item alone. */
__device__ __forceinline__ int64_t depth_of(const cuda_qgemm &g)
{
    return (int64_t)g.kernel[0] * g.kernel[1] * g.chunks;
}

__device__ __forceinline__ view item_of(const cuda_qgemm &g, const view &all)
{
    view v = all;
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

/* What a thread fetches: always the same rows, and the same chunk of each stage. Where a row is read from is
 * found when its tap begins. */
template <class F> struct fetcher {
    enum { STEP = F::CHUNKS * CUDA_QCHUNK };
    const uint8_t *x[F::X_EACH], *w[F::W_EACH];                  /* what is fetched next */
    int32_t step[F::X_EACH];                                     /* 0 outside of the image */
    int32_t row[F::X_EACH], column[F::X_EACH], image[F::X_EACH]; /* where the window begins */
    bool there[F::W_EACH];
    int32_t chunk, tap_row, tap_column, at, last; /* of the tap; of all chunks */

    __device__ __forceinline__ void begin(const cuda_qgemm &g, const view &v, int first_pixel,
                                          int first_filter)
    {
        const int r = threadIdx.x / F::CHUNKS, per_filter = g.kernel[0] * g.kernel[1] * g.chunks,
                  pixels = g.images * g.out[0] * g.out[1];
        last = per_filter;
        at = threadIdx.x % F::CHUNKS;
        chunk = at % g.chunks;
        tap_row = at / g.chunks / g.kernel[1];
        tap_column = at / g.chunks % g.kernel[1];
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            const int pixel = first_pixel + r + i * F::STEP_ROWS, across = pixel % g.out[1],
                      down = pixel / g.out[1] % g.out[0];
            const bool inside = pixel < pixels;
            row[i] = inside ? down * g.stride[0] - g.begin[0] : INT32_MIN / 2;
            column[i] = across * g.stride[1] - g.begin[1];
            image[i] = inside ? pixel / g.out[1] / g.out[0] : 0;
        }
#pragma unroll
        for (int i = 0; i < F::W_EACH; i++) {
            const int filter = first_filter + r + i * F::STEP_ROWS;
            there[i] = filter < g.n;
            w[i] = v.w + ((int64_t)(there[i] ? filter : 0) * per_filter + at) * CUDA_QCHUNK;
        }
        locate(g, v);
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
            x[i] = inside ? from : v.finish.head->outside;
            step[i] = inside ? STEP : 0;
        }
    }

    __device__ __forceinline__ void fetch_stage(const cuda_qgemm &g, const view &v, uint4 *stage)
    {
        const bool some = at < last;
        uint4 *to = stage + place<F>(threadIdx.x / F::CHUNKS, threadIdx.x % F::CHUNKS);
#pragma unroll
        for (int i = 0; i < F::X_EACH; i++) {
            fetch(to + i * F::STEP_ROWS * F::CHUNKS, x[i], some);
            x[i] += step[i];
        }
#pragma unroll
        for (int i = 0; i < F::W_EACH; i++) {
            fetch(to + (F::PIXELS + i * F::STEP_ROWS) * F::CHUNKS, w[i], some && there[i]);
            w[i] += STEP;
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

/* ---- epilogue ---- */

/* The columns of a lane in a warp's tile: two of each eight. */
template <class F> struct lane_columns {
    int32_t offset[F::TILES_N][2], zero[F::TILES_N][2];
    float scale[F::TILES_N][2], bias[F::TILES_N][2];

    __device__ __forceinline__ void load(const cuda_qfinish &f, int first, int n, bool zeros)
    {
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int j = min(first + t * 8 + (int)(threadIdx.x & 3) * 2 + k, n - 1);
                offset[t][k] = f.offset[j];
                zero[t][k] = zeros ? f.zero[j] : 0;
                scale[t][k] = f.scale[j];
                bias[t][k] = f.bias[j];
            }
    }
    /* Element i of a lane's four in tile t. */
    __device__ __forceinline__ float finish(int t, int i, int32_t sum, int32_t row_sum) const
    {
        const int32_t s = sum - offset[t][i & 1] - row_sum * zero[t][i & 1];
        return cuda_qscaled(s, scale[t][i & 1], bias[t][i & 1]);
    }
};

/* One number, with its residual. */
__device__ __forceinline__ void store_one(const cuda_qgemm &g, const view &v, const cuda_qhead &h, int64_t at,
                                          float x)
{
    if (g.y_size > 1) {
        if (g.residual != GRT_DTYPE_NONE)
            x += cuda_load<float>(v.residual, g.residual, at);
        cuda_store<float>(v.y, g.y, at, x);
        return;
    }
    if (g.residual != GRT_DTYPE_NONE) {
        const cuda_qresidual r(h, g.residual, g.sum);
        x = r.add(h, x, v.residual[at] ^ (r.flip & 0xFF), 0);
    }
    ((uint8_t *)v.y)[at] = (uint8_t)cuda_qlimits(h, g.sum).byte(x);
}

/* Bytes whose channels lie side by side, eight of a lane at once: lanes of a row exchange what they have. */
template <class F>
__device__ __forceinline__ void store_bytes(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                            float (&x)[F::TILES_N][4], const int64_t (&at)[2],
                                            const bool (&there)[2])
{
    const int quad = threadIdx.x & 3;
    uint32_t word[4];
    if (g.residual != GRT_DTYPE_NONE) {
        const cuda_qresidual residual(h, g.residual, g.sum);
        uint2 r[2];
#pragma unroll
        for (int k = 0; k < 2; k++)
            r[k] = there[k] ? *(const uint2 *)(v.residual + at[k]) : make_uint2(0, 0);
        word[0] = __byte_perm(r[0].x, r[1].x, 0x5410);
        word[1] = __byte_perm(r[0].x, r[1].x, 0x7632);
        word[2] = __byte_perm(r[0].y, r[1].y, 0x5410);
        word[3] = __byte_perm(r[0].y, r[1].y, 0x7632);
        exchange(word, quad);
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[t][i] = residual.add(h, x[t][i], word[t] ^ residual.flip, i);
    }
    const cuda_qlimits limits(h, g.sum);
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++)
        word[t] = cuda_qword(limits.byte(x[t][0]), limits.byte(x[t][1]), limits.byte(x[t][2]),
                             limits.byte(x[t][3]));
    exchange(word, quad);
    const uint2 upper =
                    make_uint2(__byte_perm(word[0], word[1], 0x5410), __byte_perm(word[2], word[3], 0x5410)),
                lower =
                    make_uint2(__byte_perm(word[0], word[1], 0x7632), __byte_perm(word[2], word[3], 0x7632));
    if (there[0])
        *(uint2 *)((uint8_t *)v.y + at[0]) = upper;
    if (there[1])
        *(uint2 *)((uint8_t *)v.y + at[1]) = lower;
}

template <class T> __device__ __forceinline__ float2 cuda_qgemm_tile_unpack(uint32_t word)
{
    const T *pair = (const T *)&word;
    return make_float2(cuda_widen(pair[0]), cuda_widen(pair[1]));
}

/* Halves whose channels lie side by side: eight of a lane at once, as bytes are. */
template <class T, class F>
__device__ __forceinline__ void store_halves(const cuda_qgemm &g, const view &v, float (&x)[F::TILES_N][4],
                                             const int64_t (&at)[2], const bool (&there)[2])
{
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t word[4];
        if (g.residual != GRT_DTYPE_NONE) {
            const uint4 r = there[k] ? *(const uint4 *)((const T *)(const void *)v.residual + at[k])
                                     : make_uint4(0, 0, 0, 0);
            word[0] = r.x;
            word[1] = r.y;
            word[2] = r.z;
            word[3] = r.w;
            exchange(word, quad);
#pragma unroll
            for (int t = 0; t < F::TILES_N; t++) {
                const float2 pair = cuda_qgemm_tile_unpack<T>(word[t]);
                x[t][2 * k] += pair.x;
                x[t][2 * k + 1] += pair.y;
            }
        }
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
            word[t] = tensor_core<T>::pair(x[t][2 * k], x[t][2 * k + 1]);
        exchange(word, quad);
        if (there[k])
            *(uint4 *)((T *)v.y + at[k]) = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* The same, of floats. */
template <class F>
__device__ __forceinline__ void store_floats(const view &v, const float (&x)[F::TILES_N][4],
                                             const int64_t (&at)[2], const bool (&there)[2])
{
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t even[4], odd[4];
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++) {
            even[t] = __float_as_uint(x[t][2 * k]);
            odd[t] = __float_as_uint(x[t][2 * k + 1]);
        }
        exchange(even, quad);
        exchange(odd, quad);
        uint4 *to = (uint4 *)((float *)v.y + at[k]);
        if (there[k]) {
            to[0] = make_uint4(even[0], odd[0], even[1], odd[1]);
            to[1] = make_uint4(even[2], odd[2], even[3], odd[3]);
        }
    }
}

/* Results of a row pair that lie side by side; a lane has the filters of `at` on, and seven more. */
template <class F>
__device__ __forceinline__ void store_rows(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                           float (&x)[F::TILES_N][4], const int64_t (&at)[2],
                                           const bool (&there)[2])
{
    if (g.y_size == 1) {
        store_bytes<F>(g, v, h, x, at, there);
        return;
    }
    if (g.y == GRT_DTYPE_FLOAT)
        store_floats<F>(v, x, at, there);
    else if (g.y == GRT_DTYPE_FLOAT16)
        store_halves<__half, F>(g, v, x, at, there);
    else
        store_halves<__nv_bfloat16, F>(g, v, x, at, there);
}

/* Before what is not bounded by limits: of floats, and of numbers that are quantised behind. */
template <class F>
__device__ __forceinline__ void activate(const cuda_qgemm &g, const cuda_qhead &h, float (&x)[F::TILES_N][4])
{
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++) {
        if (g.y == GRT_DTYPE_FLOAT)
            cuda_activate_all<float>(g.act, x[t]);
        else
            cuda_activate_all<__half>(g.act, x[t]);
        if (g.y_size == 1)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[t][i] /= h.y_unit;
    }
}

template <class F, bool SUMS>
__device__ __forceinline__ void
store_tile(const cuda_qgemm &g, const view &v, int32_t (&sum)[F::TILES_M][F::TILES_N][4],
           int32_t (&row_sum)[F::TILES_M][4], int first_pixel, int first_filter, bool in_eights)
{
    const int lane = threadIdx.x % 32, quad = lane & 3, per_image = g.out[0] * g.out[1],
              pixels = g.images * per_image;
    const cuda_qhead h = *v.finish.head;
    lane_columns<F> columns;
    columns.load(v.finish, first_filter, g.n, SUMS);
#pragma unroll
    for (int m = 0; m < F::TILES_M; m++) {
        int64_t row_at[2];
        bool there[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int pixel = first_pixel + m * TILE + lane / 4 + 8 * k;
            there[k] = pixel < pixels;
            row_at[k] = pixel / per_image * g.y_image + pixel % per_image * g.y_pixel;
        }
        float x[F::TILES_N][4];
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[t][i] = columns.finish(t, i, sum[m][t][i], SUMS ? row_sum[m][i & 2] : 0);
        if (g.act.kind != GRT_ACT_NONE)
            activate<F>(g, h, x);
        if (in_eights) {
            const int filter = first_filter + quad * 8;
            const int64_t at[2] = {row_at[0] + filter, row_at[1] + filter};
            const bool stored[2] = {there[0] && filter < g.n, there[1] && filter < g.n};
            store_rows<F>(g, v, h, x, at, stored);
            continue;
        }
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int filter = first_filter + t * 8 + quad * 2 + (i & 1);
                if (there[i / 2] && filter < g.n)
                    store_one(g, v, h, row_at[i / 2] + filter * g.y_channel, x[t][i]);
            }
    }
}

} // namespace

#endif
