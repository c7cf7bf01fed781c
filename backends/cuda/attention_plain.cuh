/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of attention that takes everything. A block works on a few query rows of one head: tiles of keys
 * and values pass through shared memory, softmax is online (running maximum and sum), so scores reach memory
 * only as an output. Keys that causality, window or padding exclude are skipped. Arithmetic is float32, or
 * double for double. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_PLAIN_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_PLAIN_CUH

#include "backends/cuda/attention.cuh"

namespace
{

enum { WARPS = 4, ROWS = 4, TILE = 32, BLOCK_ROWS = WARPS * ROWS, THREADS = WARPS * 32, MAX_VALUES = 512 };

__device__ __forceinline__ float exponential(float x)
{
    return expf(x);
}
__device__ __forceinline__ double exponential(double x)
{
    return exp(x);
}

/* VALUES: elements of a value row that each lane of a warp sums up. */
template <class T, int VALUES>
__global__ void __launch_bounds__(THREADS)
    attend(const __grid_constant__ attention_shape s, const __grid_constant__ attention_data d)
{
    using W = typename cuda_wide<T>::type;
    extern __shared__ double shared[];
    const int64_t key_step = s.size + 1; /* padding: lanes mostly hit different banks */
    W *keys = (W *)shared, *values = keys + TILE * key_step, *queries = values + TILE * s.v_size;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int64_t blocks = (s.q_len + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (int64_t task = blockIdx.x; task < s.batch * s.q_heads * blocks; task += gridDim.x) {
        const int64_t batch = task / (s.q_heads * blocks), head = task / blocks % s.q_heads,
                      first = task % blocks * BLOCK_ROWS;
        const int64_t kv_head = head / (s.q_heads / s.kv_heads);
        const int64_t n_rows = s.q_len - first < BLOCK_ROWS ? s.q_len - first : BLOCK_ROWS;
        int64_t from = 0, to = s.total, unused, lo[ROWS], hi[ROWS];
        if (!d.qk) { /* both limits are monotonic in the row */
            grt_attention_range(&s, d.nonpad, batch, first, &from, &unused);
            grt_attention_range(&s, d.nonpad, batch, first + n_rows - 1, &unused, &to);
        }
        __syncthreads(); /* the previous task may still read this memory */
        for (int64_t i = threadIdx.x; i < n_rows * s.size; i += THREADS)
            queries[i] = cuda_widen(
                ((const T *)
                     d.q)[batch * s.q.batch + head * s.q.head + (first + i / s.size) * s.q.row + i % s.size]);
        W top[ROWS], sum[ROWS], result[ROWS][VALUES];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = warp * ROWS + r;
            lo[r] = hi[r] = 0;
            if (row < n_rows)
                grt_attention_range(&s, d.nonpad, batch, first + row, &lo[r], &hi[r]);
            top[r] = -CUDART_INF_F;
            sum[r] = 0;
#pragma unroll
            for (int v = 0; v < VALUES; v++)
                result[r][v] = 0;
        }
        for (int64_t tile = from; tile < to; tile += TILE) {
            __syncthreads();
            for (int64_t i = threadIdx.x; i < TILE * s.size; i += THREADS) {
                const int64_t j = i / s.size, c = i % s.size;
                keys[j * key_step + c] =
                    tile + j < to
                        ? cuda_widen(key_row<T>(s, d.k, d.past_key, s.k, s.size, batch, kv_head, tile + j)[c])
                        : (W)0;
            }
            for (int64_t i = threadIdx.x; i < TILE * s.v_size; i += THREADS) {
                const int64_t j = i / s.v_size, c = i % s.v_size;
                values[i] = tile + j < to ? cuda_widen(key_row<T>(s, d.v, d.past_value, s.v, s.v_size, batch,
                                                                  kv_head, tile + j)[c])
                                          : (W)0;
            }
            __syncthreads();
            W score[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                score[r] = 0;
            if (warp * ROWS < n_rows)
                for (int64_t c = 0; c < s.size; c++) {
                    const W key = keys[lane * key_step + c];
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        score[r] += queries[(warp * ROWS + r) * s.size + c] * key;
                }
            const int64_t j = tile + lane;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const int64_t row = warp * ROWS + r;
                if (row >= n_rows)
                    continue; /* the same for the whole warp */
                const int64_t qk_at = ((batch * s.q_heads + head) * s.q_len + first + row) * s.total + j;
                W x = score[r] * (W)s.scale;
                if (d.qk && s.mode == 0 && j < s.total)
                    cuda_store<W>(d.qk, s.qk_dtype, qk_at, x);
                if (s.softcap > 0)
                    x = (W)s.softcap * (W)tanh(x / (W)s.softcap);
                if (d.qk && s.mode == 1 && j < s.total)
                    cuda_store<W>(d.qk, s.qk_dtype, qk_at, x);
                if (j < lo[r] || j >= hi[r])
                    x = -CUDART_INF_F;
                else
                    x = masked<W>(s, d.mask,
                                  batch * s.mask_strides[0] + head * s.mask_strides[1] +
                                      (first + row) * s.mask_strides[2] + j * s.mask_strides[3],
                                  x);
                if (d.qk && s.mode >= 2 && j < s.total)
                    cuda_store<W>(d.qk, s.qk_dtype, qk_at, x);
                const W highest = cuda_top::join<W>(top[r], cuda_warp_reduce<cuda_top, W>(x));
                if (highest == (W)-CUDART_INF_F)
                    continue; /* no key yet */
                const W shrink = exponential(top[r] - highest), weight = exponential(x - highest);
                top[r] = highest;
                sum[r] = sum[r] * shrink + cuda_warp_reduce<cuda_sum, W>(weight);
#pragma unroll
                for (int v = 0; v < VALUES; v++)
                    result[r][v] *= shrink;
                for (int k = 0; k < TILE; k++) {
                    const W w = __shfl_sync(0xffffffffu, weight, k);
#pragma unroll
                    for (int v = 0; v < VALUES; v++)
                        if (v * 32 + lane < s.v_size)
                            result[r][v] += w * values[k * s.v_size + v * 32 + lane];
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = warp * ROWS + r;
            if (row >= n_rows)
                continue;
            const W inverse = top[r] == (W)-CUDART_INF_F ? (W)0 : 1 / sum[r];
            T *y = (T *)d.y + batch * s.y.batch + head * s.y.head + (first + row) * s.y.row;
#pragma unroll
            for (int v = 0; v < VALUES; v++)
                if (v * 32 + lane < s.v_size)
                    y[v * 32 + lane] = cuda_narrow<T, W>(result[r][v] * inverse);
            if (!d.qk || s.mode != 3)
                continue;
            /* Each lane comes back to the masked scores that it has stored. */
            for (int64_t j = lane; j < s.total; j += 32) {
                const int64_t at = ((batch * s.q_heads + head) * s.q_len + first + row) * s.total + j;
                const W x = cuda_load<W>(d.qk, s.qk_dtype, at);
                cuda_store<W>(d.qk, s.qk_dtype, at, inverse == 0 ? (W)0 : exponential(x - top[r]) * inverse);
            }
        }
    }
}

} // namespace
#endif
