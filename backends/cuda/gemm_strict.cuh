/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gemm.h's kernel in strict float32, by three products in TF32. A number is its upper part in TF32
 * and what is left, rounded to TF32 once more: x y is taken as low high + high low + high high.
 *
 * Tensor cores cut as they add, which adds up. So a stage's products are summed there, small ones first, and
 * stages by float32 additions. */
#ifndef GRT_BACKENDS_CUDA_GEMM_STRICT_CUH
#define GRT_BACKENDS_CUDA_GEMM_STRICT_CUH

#include "backends/cuda/gemm_finish.cuh"
#include "backends/cuda/warpgroup_tf32.cuh"

namespace
{

/* Sums begin with the bias: column i * 8 + quad * 2 and the next, of both rows of a thread. */
template <class T, int N>
__device__ __forceinline__ void gemm_begin_sums(const char *bias, float (&sum)[N / 8][4])
{
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        float2 v = make_float2(0, 0);
        if (bias)
            v = gemm_pair<T>::widen(((const typename gemm_pair<T>::word_type *)bias)[i * 4 + quad]);
        sum[i][0] = sum[i][2] = v.x;
        sum[i][1] = sum[i][3] = v.y;
    }
}

/* What tensor cores leave of w is in its panel; `low` gets what they drop, in the same order. */
template <int MEMBERS, int BYTES>
__device__ __forceinline__ void gemm_lower_weights(const char (&w)[BYTES], char (&low)[BYTES])
{
    enum { EACH = BYTES / 16 / MEMBERS, DROPPED = 0x1FFF };
    static_assert(EACH * MEMBERS * 16 == BYTES, "");
    const auto low_of = [](float v) {
        const float upper = __uint_as_float(__float_as_uint(v) & ~(uint32_t)DROPPED);
        return __uint_as_float(tensor_core<float>::rounded(v - upper));
    };
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = i * MEMBERS + (int)threadIdx.x;
        const float4 v = ((const float4 *)w)[at];
        ((float4 *)low)[at] = make_float4(low_of(v.x), low_of(v.y), low_of(v.z), low_of(v.w));
    }
}

enum { GEMM_STRICT_STEPS = PANEL_ROW / PRODUCT_BYTES /* of a stage */ };

/* A thread's numbers of x in a stage, as mma.sync has them. Upper parts are rounded, so that what is dropped,
 * the product of both lower parts, has either sign. */
struct gemm_strict_rows {
    uint32_t high[GEMM_STRICT_STEPS][4], low[GEMM_STRICT_STEPS][4];

    __device__ __forceinline__ void read(const char *x)
    {
        const int lane = threadIdx.x % 32, line = lane / 4;
        const char *from = x + ((int)threadIdx.x / 32 * WARP_ROWS + line) * PANEL_ROW + lane % 4 * 4;
#pragma unroll
        for (int i = 0; i < GEMM_STRICT_STEPS * 4; i++) {
            const int chunk = i / 4 * 2 + i % 4 / 2, lower_line = i % 2;
            const float v = *(const float *)(from + lower_line * PANEL_ALIGNMENT + ((chunk ^ line) << 4));
            const uint32_t upper = tensor_core<float>::rounded(v);
            high[i / 4][i % 4] = upper;
            low[i / 4][i % 4] = tensor_core<float>::rounded(v - __uint_as_float(upper));
        }
    }
    /* Products in flight read them. */
    __device__ __forceinline__ void hold()
    {
#pragma unroll
        for (int i = 0; i < GEMM_STRICT_STEPS * 4; i++)
            asm volatile("" : "+r"(high[i / 4][i % 4]), "+r"(low[i / 4][i % 4])::"memory");
    }
};

template <int N>
__device__ __forceinline__ void gemm_add_sums(const float (&part)[N / 8][4], float (&sum)[N / 8][4])
{
#pragma unroll
    for (int i = 0; i < N / 8; i++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum[i][k] += part[i][k];
}

/* A stage's products: first those of lower parts. */
template <int N>
__device__ __forceinline__ void gemm_strict_products(const gemm_strict_rows &x, uint32_t w, uint32_t w_low,
                                                     float (&part)[N / 8][4])
{
    using product = warpgroup_tf32<N>;
    warpgroup_begin();
#pragma unroll
    for (int p = 0; p < GEMM_STRICT_STEPS; p++) {
        product::multiply(part, x.low[p], panel_descriptor(w + p * PRODUCT_BYTES), p > 0);
        product::multiply(part, x.high[p], panel_descriptor(w_low + p * PRODUCT_BYTES), 1);
    }
#pragma unroll
    for (int p = 0; p < GEMM_STRICT_STEPS; p++)
        product::multiply(part, x.high[p], panel_descriptor(w + p * PRODUCT_BYTES), 1);
    warpgroup_commit();
}

/* `low` counts stages, of which two have lower parts of weights: all threads meet between a stage's products
 * and the writing of the next but one's, which takes the same place. */
template <class F>
__device__ __forceinline__ void gemm_strict_sum(gemm_room<float, F> &room, int steps, bool adds_bias,
                                                ring &place, ring &low, float (&sum)[F::COLUMNS / 8][4])
{
    float part[F::COLUMNS / 8][4];
    gemm_strict_rows rows;
    int before = 0;
    const auto finish = [&]() {
        warpgroup_wait<0>();
        warpgroup_hold<F::COLUMNS>(part);
        rows.hold();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[before]);
        gemm_add_sums<F::COLUMNS>(part, sum);
    };
    barrier_wait(&room.full[place.at], place.phase);
    gemm_begin_sums<float, F::COLUMNS>(adds_bias ? room.bias[place.at] : nullptr, sum);
    for (int k = 0; k < steps; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        gemm_lower_weights<F::MEMBERS>(room.w[place.at], room.w_low[low.at]);
        if (k > 0)
            finish();
        rows.read(room.x[place.at]);
        publish_shared();
        asm volatile("bar.sync 1, %0;" ::"n"((int)F::MEMBERS) : "memory");
        warpgroup_hold<F::COLUMNS>(part);
        rows.hold();
        gemm_strict_products<F::COLUMNS>(rows, shared_address(room.w[place.at]),
                                         shared_address(room.w_low[low.at]), part);
        before = place.at;
        place.next(F::STAGES);
        low.next(2);
    }
    finish();
}

/* In float32, as it is. */
static __device__ __forceinline__ float gemm_sum_again(const gemm_work &work, int row, int column)
{
    const int line = work.by_line(row), image = work.by_lines(line), taps = work.steps / work.per_tap,
              top = (line - image * work.lines) * work.stride[0] - work.begin[0],
              left = (row - line * work.line) * work.stride[1] - work.begin[1];
    const float *filter = (const float *)work.w + (size_t)column * taps * work.channels;
    float sum = work.bias ? ((const float *)work.bias)[column] : 0;
    for (int t = 0; t < taps; t++, filter += work.channels) {
        const int down = t / work.taps_right, y = top + down * work.dilation[0],
                  x = left + (t - down * work.taps_right) * work.dilation[1];
        size_t pixel = row;
        if (work.is_windows) {
            if (y < 0 || x < 0 || y >= work.in[0] || x >= work.in[1])
                continue;
            pixel = ((size_t)image * work.in[0] + y) * work.in[1] + x;
        }
        const float *from = (const float *)work.x + pixel * work.channels;
        for (int c = 0; c < work.channels; c++)
            sum = fmaf(from[c], filter[c], sum);
    }
    return sum;
}

/* An infinite number has no lower part: what became NaN is summed again. The thread has columns `column` +
 * 8 i + 2 quad and the next of `row` and of the eighth row from there. */
template <int EIGHTHS>
__device__ __forceinline__ void gemm_mend(const gemm_work &work, int row, int column,
                                          float (&sum)[EIGHTHS][4])
{
    bool is_whole = true;
#pragma unroll
    for (int i = 0; i < EIGHTHS; i++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            is_whole = is_whole && sum[i][k] == sum[i][k];
    if (is_whole)
        return;
#pragma unroll 1
    for (int n = 0; n < EIGHTHS * 4; n++) {
        const int r = row + (n & 2) * 4, c = column + n / 4 * 8 + (threadIdx.x & 3) * 2 + (n & 1);
        float v = 0;
#pragma unroll
        for (int i = 0; i < EIGHTHS * 4; i++)
            v = i == n ? sum[i / 4][i % 4] : v;
        if (v == v || r >= work.rows || c >= work.columns)
            continue;
        v = gemm_sum_again(work, r, c);
#pragma unroll
        for (int i = 0; i < EIGHTHS * 4; i++)
            sum[i / 4][i % 4] = i == n ? v : sum[i / 4][i % 4];
    }
}

} // namespace

#endif
