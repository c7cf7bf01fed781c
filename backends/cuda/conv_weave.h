/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose kernel stores results where they are woven to. */
#ifndef GRT_BACKENDS_CUDA_CONV_WEAVE_H
#define GRT_BACKENDS_CUDA_CONV_WEAVE_H

#include "backends/cuda/gemm_weave.h"
#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const grt_kernel_table cuda_kernels_conv;
/* From here on the prepared convolution's result is woven, from its output's address on. False, with nothing
 * changed, if the kernel that was chosen cannot do that. offset: of that address in numbers, for vectors. */
bool cuda_conv_weave(void *shape, const cuda_gemm_weave *weave, int64_t offset);

#ifdef __cplusplus
}
#endif
#endif
