/* SPDX-License-Identifier: Apache-2.0 */
/* How the code of generated kernels is made and kept. */
#ifndef GRT_BACKENDS_CUDA_GENERATED_H
#define GRT_BACKENDS_CUDA_GENERATED_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/generated_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles the source of the kernel of node `name` and keeps it under `key`, unless that is done already. */
grt_status cuda_generate(cuda_device *device, const char *name, const char *key, const grt_text *source);

#ifdef __cplusplus
}
#endif
#endif
