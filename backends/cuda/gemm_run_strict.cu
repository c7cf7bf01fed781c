/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm_launch.cuh"
#include "backends/cuda/gemm_run.h"

grt_status cuda_gemm_run_strict(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    return gemm_launch_strict(p, args, stream);
}
