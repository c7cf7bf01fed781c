/* SPDX-License-Identifier: Apache-2.0 */
/* How sums of products of bytes leave: scaled, activated, with their residuals, rounded. A form F has TILES_M
 * x TILES_N tiles of 16 x 8 sums as tensor cores leave them; four tiles are 32 filters in the order of
 * filter_of.
 */
#ifndef GRT_BACKENDS_CUDA_QGEMM_STORE_CUH
#define GRT_BACKENDS_CUDA_QGEMM_STORE_CUH

#include "backends/cuda/activate.cuh"
#include "backends/cuda/qgemm_tile.cuh"

namespace
{

/* x * Phi(x) with an error below 2e-4, of which a byte shows nothing. Beyond 3.9 the polynomial is further
 * from a half than Phi, and saturation ends it. */
__device__ __forceinline__ float cuda_qgelu(float x)
{
    const float s = x * x;
    float p = 2.627050044e-08f;
    p = fmaf(p, s, -1.770447852e-06f);
    p = fmaf(p, s, 5.123639130e-05f);
    p = fmaf(p, s, -8.445039275e-04f);
    p = fmaf(p, s, 8.913750760e-03f);
    p = fmaf(p, s, -6.486940384e-02f);
    p = fmaf(p, s, 3.980855644e-01f);
    return x * __saturatef(fmaf(p, x, 0.5f));
}

/* The same times twice `half`, by the instruction for tanh: off by 3e-4, and by 2.5e-4 of x. */
__device__ __forceinline__ float cuda_qgelu_quick(float x, float half)
{
    const float h = x * half, u = x * fmaf(x * x, 3.470409e-02f, 8.0014592e-01f);
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(u));
    return fmaf(h, t, h);
}

/* The columns of a lane in a warp's tile: eight filters side by side, two of each tile of sums. */
struct lane_columns {
    int32_t offset[8], zero[8];
    float scale[8], bias[8];

    __device__ __forceinline__ void load(const cuda_qfinish &f, int first, int n, bool zeros)
    {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int j = min(first + (int)(threadIdx.x & 3) * 8 + k, n - 1);
            offset[k] = f.offset[j];
            zero[k] = zeros ? f.zero[j] : 0;
            scale[k] = f.scale[j];
            bias[k] = f.bias[j];
        }
    }
    __device__ __forceinline__ float finish(int k, int32_t sum, int32_t row_sum) const
    {
        return cuda_qscaled(sum - offset[k] - row_sum * zero[k], scale[k], bias[k]);
    }
};

/* Where a lane's two rows of 16 lie. */
struct lane_rows {
    int64_t at[2];
    bool there[2];

    __device__ __forceinline__ lane_rows(const cuda_qgemm &g, const view &v, int first_pixel)
    {
        const int per_image = g.out[0] * g.out[1], pixels = g.images * per_image;
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int pixel = first_pixel + (int)(threadIdx.x % 32) / 4 + 8 * k,
                      image = v.dense ? 0 : v.image(v.line(pixel));
            there[k] = pixel < pixels;
            at[k] = image * g.y_image + (pixel - image * per_image) * g.y_pixel;
        }
    }
};

/* Residuals of a lane's eight filters in two rows; of floats there are none. */
struct lane_residual {
    uint4 row[2];

    __device__ __forceinline__ void load(const cuda_qgemm &g, const view &v, const lane_rows &rows,
                                         int filter)
    {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            row[k] = make_uint4(0, 0, 0, 0);
            if (g.residual == GRT_DTYPE_NONE || !rows.there[k] || filter >= g.n)
                continue;
            const uint8_t *from = v.residual + (rows.at[k] + filter) * g.y_size;
            if (g.y_size == 1) {
                const uint2 word = *(const uint2 *)from;
                row[k].x = word.x;
                row[k].y = word.y;
            } else {
                row[k] = *(const uint4 *)from;
            }
        }
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

/* True if results need neither limits that saturation does not have nor any for their rounding by an
 * addition. */
__device__ __forceinline__ bool cuda_qsaturates(const cuda_qgemm &g, const cuda_qhead &h)
{
    const float levels = 256.0f, largest = 4e6f,
                bound = (g.sum ? levels * fabsf(h.y_scale) : h.bound / h.y_unit) +
                        (g.residual == GRT_DTYPE_NONE && !g.row ? 0.0f : levels * fabsf(h.r_scale));
    const cuda_qlimits limits(h, g.sum);
    return bound < largest && cuda_qsaturation::fits(limits.low, limits.high, limits.zero, g.y);
}

/* A lane's eight results of a row. x: tiles as tensor cores leave them, of two rows. */
template <class F>
__device__ __forceinline__ uint2 limit_bytes(const cuda_qgemm &g, const cuda_qhead &h,
                                             float (&x)[F::TILES_N][4], int k, uint4 residual)
{
    if (g.residual != GRT_DTYPE_NONE) {
        const cuda_qresidual r(h, g.residual, g.sum);
#pragma unroll
        for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                x[t][2 * k + i] =
                    r.add(h, x[t][2 * k + i], (t < 2 ? residual.x : residual.y) ^ r.flip, t % 2 * 2 + i);
    }
    const cuda_qlimits limits(h, g.sum);
    uint32_t word[2];
#pragma unroll
    for (int w = 0; w < 2; w++)
        word[w] = cuda_qword(limits.byte(x[2 * w][2 * k]), limits.byte(x[2 * w][2 * k + 1]),
                             limits.byte(x[2 * w + 1][2 * k]), limits.byte(x[2 * w + 1][2 * k + 1]));
    return make_uint2(word[0], word[1]);
}

/* By all lanes of a warp: bytes of a lane's eight results, wherever their row begins, as words that hold some
 * of the next lane's where they must. left: results of the row from these on; 0: it is not there. */
__device__ __forceinline__ void store_unaligned(uint2 bytes, uint8_t *y, int left)
{
    const int lane = threadIdx.x & 3, lead = -(int)(uintptr_t)y & 3;
    const uint32_t next = __shfl_down_sync(0xffffffffu, bytes.x, 1, 4);
    const uint32_t word[2] = {__funnelshift_r(bytes.x, bytes.y, 8 * lead),
                              __funnelshift_r(bytes.y, next, 8 * lead)};
    if (lane == 0)
        for (int i = 0; i < min(lead, left); i++)
            y[i] = (uint8_t)(bytes.x >> 8 * i);
    if (lane == 3) /* others have what is behind */
        left = min(left, 8);
#pragma unroll
    for (int w = 0; w < 2; w++) {
        uint8_t *to = y + lead + 4 * w;
        const int some = left - lead - 4 * w;
        if (some >= 4)
            *(uint32_t *)to = word[w];
        else
            for (int i = 0; i < some; i++)
                to[i] = (uint8_t)(word[w] >> 8 * i);
    }
}

/* The same for results that are known to be in the range of roundings by an addition, and whose limits are
 * those of their type. SUM: those of a sum's, in front of whose residual there is another rounding. */
template <class F, bool RESIDUAL, bool SUM>
__device__ __forceinline__ uint2 saturate_bytes(const cuda_qgemm &g, const cuda_qhead &h,
                                                const float (&x)[F::TILES_N][4], int k, uint4 residual)
{
    const cuda_qresidual r(h, g.residual, SUM);
    const cuda_qlimits limits(h, SUM);
    const cuda_qsaturation saturation(limits.zero, g.y, limits.low);
    int32_t level[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float v = x[i / 2][2 * k + i % 2];
        if constexpr (RESIDUAL)
            v = r.add(h, v, (i < 4 ? residual.x : residual.y) ^ r.flip, i % 4);
        level[i] = saturation.level(v);
    }
    return make_uint2(saturation.word(level), saturation.word(level + 4));
}

template <class T> __device__ __forceinline__ float2 cuda_qgemm_tile_unpack(uint32_t word)
{
    const T *pair = (const T *)&word;
    return make_float2(cuda_widen(pair[0]), cuda_widen(pair[1]));
}

template <class T, class F>
__device__ __forceinline__ void store_halves(const cuda_qgemm &g, float (&x)[F::TILES_N][4], int k,
                                             uint4 residual, T *y)
{
    const uint32_t before[4] = {residual.x, residual.y, residual.z, residual.w};
    uint32_t word[4];
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++) {
        float2 pair = make_float2(x[t][2 * k], x[t][2 * k + 1]);
        if (g.residual != GRT_DTYPE_NONE) {
            const float2 r = cuda_qgemm_tile_unpack<T>(before[t]);
            pair.x += r.x;
            pair.y += r.y;
        }
        word[t] = tensor_core<T>::pair(pair.x, pair.y);
    }
    *(uint4 *)y = make_uint4(word[0], word[1], word[2], word[3]);
}

template <class F>
__device__ __forceinline__ void store_floats(const float (&x)[F::TILES_N][4], int k, float *y)
{
#pragma unroll
    for (int t = 0; t < F::TILES_N; t += 2)
        *(float4 *)(y + t * 2) =
            make_float4(x[t][2 * k], x[t][2 * k + 1], x[t + 1][2 * k], x[t + 1][2 * k + 1]);
}

template <class F>
__device__ __forceinline__ void store_row(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                          float (&x)[F::TILES_N][4], int k, int64_t at, uint4 residual)
{
    if (g.y_size == 1)
        *(uint2 *)((uint8_t *)v.y + at) = limit_bytes<F>(g, h, x, k, residual);
    else if (g.y == GRT_DTYPE_FLOAT)
        store_floats<F>(x, k, (float *)v.y + at);
    else if (g.y == GRT_DTYPE_FLOAT16)
        store_halves<__half, F>(g, x, k, residual, (__half *)v.y + at);
    else
        store_halves<__nv_bfloat16, F>(g, x, k, residual, (__nv_bfloat16 *)v.y + at);
}

/* Before what is not bounded by limits: of floats, and of numbers that are quantised behind. */
template <class F>
__device__ __forceinline__ void activate(const cuda_qgemm &g, const cuda_qhead &h, float (&x)[F::TILES_N][4])
{
    const float unit = 1.0f / h.y_unit;
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++) {
        if (g.y_size == 1 && g.act.kind == GRT_ACT_GELU_ERF)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[t][i] = cuda_qgelu(x[t][i]);
        else if (g.y == GRT_DTYPE_FLOAT)
            cuda_activate_all<float>(g.act, x[t]);
        else
            cuda_activate_all<__half>(g.act, x[t]);
        if (g.y_size == 1)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[t][i] *= unit;
    }
}

/* The numbers of a lane's columns, behind the rounding. */
template <class F>
__device__ __forceinline__ void add_row(const cuda_qgemm &g, const view &v, const cuda_qhead &h, int filter,
                                        float (&x)[F::TILES_N][4])
{
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[t][i] = cuda_qsum(h, x[t][i], v.finish.row[min(filter + t * 2 + (i & 1), g.n - 1)]);
}

/* 16 rows of sums. TOGETHER: by all lanes of a warp. */
template <class F, bool SUMS, bool TOGETHER = false>
__device__ __forceinline__ void store_lane(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                           const lane_columns &columns, const int32_t (&sum)[F::TILES_N][4],
                                           const int32_t (&row_sum)[4], const lane_rows &rows,
                                           const lane_residual &residual, int first_filter, bool in_eights)
{
    const int filter = first_filter + (int)(threadIdx.x & 3) * 8;
    float x[F::TILES_N][4];
#pragma unroll
    for (int t = 0; t < F::TILES_N; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[t][i] = columns.finish(t * 2 + (i & 1), sum[t][i], SUMS ? row_sum[i & 2] : 0);
    if (g.act.kind != GRT_ACT_NONE)
        activate<F>(g, h, x);
    if (g.row)
        add_row<F>(g, v, h, filter, x);
    if (TOGETHER && !in_eights && g.y_size == 1 && g.y_channel == 1 && g.residual == GRT_DTYPE_NONE) {
#pragma unroll
        for (int k = 0; k < 2; k++)
            store_unaligned(limit_bytes<F>(g, h, x, k, make_uint4(0, 0, 0, 0)),
                            (uint8_t *)v.y + rows.at[k] + filter, rows.there[k] ? max(g.n - filter, 0) : 0);
        return;
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (!rows.there[k] || filter >= g.n)
            continue;
        if (in_eights) {
            store_row<F>(g, v, h, x, k, rows.at[k] + filter, residual.row[k]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (filter + i < g.n)
                store_one(g, v, h, rows.at[k] + (filter + i) * g.y_channel, x[i / 2][2 * k + i % 2]);
    }
}

/* By whole warps. With SUMS there is no other kernel, whatever the length of rows. */
template <class F, bool SUMS>
__device__ __forceinline__ void
store_tile(const cuda_qgemm &g, const view &v, int32_t (&sum)[F::TILES_M][F::TILES_N][4],
           int32_t (&row_sum)[F::TILES_M][4], int first_pixel, int first_filter, bool in_eights)
{
    const cuda_qhead h = *v.finish.head;
    const int filter = first_filter + (int)(threadIdx.x & 3) * 8;
    lane_columns columns;
    columns.load(v.finish, first_filter, g.n, SUMS);
    lane_residual next;
    if (in_eights)
        next.load(g, v, lane_rows(g, v, first_pixel), filter);
#pragma unroll
    for (int m = 0; m < F::TILES_M; m++) {
        const lane_residual residual = next;
        if (in_eights && m + 1 < F::TILES_M)
            next.load(g, v, lane_rows(g, v, first_pixel + (m + 1) * TILE), filter);
        store_lane<F, SUMS, SUMS>(g, v, h, columns, sum[m], row_sum[m],
                                  lane_rows(g, v, first_pixel + m * TILE), residual, first_filter, in_eights);
    }
}

} // namespace

#endif
