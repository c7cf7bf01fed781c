/* SPDX-License-Identifier: Apache-2.0 */
/* weight_product.h for x of __nv_bfloat16. */
#include "backends/cuda/weight_tile.cuh"

grt_status cuda_weight_use_bfloat(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                  const cuda_weight_choice *choice, cudaStream_t stream)
{
    return use_all<__nv_bfloat16>(p, numbers, choice, stream);
}
