/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/half_launch.cuh"
#include "backends/cuda/half_run.h"

grt_status cuda_half_run_tf32(const cuda_half_product *p, const cuda_half_args *args, cudaStream_t stream)
{
    return half_launch<float>(p, args, stream);
}
