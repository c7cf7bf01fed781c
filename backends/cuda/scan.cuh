/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums of counts: over the threads of a block, and along rows in device memory. */
#ifndef GRT_BACKENDS_CUDA_SCAN_CUH
#define GRT_BACKENDS_CUDA_SCAN_CUH

#include "backends/cuda/walk.h"

/* The sum of the counts of the threads before, and that of all. All threads of the block call it; their
 * number is a multiple of 32, up to 1,024. */
struct cuda_running {
    int64_t before, all;
};
static __device__ inline cuda_running cuda_block_scan(int64_t mine)
{
    __shared__ int64_t sums[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int64_t upto = mine;
    for (unsigned step = 1; step < 32; step *= 2) {
        const int64_t other = (int64_t)__shfl_up_sync(0xffffffffu, (long long)upto, step);
        upto += lane >= step ? other : 0;
    }
    __syncthreads(); /* the sums of the call before may still be read */
    if (lane == 31)
        sums[warp] = upto;
    __syncthreads();
    cuda_running running = {upto - mine, 0};
    for (unsigned w = 0; w < blockDim.x / 32; w++) {
        running.before += w < warp ? sums[w] : 0;
        running.all += sums[w];
    }
    return running;
}

enum { CUDA_SCAN_BLOCK = 1024 };

/* A block a row of n counts: each becomes the sum of those before it, sums[row] that of all. */
static __global__ void __launch_bounds__(CUDA_SCAN_BLOCK)
    cuda_scan_kernel(int64_t n, int64_t *counts, int64_t *sums)
{
    int64_t *row = counts + (int64_t)blockIdx.x * n, before = 0;
    for (int64_t first = 0; first < n; first += CUDA_SCAN_BLOCK) {
        const int64_t i = first + threadIdx.x;
        const cuda_running running = cuda_block_scan(i < n ? row[i] : 0);
        if (i < n)
            row[i] = before + running.before;
        before += running.all;
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = before;
}

static inline grt_status cuda_scan(const grt_run *r, unsigned rows, int64_t n, int64_t *counts, int64_t *sums)
{
    cuda_scan_kernel<<<rows, CUDA_SCAN_BLOCK, 0, cuda_stream(r)>>>(n, counts, sums);
    CUDA_LAUNCHED();
    return GRT_OK;
}

#endif
