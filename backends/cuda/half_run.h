/* SPDX-License-Identifier: Apache-2.0 */
/* Products of half_product.h by the kernel of half_tile.cuh, for one type each. All addresses are multiples
 * of 16. */
#ifndef GRT_BACKENDS_CUDA_HALF_RUN_H
#define GRT_BACKENDS_CUDA_HALF_RUN_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/half_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

grt_status cuda_half_run_float16(const cuda_half_product *p, const cuda_half_args *args, cudaStream_t stream);
grt_status cuda_half_run_tf32(const cuda_half_product *p, const cuda_half_args *args, cudaStream_t stream);
grt_status cuda_half_run_bfloat16(const cuda_half_product *p, const cuda_half_args *args,
                                  cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
