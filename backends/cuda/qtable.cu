/* SPDX-License-Identifier: Apache-2.0 */
/* See qtable.h. */
#include "backends/cuda/qtable.h"

#include "backends/cuda/lane_tables.cuh"
#include "backends/cuda/walk.h"

namespace
{

enum { EACH = 16 };

/* packs: of EACH bytes, behind which the others come one by one. */
__global__ void __launch_bounds__(CUDA_BLOCK)
    look_up(const uint8_t *x, const uint8_t *table, uint8_t flip, uint8_t *y, int64_t packs, int64_t n)
{
    __shared__ lane_tables t;
    const int lane = threadIdx.x % lane_tables::LANES;
    t.fill(table, flip, threadIdx.x, blockDim.x);
    __syncthreads();
    CUDA_ITEMS (i, packs + n - packs * EACH) {
        if (i < packs) {
            const uint4 w = ((const uint4 *)x)[i];
            ((uint4 *)y)[i] =
                make_uint4(t.four(w.x, lane), t.four(w.y, lane), t.four(w.z, lane), t.four(w.w, lane));
        } else {
            const int64_t k = packs * EACH + i - packs;
            y[k] = (uint8_t)t.one(x[k], lane);
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
