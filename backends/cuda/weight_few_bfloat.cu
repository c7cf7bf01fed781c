/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows (weight_few.cuh) for x of __nv_bfloat16. */
#include "backends/cuda/weight_few.cuh"

grt_status cuda_weight_few_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                  const cuda_weight_choice *choice, cudaStream_t stream)
{
    return few_use<__nv_bfloat16>(p, numbers, choice, stream);
}
