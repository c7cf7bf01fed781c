/* SPDX-License-Identifier: Apache-2.0 */
/* Splits: where there are few rows and many keys, as when a language model adds one token to a long past,
 * blocks share the keys of a row. Each writes its part to the workspace:
 *
 *   [batch, query head, query, split]: the weighted values before division, the largest score (times
 * log2(e)), the sum of the weights
 *
 * and a second kernel joins the parts. */
#include "backends/cuda/attention_tile.cuh"
#include "backends/cuda/overlap.cuh"

/* SPLIT_KEYS: minimum keys per split, for the second kernel to pay. */
enum { SPLIT_KEYS = 128, LEAST_SPLITS = 4, MOST_SPLITS = 128 };

void attention_split_keys(attention_shape *s, int multiprocessors)
{
    const int64_t tasks = attention_tasks(s, 16), /* rows per block of either kernel with few rows */
        enough = 2 * (int64_t)multiprocessors / tasks, wanted = enough < MOST_SPLITS ? enough : MOST_SPLITS;
    if (wanted < LEAST_SPLITS)
        return;
    int64_t share = (s->total + wanted - 1) / wanted;
    share = (share + SPLIT_KEYS - 1) / SPLIT_KEYS * SPLIT_KEYS;
    if (s->total >= LEAST_SPLITS * share)
        s->splits = (int)((s->total + share - 1) / share);
}

size_t attention_partial_bytes(const attention_shape *s)
{
    return s->splits > 1 && !s->clustered
               ? (size_t)(s->batch * s->q_heads * s->q_len * s->splits * (s->v_size + 2)) * sizeof(float)
               : 0;
}

/* A block a row, a thread a column. */
template <class T>
__global__ void merge(const __grid_constant__ attention_shape s, const float *partial, T *y)
{
    __shared__ float2 ends[MOST_SPLITS]; /* largest scores and sums */
    const int64_t step = s.v_size + 2;
    overlap_let_next_begin();
    overlap_wait();
    for (int64_t i = blockIdx.x; i < s.batch * s.q_heads * s.q_len; i += gridDim.x) {
        const attention_row row = {i / s.q_len % s.q_heads, i % s.q_len};
        const float *parts = partial + i * s.splits * step;
        __syncthreads(); /* the previous row may still be read */
        for (int k = threadIdx.x; k < s.splits; k += blockDim.x)
            ends[k] = *(const float2 *)(parts + k * step + s.v_size);
        __syncthreads();
        float top = -CUDART_INF_F, sum = 0, result = 0;
        for (int k = 0; k < s.splits; k++)
            top = cuda_top::join<float>(top, ends[k].x);
        const float base = top == -CUDART_INF_F ? 0.0f : top;
#pragma unroll 8
        for (int k = 0; k < s.splits; k++) {
            const float weight = exp2f(ends[k].x - base);
            sum += weight * ends[k].y;
            result += weight * parts[k * step + threadIdx.x];
        }
        const float inverse = sum > 0 ? 1 / sum : sum == 0 ? 0.0f : sum; /* NaN stays */
        y[attention_at(s.y, i / s.q_len / s.q_heads, row) + threadIdx.x] =
            cuda_narrow<T, float>(result * inverse);
    }
}

cudaError_t attention_merge(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                            cudaStream_t stream)
{
    const unsigned blocks = cuda_blocks(s->batch * s->q_heads * s->q_len, 1), threads = (unsigned)s->v_size;
    if (dtype == GRT_DTYPE_FLOAT16)
        return overlap_launch(overlaps, merge<__half>, blocks, threads, 0, stream, *s, d->partial,
                              (__half *)d->y);
    if (dtype == GRT_DTYPE_BFLOAT16)
        return overlap_launch(overlaps, merge<__nv_bfloat16>, blocks, threads, 0, stream, *s, d->partial,
                              (__nv_bfloat16 *)d->y);
    return overlap_launch(overlaps, merge<float>, blocks, threads, 0, stream, *s, d->partial, (float *)d->y);
}
