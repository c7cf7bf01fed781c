/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of 16-bit numbers, of float32 ones as TF32 and of strict ones as three of TF32, and
 * convolutions of one group with channels last, by wgmma (Hopper): what is added and the activation come in
 * the same pass. */
#ifndef GRT_BACKENDS_CUDA_GEMM_H
#define GRT_BACKENDS_CUDA_GEMM_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On the device that will run it. */
void cuda_gemm_bind(cuda_gemm *p);
grt_status cuda_gemm_run(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
