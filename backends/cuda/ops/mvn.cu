/* SPDX-License-Identifier: Apache-2.0 */
/* MeanVarianceNormalization: a block a mean. */
#include "backends/cuda/each.cuh"
#include "backends/shared/mvn.h"

namespace
{

__device__ __forceinline__ int64_t walk_offset(const grt_axes_walk &w, int64_t flat)
{
    return grt_strided_offset(w.dims, w.rank, w.strides, flat);
}

grt_status cuda_run_mvn(const grt_run *r)
{
    const grt_axes_walk kept = ((const grt_mvn *)r->shape)->kept, over = ((const grt_mvn *)r->shape)->over;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each_block(r, over.total > 0 ? kept.total : 0,
                           [=] __device__(int64_t row, int thread, int threads) {
                               int64_t base = walk_offset(kept, row);
                               double sum = 0, squares = 0;
                               for (int64_t i = thread; i < over.total; i += threads)
                                   sum += in.get(base + walk_offset(over, i));
                               double mean = cuda_block_sum(sum) / (double)over.total;
                               for (int64_t i = thread; i < over.total; i += threads) {
                                   double d = in.get(base + walk_offset(over, i)) - mean;
                                   squares += d * d;
                               }
                               double deviation = sqrt(cuda_block_sum(squares) / (double)over.total) + 1e-9;
                               for (int64_t i = thread; i < over.total; i += threads) {
                                   int64_t at = base + walk_offset(over, i);
                                   out.put(at, (in.get(at) - mean) / deviation);
                               }
                           });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "MeanVarianceNormalization",
     .types = {GRT_SET_FLOATS},
     .reshape = grt_mvn_reshape,
     .release_shape = free,
     .run = cuda_run_mvn},
};

} // namespace
CUDA_KERNELS(mvn, rows);
