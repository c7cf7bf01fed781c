/* SPDX-License-Identifier: Apache-2.0 */
/* See qtable.h. */
#include "backends/cuda/qtable.h"

#include "backends/cuda/walk.h"

namespace
{

enum { EACH = 16 };

/* A table for each lane of a warp, each in a bank of its own: whatever lanes look up, they do not wait for
 * each other. */
struct lane_tables {
    enum { LANES = 32, WORDS = 256 / 4 };
    uint32_t words[WORDS][LANES];

    __device__ __forceinline__ void fill(const uint8_t *table)
    {
        for (int i = threadIdx.x; i < WORDS * LANES; i += blockDim.x) {
            const uint8_t *of = table + i / LANES * 4;
            words[i / LANES][i % LANES] = of[0] | of[1] << 8 | of[2] << 16 | (uint32_t)of[3] << 24;
        }
    }
    __device__ __forceinline__ uint32_t byte(uint32_t i) const
    {
        return ((const uint8_t *)&words[i / 4][threadIdx.x % LANES])[i % 4];
    }
    __device__ __forceinline__ uint32_t four(uint32_t w) const
    {
        return byte(w & 0xFF) | byte(w >> 8 & 0xFF) << 8 | byte(w >> 16 & 0xFF) << 16 | byte(w >> 24) << 24;
    }
};

/* packs: of EACH bytes, behind which the others come one by one. */
__global__ void __launch_bounds__(CUDA_BLOCK)
    look_up(const uint8_t *x, const uint8_t *table, uint8_t flip, uint8_t *y, int64_t packs, int64_t n)
{
    __shared__ lane_tables t;
    const uint32_t flips = flip * 0x01010101u;
    t.fill(table);
    __syncthreads();
    CUDA_ITEMS (i, packs + n - packs * EACH) {
        if (i < packs) {
            const uint4 w = ((const uint4 *)x)[i];
            ((uint4 *)y)[i] = make_uint4(t.four(w.x ^ flips), t.four(w.y ^ flips), t.four(w.z ^ flips),
                                         t.four(w.w ^ flips));
        } else {
            const int64_t k = packs * EACH + i - packs;
            y[k] = (uint8_t)t.byte(x[k] ^ flip);
        }
    }
}

} // namespace

grt_status cuda_qtable_enqueue(const cuda_device *device, const void *x, const uint8_t *table, uint8_t flip,
                               void *y, int64_t n, cudaStream_t stream)
{
    enum { MOST_BLOCKS = 8 /* of a multiprocessor: each fills its tables */ };
    const unsigned most = (unsigned)device->prop.multiProcessorCount * (unsigned)MOST_BLOCKS;
    const int64_t packs = cuda_aligned(x, EACH) && cuda_aligned(y, EACH) ? n / EACH : 0;
    if (n <= 0)
        return GRT_OK;
    const unsigned all = cuda_grid(n - (EACH - 1) * packs), blocks = all < most ? all : most;
    look_up<<<blocks, CUDA_BLOCK, 0, stream>>>((const uint8_t *)x, table, flip, (uint8_t *)y, packs, n);
    CUDA_LAUNCHED();
    return GRT_OK;
}
