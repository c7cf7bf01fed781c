/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows (weight_wide.cuh) for x of __half. */
#include "backends/cuda/weight_wide.cuh"

grt_status cuda_weight_wide_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                 const cuda_weight_choice *choice, cudaStream_t stream)
{
    return wide_use<__half>(p, numbers, choice, stream);
}
