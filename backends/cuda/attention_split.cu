/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel an attention gets, and splits: where there are few rows and many keys, as when a language
 * model adds one token to a long past, blocks share the keys of a row. Each writes its part to the workspace:
 *
 *   [batch, query head, query, split]: the weighted values before division, the largest score (times
 * log2(e)), the sum of the weights
 *
 * and a second kernel joins the parts. */
#include "backends/cuda/attention_tile.cuh"
#include "backends/cuda/overlap.cuh"

#include "src/base/checked.h"

/* Minimum keys per split, for the second kernel to pay. With few rows and many keys, warps share the keys
 * instead of a warpgroup. */
enum { SPLIT_KEYS = 128, LEAST_SPLITS = 4, MOST_SPLITS = 128, FOLD_QUERIES = 16, WARPGROUP_KEYS = 512 };

static bool divides(const attention_view &view, int64_t by)
{
    return view.batch % by == 0 && view.head % by == 0 && view.row % by == 0;
}

/* The columns of tiles that hold a head's queries and values; 0: there are no such tiles. */
static int columns_for(const attention_shape *s)
{
    static const int sizes[] = {32, 64, 96, 128, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (s->size <= sizes[i] && s->v_size <= sizes[i])
            return sizes[i];
    return 0;
}

static bool fits_tiles(const attention_shape *s, grt_dtype dtype)
{
    const int64_t vector = 16 / (int64_t)grt_dtype_size(dtype);
    return dtype != GRT_DTYPE_DOUBLE && s->size > 0 && s->v_size > 0 && s->columns > 0 &&
           s->size % vector == 0 && s->v_size % vector == 0 && divides(s->q, vector) &&
           divides(s->k, vector) && divides(s->v, vector) && divides(s->y, vector);
}

/* attention_float.cu has whole tiles alone, and a row of results in registers. */
static bool fits_float(const attention_shape *s)
{
    return attention_is_whole(s) && s->columns <= 128;
}

bool attention_tiles_aligned(const attention_data *d)
{
    const uintptr_t all = (uintptr_t)d->q | (uintptr_t)d->k | (uintptr_t)d->v | (uintptr_t)d->past_key |
                          (uintptr_t)d->past_value | (uintptr_t)d->y;
    return !d->qk && all % 16 == 0;
}

/* What attention_warpgroup.cu takes, it computes sooner, but for more than some keys with a mask of bool. */
static bool attention_by_keys_is_sooner(const attention_shape *s, grt_dtype dtype,
                                        const struct cudaDeviceProp *device)
{
    enum { MASKED_KEYS = 128 };
    return attention_keys_takes_many(s, dtype, device) &&
           (!attention_warpgroup_takes(s, dtype, device) ||
            (s->mask_dtype == GRT_DTYPE_BOOL && s->total > MASKED_KEYS));
}

void attention_choose(attention_shape *s, grt_dtype dtype, bool tf32, const struct cudaDeviceProp *device)
{
    s->kernel = ATTENTION_PLAIN;
    s->splits = 1;
    s->fold = 1;
    s->columns = columns_for(s);
    if (!fits_tiles(s, dtype) || s->q_heads == 0 || s->q_len == 0 || s->batch == 0)
        return;
    int64_t rows;
    if (!grt_mul_i64(s->batch, s->q_heads, &rows) || !grt_mul_i64(rows, s->q_len, &rows) ||
        rows > INT32_MAX || s->total > INT32_MAX)
        return;
    s->limited = s->causal || s->left >= 0 || s->right >= 0 || s->mask_len < s->total;
    s->group = s->q_heads / s->kv_heads;
    if (s->q_len <= FOLD_QUERIES)
        s->fold = s->group;
    s->heads = s->q_heads / s->fold;
    if (attention_keys_takes(s, dtype) || attention_by_keys_is_sooner(s, dtype, device)) {
        s->kernel = ATTENTION_KEYS;
        s->fold = s->group;
        s->heads = s->kv_heads;
        attention_keys_spread(s, device);
        return;
    }
    if (!attention_is_whole(s) && s->columns <= 128 && s->q_len <= FOLD_QUERIES && s->total <= WARPGROUP_KEYS)
        return; /* tiles would be mostly empty, and the plain kernel rounds less, but does not share keys */
    const bool strict = dtype == GRT_DTYPE_FLOAT && !tf32;
    if (strict && !fits_float(s))
        return;
    s->kernel = strict ? ATTENTION_FLOAT : ATTENTION_FLASH;
    const int64_t enough = 2 * (int64_t)device->multiProcessorCount;
    s->few = s->kernel == ATTENTION_FLASH && attention_flash_few(s, dtype, device);
    if (s->kernel == ATTENTION_FLASH && (!s->few || s->total <= WARPGROUP_KEYS)) {
        if (attention_warpgroup_takes(s, dtype, device) && (s->encode = cuda_tensor_map_find())) {
            s->kernel = ATTENTION_WARPGROUP;
            attention_warpgroup_choose(s, device->multiProcessorCount);
        } else if (attention_tf32_takes(s, dtype, device)) {
            s->kernel = ATTENTION_TF32;
        }
        if (s->kernel != ATTENTION_FLASH)
            return;
    }
    if (s->kernel == ATTENTION_FLASH && !s->few)
        return;
    const int64_t tasks = attention_tasks(s, 16); /* rows per block of either kernel with few rows */
    const int64_t wanted = enough / tasks < MOST_SPLITS ? enough / tasks : MOST_SPLITS;
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
