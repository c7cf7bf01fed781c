/* SPDX-License-Identifier: Apache-2.0 */
/* How gemm.h's kernel finishes a warp's sums: residual, activation, and the way to memory. */
#ifndef GRT_BACKENDS_CUDA_GEMM_FINISH_CUH
#define GRT_BACKENDS_CUDA_GEMM_FINISH_CUH

#include "backends/cuda/activate.cuh"
#include "backends/cuda/gemm_work.cuh"
#include "backends/cuda/tensor_core.cuh"

namespace
{

template <class T> struct gemm_pair {
    using word_type = uint32_t;
    static __device__ __forceinline__ float2 widen(uint32_t word)
    {
        if constexpr (std::is_same<T, __half>::value)
            return __half22float2(*(const __half2 *)&word);
        else
            return __bfloat1622float2(*(const __nv_bfloat162 *)&word);
    }
    /* Rounding keeps the order, so numbers may be bounded behind it. NaN goes through. */
    static __device__ __forceinline__ uint32_t bounded(uint32_t word, uint32_t low, uint32_t high)
    {
        if constexpr (std::is_same<T, __half>::value) {
            const __half2 v = __hmin2_nan(__hmax2_nan(*(const __half2 *)&word, *(const __half2 *)&low),
                                          *(const __half2 *)&high);
            return *(const uint32_t *)&v;
        } else {
            const __nv_bfloat162 v =
                __hmin2_nan(__hmax2_nan(*(const __nv_bfloat162 *)&word, *(const __nv_bfloat162 *)&low),
                            *(const __nv_bfloat162 *)&high);
            return *(const uint32_t *)&v;
        }
    }
};

template <> struct gemm_pair<float> {
    using word_type = float2;
    static __device__ __forceinline__ float2 widen(float2 word)
    {
        return word;
    }
};

/* As cuBLASLt has it: the tanh form, which differs from the exact one by at most 5e-4. */
static __device__ __forceinline__ float gemm_gelu(float x)
{
    float t;
    const float u = x * fmaf(x * x, 0.0356774081f, 0.797884561f), h = 0.5f * x;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(u));
    return fmaf(h, t, h);
}

/* Of float32: bounds, or an activation, unless it is strict by the hardware's exponential, which is off by
 * less than what TF32 operands are rounded by. Code for GELU alone makes no calls, for which sums would leave
 * their registers. */
template <class F, gemm_end END, int N>
__device__ __forceinline__ void gemm_activate_floats(const gemm_work &work, float (&x)[N])
{
    using kind = typename std::conditional<F::IS_STRICT, float, __half>::type;
    if constexpr (END == GEMM_CURVED) {
        cuda_activate_all<kind>(work.act, x);
    } else if constexpr (END == GEMM_GELU) {
        if (work.act.kind == GRT_ACT_GELU_ERF)
            cuda_activate_all<kind>(grt_act{GRT_ACT_GELU_ERF}, x);
        else
            cuda_activate_all<kind>(grt_act{GRT_ACT_GELU_TANH}, x);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = cuda_bounded(x[i], __uint_as_float(work.low), __uint_as_float(work.high));
    }
}

template <class T, gemm_end END>
__device__ __forceinline__ uint32_t gemm_activate(const gemm_work &work, float x, float y)
{
    if constexpr (END == GEMM_GELU)
        return tensor_core<T>::pair(gemm_gelu(x), gemm_gelu(y));
    else if constexpr (END == GEMM_BOUNDS || END == GEMM_WOVEN)
        return gemm_pair<T>::bounded(tensor_core<T>::pair(x, y), work.low, work.high);
    else
        return tensor_core<T>::pair(x, y);
}

template <class T> __device__ __forceinline__ uint4 gemm_activate_chunk(const gemm_work &work, uint4 chunk)
{
    uint32_t word[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
    float v[8];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 pair = gemm_pair<T>::widen(word[k]);
        v[2 * k] = pair.x;
        v[2 * k + 1] = pair.y;
    }
    cuda_activate_all<T>(work.act, v);
#pragma unroll
    for (int k = 0; k < 4; k++)
        word[k] = tensor_core<T>::pair(v[2 * k], v[2 * k + 1]);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* Where a chunk of 16 bytes of a warp's results lies: rows that are read together lie in different banks. */
static __device__ __forceinline__ char *gemm_chunk(char *out, int row, int chunk)
{
    return out + row * PANEL_ROW + ((chunk ^ (row & 7)) << 4);
}

/* The warp's rows from `row` on, and PANEL_COLUMNS from `column` on, 16 bytes at once. */
template <class F> struct gemm_lines {
    enum { LANE_ROWS = 32 / F::PANEL_CHUNKS };
    const int chunk = threadIdx.x % F::PANEL_CHUNKS, first = threadIdx.x % 32 / F::PANEL_CHUNKS;

    template <class T>
    __device__ __forceinline__ void read(const gemm_work &work, int row, int column,
                                         uint4 (&to)[F::READS]) const
    {
        const int at = column + chunk * 8;
#pragma unroll
        for (int i = 0; i < F::READS; i++) {
            const int line = row + first + i * LANE_ROWS;
            to[i] = make_uint4(0, 0, 0, 0);
            if (work.residual && line < work.rows && at < work.columns)
                to[i] = *(const uint4 *)((const T *)work.residual + (size_t)line * work.columns + at);
        }
    }
    __device__ __forceinline__ void put(char *out, const uint4 (&from)[F::READS]) const
    {
#pragma unroll
        for (int i = 0; i < F::READS; i++)
            *(uint4 *)gemm_chunk(out, first + i * LANE_ROWS, chunk) = from[i];
    }
    /* Activations are a loop: written out, they would be most of a kernel. */
    template <class T, gemm_end END>
    __device__ __forceinline__ void write(const gemm_work &work, int row, int column, char *out) const
    {
        const int at = column + chunk * 8;
#pragma unroll(END == GEMM_CURVED ? 1 : F::READS)
        for (int i = 0; i < F::READS; i++) {
            const int line = row + first + i * LANE_ROWS;
            uint4 v = *(const uint4 *)gemm_chunk(out, first + i * LANE_ROWS, chunk);
            if constexpr (END == GEMM_CURVED)
                v = gemm_activate_chunk<T>(work, v);
            if (line < work.rows && at < work.columns)
                *(uint4 *)((T *)work.y + gemm_result_at<END>(work, line, at)) = v;
        }
    }
};

static __device__ __forceinline__ void gemm_store_matrices(char *at, const uint32_t (&word)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(at)),
                 "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
}

/* A panel of results goes by way of shared memory, where its residuals lie. */
template <class T, class F, gemm_end END>
__device__ __forceinline__ void gemm_finish(const gemm_work &work, char *out, float (*sum)[4])
{
    const int lane = threadIdx.x % 32, row = (lane >> 3 & 1) * 8 + (lane & 7);
#pragma unroll
    for (int i = 0; i < F::PANEL_CHUNKS; i += 2) {
        char *at = gemm_chunk(out, row, i + (lane >> 4));
        uint32_t word[4];
        if (work.residual) {
            load_matrices(word, at);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float2 v = gemm_pair<T>::widen(word[k]);
                sum[i + k / 2][k % 2 * 2] += v.x;
                sum[i + k / 2][k % 2 * 2 + 1] += v.y;
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            word[k] = gemm_activate<T, END>(work, sum[i + k / 2][k % 2 * 2], sum[i + k / 2][k % 2 * 2 + 1]);
        gemm_store_matrices(at, word);
    }
}

/* 8 columns of a split sum. */
template <class T, class F, gemm_end END>
__device__ __forceinline__ void gemm_finish_pair(const gemm_work &work, int row, int column, float (&v)[4])
{
    const int at = column + (threadIdx.x & 3) * 2;
    const auto to = [&](int r) { return (size_t)(row + 8 * r) * work.columns + at; };
    const auto is_there = [&](int r) { return row + 8 * r < work.rows && at < work.columns; };
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (work.residual && is_there(r)) {
            const float2 added = gemm_pair<T>::widen(
                *(const typename gemm_pair<T>::word_type *)((const T *)work.residual + to(r)));
            v[2 * r] += added.x;
            v[2 * r + 1] += added.y;
        }
    gemm_activate_floats<F, END>(work, v);
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (is_there(r)) {
            T *y = (T *)work.y + gemm_result_at<END>(work, row + 8 * r, at);
            if constexpr (sizeof(T) == 4)
                *(float2 *)y = make_float2(v[2 * r], v[2 * r + 1]);
            else
                *(uint32_t *)y = tensor_core<T>::pair(v[2 * r], v[2 * r + 1]);
        }
}

/* Results of 4 bytes leave as they are: lanes side by side exchange pairs, so that each has four columns of
 * one row. */
template <class F> struct gemm_float_lines {
    enum { CHUNKS = 4 /* that a lane has residuals of at once, of 8 columns each */ };
    const int odd = threadIdx.x & 1, line = threadIdx.x % 32 / 4 + odd * 8,
              first = (threadIdx.x >> 1 & 1) * 4;

    __device__ __forceinline__ bool find(const gemm_work &work, int row, int column, size_t &at) const
    {
        at = (size_t)(row + line) * work.columns + column + first;
        return row + line < work.rows && column + first < work.columns;
    }
    __device__ __forceinline__ void read(const gemm_work &work, int row, int column,
                                         float4 (&to)[CHUNKS]) const
    {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            size_t at;
            to[i] = make_float4(0, 0, 0, 0);
            if (work.residual && find(work, row, column + i * 8, at))
                to[i] = *(const float4 *)((const float *)work.residual + at);
        }
    }
    /* By name, as the compiler makes four stores of an assignment. */
    static __device__ __forceinline__ void store(float *to, const float (&v)[4])
    {
        asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]),
                     "f"(v[3])
                     : "memory");
    }
    template <gemm_end END>
    __device__ __forceinline__ void finish(const gemm_work &work, int row, int column, const float (*sum)[4],
                                           const float4 (&residual)[CHUNKS]) const
    {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            const float *s = sum[i];
            const float x = __shfl_xor_sync(0xffffffffu, odd ? s[0] : s[2], 1),
                        y = __shfl_xor_sync(0xffffffffu, odd ? s[1] : s[3], 1);
            const float4 more = residual[i];
            float v[4] = {(odd ? x : s[0]) + more.x, (odd ? y : s[1]) + more.y, (odd ? s[2] : x) + more.z,
                          (odd ? s[3] : y) + more.w};
            size_t at;
            gemm_activate_floats<F, END>(work, v);
            if (find(work, row, column + i * 8, at)) {
                if constexpr (END == GEMM_WOVEN)
                    at = gemm_result_at<END>(work, row + line, column + i * 8 + first);
                store((float *)work.y + at, v);
            }
        }
    }
};

/* A tile's results. The residuals of its first panel are read before the sum. What a thread keeps are
 * variables of the kernel: as parts of an object they cost registers (nvcc 13.0). */
template <class T, class F, gemm_end END> struct gemm_out {
    using lines_type = gemm_lines<F>;
    using residual_type = uint4[F::READS];

    static __device__ __forceinline__ void begin(const gemm_work &work, const lines_type &lines, int row,
                                                 int column, residual_type &residual)
    {
        lines.template read<T>(work, row, column, residual);
    }
    static __device__ __forceinline__ void finish(const gemm_work &work, const lines_type &lines, char *out,
                                                  int row, int column, float (*sum)[4], bool is_last,
                                                  residual_type &residual)
    {
        if (work.residual) {
            lines.put(out, residual);
            if (!is_last)
                begin(work, lines, row, column + F::PANEL_COLUMNS, residual);
            __syncwarp();
        }
        gemm_finish<T, F, END>(work, out, sum);
        __syncwarp();
        lines.template write<T, END>(work, row, column, out);
        __syncwarp();
    }
};
template <class F, gemm_end END> struct gemm_out<float, F, END> {
    using lines_type = gemm_float_lines<F>;
    using residual_type = float4[lines_type::CHUNKS];

    static __device__ __forceinline__ void begin(const gemm_work &work, const lines_type &lines, int row,
                                                 int column, residual_type &residual)
    {
        lines.read(work, row, column, residual);
    }
    static __device__ __forceinline__ void finish(const gemm_work &work, const lines_type &lines, char *,
                                                  int row, int column, float (*sum)[4], bool is_last,
                                                  residual_type &residual)
    {
#pragma unroll
        for (int i = 0; i < F::PANEL_CHUNKS; i += lines_type::CHUNKS) {
            const int next = i + lines_type::CHUNKS;
            lines.template finish<END>(work, row, column + i * 8, sum + i, residual);
            if (work.residual && (next < F::PANEL_CHUNKS || !is_last))
                begin(work, lines, row, column + next * 8, residual);
        }
    }
};

} // namespace

#endif
