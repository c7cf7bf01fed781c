/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in strict float32, without tensor cores. A warp has 4 x R query rows: lanes in 4 groups of rows,
 * 8 lanes to a row. Tiles of 32 keys and values pass through shared memory in two stages; a lane computes R
 * rows by 4 keys of the scores and R rows by an eighth of the columns of the result in registers, from reads
 * of 16 bytes. Weights are exchanged through shared memory of the warp. Rows with few queries and many
 * keys are split as in attention_flash.cu. */
#include "backends/cuda/attention_tile.cuh"

namespace
{

enum { TILE = 32, STAGES = 2, GROUPS = 4, LANES = 8, KEYS = TILE / LANES };
/* Padded: four rows accessed at once are in different banks. */
enum { WEIGHT_STRIDE = TILE + 8 };

__device__ __forceinline__ void read_four(float *to, const float *from)
{
    const float4 x = *(const float4 *)from;
    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
}

/* Over the lanes of a row. */
template <class Op> __device__ __forceinline__ float over_row(float x)
{
    for (int step = 1; step < LANES; step *= 2)
        x = Op::join(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* R: rows of a lane. GENERAL: with a mask or a softcap. */
template <int SIZE, int R, int WARPS, bool GENERAL>
__global__ void __launch_bounds__(WARPS * 32)
    cuda_attention_float_attend(const __grid_constant__ attention_shape s,
                                const __grid_constant__ attention_data d, uint32_t tasks)
{
    enum {
        THREADS = WARPS * 32,
        WARP_ROWS = GROUPS * R,
        BLOCK_ROWS = WARPS * WARP_ROWS,
        STRIDE = SIZE + row_pad<float>,
        VECTORS = SIZE / 32
    };
    extern __shared__ float4 memory[];
    float *keys = (float *)memory, *values = keys + STAGES * TILE * STRIDE,
          *queries = values + STAGES * TILE * STRIDE;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = lane / LANES, column = lane % LANES;
    float *weights = queries + BLOCK_ROWS * STRIDE + warp * WARP_ROWS * WEIGHT_STRIDE;
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const attention_task t = attention_task_at(s, d.nonpad, task, BLOCK_ROWS, TILE);
        const bool idle = t.first + warp * WARP_ROWS >= t.rows; /* a warp without rows only fetches */
        __syncthreads(); /* the previous task may still read this memory */
        for (int i = threadIdx.x; i < BLOCK_ROWS * (SIZE / 4); i += THREADS) {
            const int64_t r = t.first + i / (SIZE / 4);
            const attention_row row = attention_row_at(s, t, r < t.rows ? r : 0);
            fetch(queries + i / (SIZE / 4) * STRIDE + i % (SIZE / 4) * 4,
                  (const float *)d.q + attention_at(s.q, t.batch, row) + i % (SIZE / 4) * 4, r < t.rows);
        }
        if (t.from < t.to) {
            fetch_keys<float, SIZE, true, TILE, THREADS>(s, d, t, t.from, padded_rows<float, SIZE>{keys});
            fetch_values<float, SIZE, true, TILE, THREADS>(s, d, t, t.from, padded_rows<float, SIZE>{values});
        }
        commit();
        float top[R], sum[R], result[R][4 * VECTORS];
        int64_t lo[R], hi[R], mask_at[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int64_t i = t.first + warp * WARP_ROWS + r * GROUPS + group;
            const attention_row row = attention_row_at(s, t, i < t.rows ? i : 0);
            top[r] = -CUDART_INF_F;
            sum[r] = 0;
            lo[r] = hi[r] = 0;
            if (i < t.rows)
                grt_attention_range(&s, d.nonpad, t.batch, row.query, &lo[r], &hi[r]);
            mask_at[r] = GENERAL ? attention_mask_at(s, t.batch, row) : 0;
#pragma unroll
            for (int c = 0; c < 4 * VECTORS; c++)
                result[r][c] = 0;
        }
        const float *own_queries = queries + (warp * WARP_ROWS + group) * STRIDE;
        int stage = 0;
        for (int64_t tile = t.from; tile < t.to; tile += TILE, stage ^= 1) {
            const float *tile_keys = keys + stage * TILE * STRIDE,
                        *tile_values = values + stage * TILE * STRIDE;
            if (tile + TILE < t.to) {
                const int next = (stage ^ 1) * TILE * STRIDE;
                fetch_keys<float, SIZE, true, TILE, THREADS>(s, d, t, tile + TILE,
                                                             padded_rows<float, SIZE>{keys + next});
                fetch_values<float, SIZE, true, TILE, THREADS>(s, d, t, tile + TILE,
                                                               padded_rows<float, SIZE>{values + next});
            }
            commit();
            wait_for<1>();
            __syncthreads();
            if (!idle) {
                float score[R][KEYS];
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int k = 0; k < KEYS; k++)
                        score[r][k] = 0;
#pragma unroll 4
                for (int c = 0; c < SIZE; c += 4) {
                    float key[KEYS][4];
#pragma unroll
                    for (int k = 0; k < KEYS; k++)
                        read_four(key[k], tile_keys + (k * LANES + column) * STRIDE + c);
#pragma unroll
                    for (int r = 0; r < R; r++) {
                        float query[4];
                        read_four(query, own_queries + r * GROUPS * STRIDE + c);
#pragma unroll
                        for (int k = 0; k < KEYS; k++)
#pragma unroll
                            for (int i = 0; i < 4; i++)
                                score[r][k] = fmaf(query[i], key[k][i], score[r][k]);
                    }
                }
#pragma unroll
                for (int r = 0; r < R; r++) {
                    float highest = top[r];
#pragma unroll
                    for (int k = 0; k < KEYS; k++) {
                        const int64_t j = tile + k * LANES + column;
                        if (GENERAL)
                            score[r][k] =
                                attention_score(s, d.mask, mask_at[r], score[r][k], j, lo[r], hi[r]);
                        else
                            score[r][k] = j >= lo[r] && j < hi[r] ? score[r][k] * ((float)s.scale * LOG2E)
                                                                  : -CUDART_INF_F;
                        highest = cuda_top::join<float>(highest, score[r][k]);
                    }
                    highest = over_row<cuda_top>(highest);
                    const float base = highest == -CUDART_INF_F ? 0.0f : highest; /* no key yet */
                    const float shrink = exp2f(top[r] - base);
                    top[r] = highest;
                    sum[r] *= shrink;
#pragma unroll
                    for (int k = 0; k < KEYS; k++) {
                        const float weight = exp2f(score[r][k] - base);
                        sum[r] += weight; /* of this lane's keys */
                        weights[(r * GROUPS + group) * WEIGHT_STRIDE + k * LANES + column] = weight;
                    }
#pragma unroll
                    for (int c = 0; c < 4 * VECTORS; c++)
                        result[r][c] *= shrink;
                }
                __syncwarp();
#pragma unroll 4
                for (int k = 0; k < TILE; k += 4) {
                    float weight[R][4];
#pragma unroll
                    for (int r = 0; r < R; r++)
                        read_four(weight[r], weights + (r * GROUPS + group) * WEIGHT_STRIDE + k);
#pragma unroll
                    for (int i = 0; i < 4; i++)
#pragma unroll
                        for (int v = 0; v < VECTORS; v++) {
                            float value[4];
                            read_four(value, tile_values + (k + i) * STRIDE + (v * LANES + column) * 4);
#pragma unroll
                            for (int r = 0; r < R; r++)
#pragma unroll
                                for (int c = 0; c < 4; c++)
                                    result[r][v * 4 + c] = fmaf(weight[r][i], value[c], result[r][v * 4 + c]);
                        }
                }
            }
            __syncthreads(); /* the stage is free */
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int64_t i = t.first + warp * WARP_ROWS + r * GROUPS + group;
            sum[r] = over_row<cuda_sum>(sum[r]);
            if (i >= t.rows)
                continue;
            const attention_row row = attention_row_at(s, t, i);
            const bool split = s.splits > 1;
            const float inverse = split         ? 1.0f
                                  : sum[r] > 0  ? 1 / sum[r]
                                  : sum[r] == 0 ? 0.0f
                                                : sum[r]; /* NaN stays */
            float *partial = split ? attention_partial_at(s, d.partial, t.batch, row, t.split) : nullptr;
            float *y = split ? partial : (float *)d.y + attention_at(s.y, t.batch, row);
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
#pragma unroll
                for (int c = 0; c < 4; c += 2)
                    *(float2 *)(y + (v * LANES + column) * 4 + c) =
                        make_float2(result[r][v * 4 + c] * inverse, result[r][v * 4 + c + 1] * inverse);
            if (split && column == 0)
                *(float2 *)(partial + SIZE) = make_float2(top[r], sum[r]);
        }
        wait_for<0>(); /* also for a task without keys, before its queries are overwritten */
    }
}

template <int SIZE, int R, int WARPS> constexpr size_t cuda_attention_float_shared_bytes()
{
    return (size_t)((2 * STAGES * TILE + GROUPS * R * WARPS) * (SIZE + row_pad<float>)+GROUPS * R * WARPS *
                    WEIGHT_STRIDE) *
           sizeof(float);
}

/* Call use with the kernel for a size, and the shared memory that it wants. */
template <int R, int WARPS, bool GENERAL, class F> void cuda_attention_float_with_kernel(int64_t size, F use)
{
    switch (size) {
    case 32:
        use(cuda_attention_float_attend<32, R, WARPS, GENERAL>,
            cuda_attention_float_shared_bytes<32, R, WARPS>());
        break;
    case 64:
        use(cuda_attention_float_attend<64, R, WARPS, GENERAL>,
            cuda_attention_float_shared_bytes<64, R, WARPS>());
        break;
    case 96:
        use(cuda_attention_float_attend<96, R, WARPS, GENERAL>,
            cuda_attention_float_shared_bytes<96, R, WARPS>());
        break;
    case 128:
        use(cuda_attention_float_attend<128, R, WARPS, GENERAL>,
            cuda_attention_float_shared_bytes<128, R, WARPS>());
        break;
    default:
        break;
    }
}

/* Rows per lane and warps per block, for many rows and for few. */
enum { MANY_ROWS = 4, MANY_WARPS = 4, FEW_ROWS = 2, FEW_WARPS = 2 };

template <bool GENERAL>
void cuda_attention_float_launch(const attention_shape *s, const attention_data *d, int multiprocessors,
                                 cudaStream_t stream)
{
    const int64_t large = attention_tasks(s, MANY_ROWS * MANY_WARPS * GROUPS),
                  small = attention_tasks(s, FEW_ROWS * FEW_WARPS * GROUPS);
    if (large >= 2 * multiprocessors && s->splits == 1)
        cuda_attention_float_with_kernel<MANY_ROWS, MANY_WARPS, GENERAL>(
            s->size, [&](auto kernel, size_t bytes) {
                kernel<<<cuda_blocks(large, 1), MANY_WARPS * 32, bytes, stream>>>(*s, *d, (uint32_t)large);
            });
    else
        cuda_attention_float_with_kernel<FEW_ROWS, FEW_WARPS, GENERAL>(
            s->size, [&](auto kernel, size_t bytes) {
                kernel<<<cuda_blocks(small, 1), FEW_WARPS * 32, bytes, stream>>>(*s, *d, (uint32_t)small);
            });
}

} // namespace

cudaError_t attention_float_prepare(const attention_shape *s)
{
    cudaError_t error = cudaSuccess;
    const auto allow = [&](auto kernel, size_t bytes) {
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)bytes);
    };
    cuda_attention_float_with_kernel<MANY_ROWS, MANY_WARPS, false>(s->size, allow);
    cuda_attention_float_with_kernel<MANY_ROWS, MANY_WARPS, true>(s->size, allow);
    cuda_attention_float_with_kernel<FEW_ROWS, FEW_WARPS, false>(s->size, allow);
    cuda_attention_float_with_kernel<FEW_ROWS, FEW_WARPS, true>(s->size, allow);
    return error;
}

void attention_float(const attention_shape *s, const attention_data *d, int multiprocessors,
                     cudaStream_t stream)
{
    if (d->mask || s->softcap > 0)
        cuda_attention_float_launch<true>(s, d, multiprocessors, stream);
    else
        cuda_attention_float_launch<false>(s, d, multiprocessors, stream);
}
