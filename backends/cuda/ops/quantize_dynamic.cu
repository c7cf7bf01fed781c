/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear: blocks find the ranges of their parts, then each block joins these and quantises its
 * part. */
#include "backends/cuda/walk.h"
#include "src/base/tensor.h"

namespace
{

enum { MOST_BLOCKS = 512, PACK = 4, WARPS = CUDA_BLOCK / 32 };

struct range {
    float low, high;
};

__device__ __forceinline__ range joined(range a, range b)
{
    return {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high}; /* NaN does not count */
}

/* The range of a block's threads, for all of them. */
__device__ __forceinline__ range of_block(range r)
{
    __shared__ range parts[WARPS];
#pragma unroll
    for (int step = 16; step; step >>= 1)
        r = joined(r,
                   {__shfl_xor_sync(0xffffffffu, r.low, step), __shfl_xor_sync(0xffffffffu, r.high, step)});
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = r;
    __syncthreads();
    for (int i = 0; i < WARPS; i++)
        r = joined(r, parts[i]);
    return r;
}

/* The range always holds 0. */
__global__ void __launch_bounds__(CUDA_BLOCK)
    find_ranges(const float *x, int64_t packs, int64_t n, range *parts)
{
    range r = {0.0f, 0.0f};
    CUDA_ITEMS (i, packs) {
        const cuda_pack<float, PACK> v = ((const cuda_pack<float, PACK> *)x)[i];
#pragma unroll
        for (int k = 0; k < PACK; k++)
            r = joined(r, {v.v[k], v.v[k]});
    }
    CUDA_ITEMS (i, n - packs * PACK)
        r = joined(r, {x[packs * PACK + i], x[packs * PACK + i]});
    r = of_block(r);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = r;
}

__device__ __forceinline__ uint8_t quantised(float x, float scale, float zero)
{
    float q = rintf(x / scale) + zero;
    q = q > 0.0f ? q : 0.0f;
    return (uint8_t)(q < 255.0f ? q : 255.0f);
}

__global__ void __launch_bounds__(CUDA_BLOCK)
    quantise(const float *x, int64_t packs, int64_t n, const range *parts, int n_parts, uint8_t *y,
             float *out_scale, uint8_t *out_zero)
{
    range r = {0.0f, 0.0f};
    for (int i = threadIdx.x; i < n_parts; i += CUDA_BLOCK)
        r = joined(r, parts[i]);
    r = of_block(r);
    float scale = (r.high - r.low) / 255.0f;
    scale = scale > 0.0f ? scale : 1.0f; /* all zeros: any scale is right */
    const float middle = rintf(-r.low / scale), zero = middle < 0.0f     ? 0.0f
                                                       : middle > 255.0f ? 255.0f
                                                                         : middle;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *out_scale = scale;
        *out_zero = (uint8_t)zero;
    }
    CUDA_ITEMS (i, packs) {
        const cuda_pack<float, PACK> v = ((const cuda_pack<float, PACK> *)x)[i];
        cuda_pack<uint8_t, PACK> q;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            q.v[k] = quantised(v.v[k], scale, zero);
        ((cuda_pack<uint8_t, PACK> *)y)[i] = q;
    }
    CUDA_ITEMS (i, n - packs * PACK)
        y[packs * PACK + i] = quantised(x[packs * PACK + i], scale, zero);
}

grt_status reshape_dynamic(grt_reshape *r)
{
    r->workspace_bytes = MOST_BLOCKS * sizeof(range);
    return GRT_OK;
}

grt_status cuda_quantize_dynamic_run_dynamic(const grt_run *r)
{
    const float *x = (const float *)r->in[0]->data;
    uint8_t *y = (uint8_t *)r->out[0]->data;
    const int64_t n = grt_tensor_elements(r->in[0]),
                  packs = cuda_aligned(x, PACK * sizeof(float)) && cuda_aligned(y, PACK) ? n / PACK : 0;
    const unsigned wanted = cuda_grid(packs   ? packs
                                      : n > 0 ? n
                                              : 1),
                   blocks = wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS;
    range *parts = (range *)r->workspace;
    find_ranges<<<blocks, CUDA_BLOCK, 0, cuda_stream(r)>>>(x, packs, n, parts);
    CUDA_LAUNCHED();
    quantise<<<blocks, CUDA_BLOCK, 0, cuda_stream(r)>>>(x, packs, n, parts, (int)blocks, y,
                                                        (float *)r->out[1]->data, (uint8_t *)r->out[2]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "DynamicQuantizeLinear",
     .types = {GRT_BIT(FLOAT)},
     .reshape = reshape_dynamic,
     .run = cuda_quantize_dynamic_run_dynamic},
};

} // namespace
CUDA_KERNELS(quantize_dynamic, rows);
