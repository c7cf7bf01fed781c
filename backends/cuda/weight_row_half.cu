/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row (weight_row.cuh) for x of __half. */
#include "backends/cuda/weight_row.cuh"

grt_status cuda_weight_row_half(const cuda_weight_product *p, cuda_weight_numbers numbers,
                                const cuda_weight_choice *choice, cudaStream_t stream)
{
    (void)numbers; /* of 4 bits */
    return row_use<__half>(p, choice, stream);
}
