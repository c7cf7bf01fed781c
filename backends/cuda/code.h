/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels on a device: machine code that came with a plan, found by its key like a choice of
 * algorithms (backends/algos.h), loaded once a device. */
#ifndef GRT_BACKENDS_CUDA_CODE_H
#define GRT_BACKENDS_CUDA_CODE_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Function `name` of the code that is kept under `key`, for cudaLaunchKernel while the device is open; NULL
 * if there is no such code, or none that this device takes. Any thread. source: where the plan brings no
 * code, it is compiled from this, once a device, if NVRTC is there; NULL: it is not. */
grt_status cuda_code_get(cuda_device *device, const char *key, const char *name, const char *source,
                         cudaKernel_t *out_kernel);

#ifdef __cplusplus
}
#endif
#endif
