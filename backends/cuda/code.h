/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels on a device (backends/code.h): NVRTC makes them, the driver loads them. */
#ifndef GRT_BACKENDS_CUDA_CODE_H
#define GRT_BACKENDS_CUDA_CODE_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const grt_code_maker cuda_code_maker;

/* For cudaLaunchKernel; NULL: there is none, or none yet. code NULL: there is none. */
cudaKernel_t cuda_code_kernel(const grt_code *code);

#ifdef __cplusplus
}
#endif
#endif
