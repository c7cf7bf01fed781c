/* SPDX-License-Identifier: Apache-2.0 */
/* How much shared memory blocks of a kernel may be launched with, beyond the 48 KiB that all have.
 *
 * The limit is the kernel's, not the launch's, and threads prepare steps of several shapes and models at
 * once: a limit that depends on the shape could be lowered by one thread between another's setting it and its
 * launch. So it is a constant of the kernel, or all that there is. */
#ifndef GRT_BACKENDS_CUDA_SHARED_LIMIT_H
#define GRT_BACKENDS_CUDA_SHARED_LIMIT_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All that a block of the current device can have beside what the kernel declares. */
cudaError_t cuda_allow_shared(const void *kernel);

#ifdef __cplusplus
}
#endif
#endif
