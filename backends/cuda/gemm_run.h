/* SPDX-License-Identifier: Apache-2.0 */
/* Products of gemm.h by the kernel of gemm_tile.cuh, for one type each. All addresses are multiples
 * of 16. */
#ifndef GRT_BACKENDS_CUDA_GEMM_RUN_H
#define GRT_BACKENDS_CUDA_GEMM_RUN_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

grt_status cuda_gemm_run_float16(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream);
grt_status cuda_gemm_run_tf32(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream);
grt_status cuda_gemm_run_strict(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream);
grt_status cuda_gemm_run_bfloat16(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
