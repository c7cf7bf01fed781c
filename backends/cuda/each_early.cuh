/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_each for small kernels in a row: they begin before the one in front has ended (overlap.cuh). */
#ifndef GRT_BACKENDS_CUDA_EACH_EARLY_CUH
#define GRT_BACKENDS_CUDA_EACH_EARLY_CUH

#include "backends/cuda/each.cuh"
#include "backends/cuda/overlap.cuh"

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK) cuda_each_early_kernel(int64_t n, const __grid_constant__ F f)
{
    overlap_let_next_begin();
    overlap_wait();
    CUDA_ITEMS (i, n)
        f(i);
}

template <typename F> static grt_status cuda_each_early(const grt_run *r, int64_t n, const F &f)
{
    if (n <= 0)
        return GRT_OK;
    CUDA_TRY(overlap_launch(((const cuda_device *)r->device)->prop.major >= 9, cuda_each_early_kernel<F>,
                            cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r), n, f));
    return GRT_OK;
}

#endif
